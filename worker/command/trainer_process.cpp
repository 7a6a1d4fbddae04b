#include "worker/command/trainer_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/fail.h"
#include "base/files.h"
#include "base/proc.h"
#include "base/process.h"
#include "base/template.h"
#include "schema/spool.h"
#include "worker/command/phantom_place.h"
#include "worker/command/trainer_stacks.h"

namespace sweep::command {
namespace {

namespace fs = std::filesystem;

i64 local_world(const Attempt& attempt) {
  return std::max<i64>(1, attempt.trial.world() / std::max<i64>(1, attempt.trial.nodes));
}

std::map<std::string, std::string, std::less<>> rank_names(const Attempt& attempt, const RankLaunch& launch,
                                                           const Meeting& meeting) {
  const i64 local = local_world(attempt);
  return {{"files", files_folder(launch).string()},
          {"rank", std::to_string(launch.rank)},
          {"local_rank", std::to_string(launch.local_rank)},
          {"node", std::to_string(launch.rank / local)},
          {"world", std::to_string(launch.world)},
          {"local_world", std::to_string(local)},
          {"master_addr", meeting.address},
          {"master_port", std::to_string(meeting.port)}};
}

// The variables that torchrun sets for its processes, and the path where the trainer reports. If there is one
// process a node, it sets the ranks' own variables itself.
std::map<std::string, std::string> own_variables(const CommandSpec& spec, const Attempt& attempt,
                                                 const RankLaunch& launch, const Meeting& meeting) {
  const auto results = results_file(launch, launch.rank);
  std::map<std::string, std::string> out{
      {"MASTER_ADDR", meeting.address},
      {"MASTER_PORT", std::to_string(meeting.port)},
      {"SWEEP_WARMUP_STEPS", std::to_string(attempt.measure.warmup_steps)},
      {"SWEEP_STEPS", std::to_string(attempt.measure.steps)},
      {"SWEEP_RESULTS_FILE",
       spec.per_node ? (results.parent_path() / "rank_{rank}.jsonl").string() : results.string()},
      {"SWEEP_STACKS_PIPE",
       stacks_pipe(launch, spec.per_node ? "{rank}" : std::to_string(launch.rank)).string()}};
  if (!launch.devices.empty()) out["CUDA_VISIBLE_DEVICES"] = launch.devices;
  out.merge(phantom_variables(attempt, launch));
  if (spec.per_node) return out;
  const i64 local = local_world(attempt);
  out["RANK"] = std::to_string(launch.rank);
  out["LOCAL_RANK"] = std::to_string(launch.local_rank);
  out["WORLD_SIZE"] = std::to_string(launch.world);
  out["LOCAL_WORLD_SIZE"] = std::to_string(local);
  out["GROUP_RANK"] = std::to_string(launch.rank / local);
  return out;
}

// `import sweep_trial` works in every Python program: its folder goes before what PYTHONPATH says, which cannot name a path
// with a colon. `by_roles`: not every rank of the program is started (roles.py).
Expected<void> provide_python_modules(const RankLaunch& launch, bool by_roles,
                                      std::map<std::string, std::string>& environment) {
  const bool colon = launch.attempt_dir.find(':') != std::string::npos;
  const fs::path folder = fs::path(colon ? launch.rendezvous_dir : launch.attempt_dir) / "python";
  std::error_code ec;
  fs::create_directories(folder, ec);
  SWEEP_TRY(files::write_once(folder / "sweep_trial.py", report_module()));
  if (by_roles) SWEEP_TRY(files::write_once(folder / "sitecustomize.py", roles_module()));
  const char* own = std::getenv("PYTHONPATH");
  const auto set = environment.find("PYTHONPATH");
  const std::string rest = set != environment.end() ? set->second : own != nullptr ? own : "";
  environment["PYTHONPATH"] = folder.string() + (rest.empty() ? "" : ":" + rest);
  return {};
}

Expected<void> write_files(const std::map<std::string, std::string>& wanted, const RankLaunch& launch,
                           const templates::ValueOf& value_of) {
  std::error_code ec;
  fs::create_directories(files_folder(launch), ec);
  fs::create_directories(results_file(launch, 0).parent_path(), ec);
  for (const auto& [path, text] : wanted) {
    const auto filled = templates::finish(text, value_of);
    if (!filled) return fail("file {}: {}", path, filled.error().message);
    const fs::path file = files_folder(launch) / path;
    fs::create_directories(file.parent_path(), ec);
    SWEEP_TRY(files::write_once(file, *filled));
  }
  return {};
}

std::vector<std::string> whole_environment(const std::map<std::string, std::string>& set) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!set.contains(std::string(text.substr(0, text.find('='))))) out.emplace_back(text);
  }
  for (const auto& [name, value] : set) out.push_back(name + "=" + value);
  return out;
}

}  // namespace

fs::path files_folder(const RankLaunch& launch) {
  return fs::path(launch.attempt_dir) / "files";
}

fs::path results_file(const RankLaunch& launch, i64 rank) {
  return fs::path(launch.attempt_dir) / "results" / fmt::format("rank_{:05}.jsonl", rank);
}

Expected<Prepared> prepare(const CommandSpec& spec, const Attempt& attempt, const RankLaunch& launch,
                           const Meeting& meeting) {
  const auto names = rank_names(attempt, launch, meeting);
  const templates::ValueOf value_of = [&](std::string_view name) -> std::optional<std::string> {
    const auto found = names.find(name);
    return found == names.end() ? std::nullopt : std::optional(found->second);
  };
  Prepared out;
  for (const std::string& word : spec.argv) {
    auto filled = templates::finish(word, value_of);
    if (!filled) return fail("argument '{}': {}", word, filled.error().message);
    out.argv.push_back(std::move(*filled));
  }
  for (const auto& [name, value] : spec.environment) {
    auto filled = templates::finish(value, value_of);
    if (!filled) return fail("variable {}: {}", name, filled.error().message);
    out.environment[name] = std::move(*filled);
  }
  for (auto& [name, value] : own_variables(spec, attempt, launch, meeting)) out.environment[name] = value;
  SWEEP_TRY(write_files(spec.files, launch, value_of));
  SWEEP_TRY(provide_python_modules(launch, !attempt.starts_every_rank(), out.environment));
  out.folder = spec.folder.empty() ? files_folder(launch).string() : spec.folder;
  if (!fs::is_directory(out.folder))
    return fail("the working folder {} is not on {}: copy it there, or set workload.folder", out.folder,
                proc::host_name());
  return out;
}

Expected<TrainerProcess> TrainerProcess::start(const Prepared& wanted) {
  ChildProgram program{wanted.argv};
  program.environment = whole_environment(wanted.environment);
  program.folder = wanted.folder;
  program.dies_with_us = true;
  SWEEP_GET(const auto pid, start_program(program));
  TrainerProcess out(pid, open_pidfd(pid));
  if (out.handle_ < 0) return fail("cannot watch pid {}: {}", pid, std::strerror(errno));
  return out;
}

TrainerProcess::TrainerProcess(TrainerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), handle_(std::exchange(other.handle_, -1)), end_(other.end_) {}

TrainerProcess::~TrainerProcess() {
  if (pid_ > 0 && !end_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (handle_ >= 0) ::close(handle_);
}

std::optional<TrainerProcess::End> TrainerProcess::wait_ms(int milliseconds) {
  if (end_) return end_;
  pollfd ready{handle_, POLLIN, 0};
  if (::poll(&ready, 1, milliseconds) <= 0) return std::nullopt;
  int status = 0;
  rusage usage{};
  if (::wait4(pid_, &status, WNOHANG, &usage) != pid_) return std::nullopt;
  End end;
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  rusage children{};
  ::getrusage(RUSAGE_CHILDREN, &children);
  end.peak_rss_bytes = i64{1024} * std::max(usage.ru_maxrss, children.ru_maxrss);
  end_ = end;
  return end_;
}

void TrainerProcess::send(int signal) const {
  if (!end_) ::kill(pid_, signal);
}

}  // namespace sweep::command
