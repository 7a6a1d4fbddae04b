#include "orchestrator/cli/as_job.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "base/files.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/slurm/orchestrator_script.h"
#include "orchestrator/launch/slurm/slurm_options.h"
#include "orchestrator/launch/slurm/slurm_state.h"
#include "schema/codec.h"
#include "schema/spool.h"

namespace sweep::cli {
namespace {

namespace fs = std::filesystem;

launch::CommandResult ask_slurm(std::vector<std::string> words) {
  launch::CommandResult said = launch::run_alone(std::move(words), 60);
  if (said.timed_out) said.err = "no answer in time";
  return said;
}

// The job of this name that waits or runs; absent: Slurm knows none.
Expected<std::optional<launch::JobFacts>> living_job(const std::string& name) {
  const auto said = ask_slurm(launch::squeue_by_name({name}));
  if (!said.ok()) return fail("squeue does not answer: " + said.err);
  for (const auto& job : launch::read_squeue(said.out))
    if (launch::meaning_of(job.state).phase != launch::Phase::kEnded) return std::optional(job);
  return std::optional<launch::JobFacts>();
}

// Who pays for the allocations pays for their orchestrator.
std::map<std::string, std::string> asks_of(const LaunchChoice& choice) {
  std::map<std::string, std::string> out;
  const auto options = parse_json(choice.settings).and_then([](const nlohmann::json& settings) {
    return launch::slurm_options_from(settings);
  });
  if (choice.on != "slurm" || !options) return out;
  for (const char* name : {"account", "wckey"})
    if (const auto found = options->ask.find(name); found != options->ask.end()) out[name] = found->second;
  return out;
}

Expected<fs::path> write_script(const launch::OrchestratorJob& job, const std::string& db) {
  const auto script = launch::orchestrator_script(job);
  if (!script) return tl::unexpected(script.error());
  const fs::path file = fs::absolute(db + ".spool") / "orchestrator.sh";
  std::error_code ec;
  fs::create_directories(file.parent_path(), ec);
  if (ec) return fail(fmt::format("{}: cannot be made: {}", file.parent_path().string(), ec.message()));
  return files::write_atomically(file, *script).map([&] { return file; });
}

}  // namespace

int hand_to_job(Io& io, const std::string& partition, const std::string& db, const std::string& sweep,
                const LaunchChoice& choice, std::vector<std::string> words) {
  const fs::path absolute = fs::absolute(db);
  launch::OrchestratorJob job{launch::orchestrator_job_name(absolute, sweep),
                              partition,
                              asks_of(choice),
                              absolute.string() + ".log",
                              {}};
  const auto there = living_job(job.name);
  if (!there) return refuse(io, there.error());
  if (*there) {
    io.err << fmt::format("sweep {} has its Slurm job already: {} ({})\n", sweep, (*there)->id,
                          (*there)->state);
    return kAnswered;
  }
  job.words = {(program_dir() / "sweep").string(), "resume", sweep, "--db", absolute.string()};
  job.words.insert(job.words.end(), words.begin(), words.end());
  const auto script = write_script(job, db);
  if (!script) return refuse(io, script.error());
  const auto said = ask_slurm({"sbatch", "--parsable", script->string()});
  const auto number = said.ok() ? launch::read_sbatch(said.out) : std::nullopt;
  if (!number) {
    io.err << fmt::format("sweep: sbatch did not take {}: {}\n", script->string(), said.err);
    return kUnanswered;
  }
  io.err << fmt::format(
      "sweep {} is handed to Slurm job {} in partition {}; its log goes to {}\n"
      "`sweep status`, `sweep stop` and `sweep resume` (which watches it) work from any node\n",
      sweep, *number, partition, job.log.string());
  return kAnswered;
}

Expected<bool> cancel_waiting_job(Io& io, const std::string& db, const std::string& sweep) {
  const auto job = living_job(launch::orchestrator_job_name(fs::absolute(db), sweep));
  if (!job) return tl::unexpected(job.error());
  if (!*job) return false;
  const auto number = std::to_string((*job)->id);
  if (const auto said = ask_slurm({"scancel", number}); !said.ok())
    return fail(fmt::format("scancel {}: {}", number, said.err));
  io.err << fmt::format("cancelled Slurm job {}, which was to run sweep {}\n", number, sweep);
  return true;
}

}  // namespace sweep::cli
