#include "worker/command/trainer_stacks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>

#include "base/proc.h"
#include "base/process.h"
#include "base/time.h"
#include "runtime/attempt_token.h"
#include "schema/spool.h"
#include "worker/command/trainer_process.h"

namespace sweep::command {
namespace {

namespace fs = std::filesystem;

constexpr double kDumpWithin = 5, kModuleWithin = 3;  // seconds
constexpr std::size_t kMostStackBytes = 64u << 10, kMostTraceBytes = 32u << 20;
constexpr auto kAnswerLook = std::chrono::milliseconds(20);
constexpr const char* kPySpy = "py-spy";

int open_pipe(const fs::path& path) {
  if (::mkfifo(path.c_str(), 0600) != 0 && errno != EEXIST) return -1;
  // Open for both directions: the end of a writer is not the end of the pipe.
  return ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

template <class Done>
bool wait_until(double seconds, Done&& done) {
  for (const double until = steady_s() + seconds; !done(); std::this_thread::sleep_for(kAnswerLook))
    if (steady_s() > until) return false;
  return true;
}

// A process of this attempt, as /proc shows it.
struct Candidate {
  PythonProcess process;
  pid_t parent = 0;
};

std::optional<Candidate> candidate(const std::string& pid, const std::string& token, i64 rank) {
  std::error_code ec;
  const std::string program = fs::read_symlink("/proc/" + pid + "/exe", ec).filename();
  if (!program.starts_with("python")) return std::nullopt;
  const auto environment = proc::Environment::of(pid);
  if (environment.value(kAttemptVariable) != token || environment.value("RANK") != std::to_string(rank))
    return std::nullopt;
  Candidate out;
  out.process.pid = std::atoi(pid.c_str());
  out.process.path = environment.value("PATH").value_or("");
  out.process.program = files::read_proc("/proc/" + pid + "/cmdline").c_str();
  if (const auto stat = proc::stat_of(pid)) out.parent = stat->parent;
  return out;
}

// Looks on the PATH of this process, on the PATH of the trainer, and beside the trainer's Python.
std::optional<fs::path> py_spy_for(const PythonProcess& trainer) {
  if (auto found = find_program(kPySpy)) return found;
  std::string folders = trainer.path;
  if (const fs::path python(trainer.program); python.is_absolute())
    folders += ":" + python.parent_path().string();
  for (std::size_t from = 0; from < folders.size();) {
    const std::size_t end = std::min(folders.find(':', from), folders.size());
    const fs::path file = fs::path(folders.substr(from, end - from)) / kPySpy;
    if (file.is_absolute() && ::access(file.c_str(), X_OK) == 0) return file;
    from = end + 1;
  }
  return std::nullopt;
}

}  // namespace

fs::path stacks_pipe(const RankLaunch& launch, std::string_view rank) {
  return fs::path(launch.rendezvous_dir) / fmt::format("stacks_{}", rank);
}

std::optional<PythonProcess> python_of(i64 rank) {
  const char* token = std::getenv(kAttemptVariable);
  // If /proc shows another PID namespace, its numbers are not those that py-spy needs.
  std::error_code ec;
  if (token == nullptr || fs::read_symlink("/proc/self", ec) != std::to_string(::getpid()))
    return std::nullopt;
  std::map<pid_t, Candidate> found;
  for (const auto& entry : fs::directory_iterator("/proc", ec)) {
    const std::string name = entry.path().filename();
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) == 0) continue;
    if (auto each = candidate(name, token, rank)) found.emplace(each->process.pid, std::move(*each));
  }
  for (const auto& [pid, each] : found)
    if (!found.contains(each.parent)) return each.process;
  return std::nullopt;
}

TrainerStacks::TrainerStacks(const RankLaunch& launch)
    : launch_(launch), requests_(open_pipe(spool::flight_request(launch.rendezvous_dir, launch.rank))) {
  (void)::mkfifo(stacks_pipe(launch, std::to_string(launch.rank)).c_str(), 0600);
}

void TrainerStacks::answer_requests() {
  char asked = 0;
  if (requests_.get() >= 0 && ::read(requests_.get(), &asked, 1) == 1) answer();
}

// The flight recorder is written last: the agent waits for it.
void TrainerStacks::answer() {
  std::string stacks = by_py_spy();
  const bool module = ask_module();
  if (module)
    if (const auto own = files::read_from(said("stacks"), 0, kMostStackBytes); own && stacks.empty())
      stacks = *own;
  if (!stacks.empty())
    (void)files::write_atomically(spool::rank_stacks(launch_.attempt_dir, launch_.rank), stacks);
  const auto trace = module ? files::read_from(said("flight"), 0, kMostTraceBytes) : fail("");
  (void)files::write_atomically(spool::flight_trace(launch_.attempt_dir, launch_.rank),
                                trace ? *trace : "{}");
}

fs::path TrainerStacks::said(const char* what) const {
  return results_file(launch_, launch_.rank).replace_extension(what);
}

// It reads the memory of the trainer, which goes on meanwhile. Empty: it is not installed, or may not.
std::string TrainerStacks::by_py_spy() const {
  const auto trainer = python_of(launch_.rank);
  const auto program = trainer ? py_spy_for(*trainer) : std::nullopt;
  if (!program) return "";
  const fs::path to = said("py-spy");
  const Descriptor out(::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  ChildProgram wanted{{program->string(), "dump", "--nonblocking", "--pid", std::to_string(trainer->pid)}};
  wanted.program = *program;
  wanted.out = out.get();
  wanted.err = ChildProgram::kNothing;
  wanted.dies_with_us = true;
  const auto pid = out.get() >= 0 ? start_program(wanted) : fail("");
  if (!pid) return "";
  const Descriptor ended(open_pidfd(*pid));
  pollfd ready{ended.get(), POLLIN, 0};
  if (ended.get() < 0 || ::poll(&ready, 1, static_cast<int>(kDumpWithin * 1000)) != 1) ::kill(*pid, SIGKILL);
  if (wait_for(*pid).code != 0) return "";
  const auto text = files::read_from(to, 0, kMostStackBytes);
  return text ? *text : "";
}

bool TrainerStacks::ask_module() const {
  const Descriptor pipe(
      ::open(stacks_pipe(launch_, std::to_string(launch_.rank)).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (pipe.get() < 0 || !write_all(pipe.get(), "d")) return false;
  std::error_code ec;
  return wait_until(kModuleWithin, [&] { return fs::exists(said("flight"), ec); });
}

}  // namespace sweep::command
