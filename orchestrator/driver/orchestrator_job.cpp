#include "orchestrator/driver/orchestrator_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/expected.h"
#include "base/files.h"
#include "orchestrator/driver/machine.h"
#include "orchestrator/driver/spool_root.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/slurm/orchestrator_script.h"
#include "orchestrator/launch/slurm/slurm_state.h"
#include "schema/spool.h"

namespace sweep::driver {
namespace {

namespace fs = std::filesystem;

fs::path orchestrator_script_file(const fs::path& db) {
  return spool_root_of(db) / "orchestrator.sh";
}

launch::CommandResult ask_slurm(std::vector<std::string> words) {
  launch::CommandResult answer = launch::run_alone(std::move(words), 60);
  if (answer.timed_out) answer.err = "no answer in time";
  return answer;
}

// The jobs of these names that wait or run, by name.
Expected<std::map<std::string, launch::JobFacts>> living_jobs(const std::vector<std::string>& names) {
  const auto answer = ask_slurm(launch::squeue_by_name(names));
  if (!answer.ok()) return fail("squeue does not answer: " + answer.err);
  std::map<std::string, launch::JobFacts> out;
  for (auto& job : launch::read_squeue(answer.out))
    if (launch::meaning_of(job.state).phase != launch::Phase::kEnded) out.try_emplace(job.name, job);
  return out;
}

Expected<fs::path> write_script(const launch::OrchestratorJob& job, const fs::path& db) {
  SWEEP_GET(const auto script, launch::orchestrator_script(job));
  const fs::path file = orchestrator_script_file(db);
  SWEEP_TRY(prepare_spool_root(file.parent_path(), db));
  return files::write_atomically(file, script).map([&] { return file; });
}

tl::unexpected<SubmitError> not_asked(Error error) {
  return tl::unexpected(SubmitError{false, std::move(error)});
}

}  // namespace

Expected<void> fits_a_job(const std::string& partition, const LaunchChoice& choice) {
  if (choice.config->uses_this_machine())
    return fail(
        "--as-job is for sweeps that run elsewhere: its job computes nothing, and `--on local` would run the "
        "trials in it; say --on slurm or --on ssh");
  const bool named = std::ranges::all_of(partition, [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == ',';
  });
  if (named) return {};
  return fail(fmt::format("--as-job {}: that is no name of a partition", partition));
}

std::vector<std::string> launch_words(const LaunchChoice& choice, const LaunchRequest& request) {
  std::vector<std::string> out{"--on", choice.on};
  const auto add = [&out](const char* name, const std::string& value) {
    if (!value.empty() && value != "0") out.insert(out.end(), {name, value});
  };
  const auto path = [](const std::string& file) { return file.empty() ? file : fs::absolute(file).string(); };
  if (request.start) add("--start", std::string(to_string(*request.start)));
  add("--agent", path(request.agent));
  add("--rank", path(request.rank));
  add("--screen", request.screen);
  add("--slots", std::to_string(request.slots));
  add("--jobid", std::to_string(choice.existing_job));
  return out;
}

tl::expected<SubmittedJob, SubmitError> submit_orchestrator(const OrchestratorJobRequest& request,
                                                            const LaunchChoice& choice) {
  const fs::path db = fs::absolute(request.db);
  launch::OrchestratorJob job{launch::orchestrator_job_name(db, request.sweep),
                              request.partition,
                              choice.config->orchestrator_options(),
                              db.string() + ".log",
                              {}};
  const auto living = living_jobs({job.name});
  if (!living) return not_asked(living.error());
  if (const auto it = living->find(job.name); it != living->end())
    return SubmittedJob{it->second.id, true, it->second.state, {}};
  job.words = {(program_dir() / "sweep").string(), "resume", request.sweep, "--db", db.string()};
  job.words.insert(job.words.end(), request.words.begin(), request.words.end());
  const auto script = write_script(job, db);
  if (!script) return not_asked(script.error());
  const auto answer = ask_slurm({"sbatch", "--parsable", script->string()});
  const auto number = answer.ok() ? launch::read_sbatch(answer.out) : std::nullopt;
  if (!number)
    return tl::unexpected(
        SubmitError{true, {fmt::format("sbatch did not take {}: {}", script->string(), answer.err)}});
  return SubmittedJob{*number, false, {}, job.log};
}

Expected<OrchestratorJobs> living_orchestrator_jobs(const fs::path& db,
                                                    const std::vector<std::string>& sweeps) {
  std::error_code ec;
  OrchestratorJobs out;
  if (sweeps.empty() || !fs::exists(orchestrator_script_file(db), ec)) return out;
  const auto name_of = [&](const std::string& sweep) {
    return launch::orchestrator_job_name(fs::absolute(db), sweep);
  };
  std::vector<std::string> names;
  for (const auto& sweep : sweeps) names.push_back(name_of(sweep));
  SWEEP_GET(const auto living, living_jobs(names));
  for (const auto& sweep : sweeps)
    if (const auto it = living.find(name_of(sweep)); it != living.end()) out[sweep] = it->second.id;
  return out;
}

Expected<std::optional<i64>> cancel_waiting_job(const fs::path& db, const std::string& sweep) {
  SWEEP_GET(const auto jobs, living_orchestrator_jobs(db, {sweep}));
  if (jobs.empty()) return std::optional<i64>();
  const i64 number = jobs.begin()->second;
  if (const auto answer = ask_slurm({"scancel", std::to_string(number)}); !answer.ok())
    return fail(fmt::format("scancel {}: {}", number, answer.err));
  return std::optional(number);
}

}  // namespace sweep::driver
