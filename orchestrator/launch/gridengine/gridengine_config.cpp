#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "orchestrator/launch/batch/batch_launcher.h"
#include "orchestrator/launch/batch/script_file.h"
#include "orchestrator/launch/gridengine/gridengine_scheduler.h"
#include "orchestrator/launch/gridengine/gridengine_script.h"
#include "orchestrator/launch/gridengine/gridengine_state.h"
#include "orchestrator/launch/launch_config.h"
#include "orchestrator/launch/probe_answer.h"

namespace sweep::launch {
namespace {

constexpr double kGridEngineLimit = 60;  // seconds

Expected<std::vector<JobStatus>> living_gridengine_jobs(const std::vector<std::string>& names) {
  const auto answer = run_alone(qstat_of_user(login_name()), kGridEngineLimit);
  const auto listed = answer.ok() ? read_qstat(answer.out) : fail(gridengine_reason(answer.err));
  if (!listed)
    return fail("qstat does not answer, so nothing is known of Grid Engine jobs: " + listed.error().message);
  std::vector<JobStatus> out;
  for (const auto& job : *listed)
    if (std::ranges::find(names, job.name) != names.end() && phase_of(job.state) != Phase::kEnded)
      out.push_back(status_of(job, 0));
  return out;
}

Expected<void> cancel_gridengine_job(i64 number) {
  const auto answer = run_alone({"qdel", std::to_string(number)}, kGridEngineLimit);
  if (answer.ok() || is_unknown_job(answer.out + answer.err)) return {};
  return fail(fmt::format("qdel {}: {}", number, gridengine_reason(answer.err)));
}

// `-w v` says whether the job could run, and submits nothing.
Expected<Preview> verify_submission(std::string script) {
  SWEEP_GET(const auto file, ScriptFile::make(script));
  const auto answer = run_alone({"qsub", "-w", "v", file.path()}, kGridEngineLimit);
  return Preview{std::move(script), answer.ok(), answer.ok() ? answer.out : gridengine_reason(answer.err)};
}

class GridEngineConfig final : public LaunchConfig {
 public:
  explicit GridEngineConfig(GridEngineSettings options) : options_(std::move(options)) {}

  std::string screen() const override { return *options_.screen; }
  double confirm_gpu_hours() const override { return *options_.confirm_gpu_hours; }
  Expected<SlotLimit> slot_limit(i64 requested) const override {
    if (requested > 1)
      return fail(
          "a job of Grid Engine runs one trial at a time: leave --slots out, or use another launcher");
    return SlotLimit{};
  }
  std::optional<std::string> lacking_hosts(std::span<const PlanEntry> entries) const override {
    const auto wide = std::ranges::count_if(
        entries, [](const PlanEntry& entry) { return entry.admitted && entry.trial.nodes > 1; });
    if (wide == 0) return std::nullopt;
    return fmt::format(
        "{} {} several nodes, and a job of Grid Engine has one host here: run them over ssh or Slurm", wide,
        wide == 1 ? "trial needs" : "trials need");
  }
  std::optional<ClusterSize> cluster_size() const override {
    return ClusterSize{options_.max_nodes.if_stated(), options_.max_allocations.if_stated(), 1,
                       limit_seconds(*options_.time)};
  }

  Expected<RunLimits> prepare(const RunRequest& request) override {
    SWEEP_TRY(slot_limit(request.slots));
    RunLimits limits;
    limits.allocate_per_shape = true;
    limits.max_allocations = *options_.max_allocations;
    limits.max_nodes = options_.max_nodes.if_stated().value_or(*options_.max_allocations);
    limits.allocation_nodes = 1;
    limits.time_s = limit_seconds(*options_.time);
    return limits;
  }
  std::unique_ptr<Launcher> make(boost::asio::io_context& io, const Programs& programs,
                                 Launcher::Sink sink) const override {
    return make_batch(
        io, std::make_unique<GridEngineScheduler>(std::make_unique<Commands>(io), options_, programs),
        *options_.poll_seconds, std::move(sink));
  }
  Expected<Preview> preview(const AllocationRequest& request, const Programs& programs) const override {
    SWEEP_GET(auto script, gridengine_script(request, options_, programs));
    return verify_submission(std::move(script));
  }
  Expected<std::vector<Finding>> check(const CheckRequest& request) const override {
    AllocationRequest allocation;
    allocation.id = "a0001-00000000";
    allocation.spool = request.db.string() + ".spool/" + allocation.id;
    allocation.hardware = request.hardware, allocation.seconds = 600;
    const auto master = run_alone({"qstat", "-u", login_name()}, kGridEngineLimit);
    if (!master.ok())
      return std::vector<Finding>{
          {"qmaster", Health::kBad,
           fmt::format("{}: this must be a machine from which qsub works (PATH, SGE_ROOT, a submit host)",
                       gridengine_reason(master.err))}};
    std::vector<Finding> out{{"qmaster", Health::kGood, "answers"}};
    SWEEP_GET(const auto shown, preview(allocation, request.programs));
    out.push_back({"submission", shown.accepted ? Health::kGood : Health::kBad, first_line(shown.answer)});
    return out;
  }
  i64 nodes_to_check(i64) const override { return 1; }
  Expected<std::unique_ptr<Leftovers>> leftovers(std::span<const AllocationPlace> places) const override {
    return batch_leftovers({"Grid Engine", "gridengine", living_gridengine_jobs, cancel_gridengine_job,
                            [](i64) -> Expected<bool> { return false; }},
                           places);
  }

 private:
  GridEngineSettings options_;
};

// Checks settings against each other; they may come from two files.
Expected<void> check_together(const GridEngineSettings& options) {
  if (options.pe_slots.stated && options.parallel_environment->empty())
    return fail(
        "launch.gridengine.pe_slots: name the parallel environment that gives them (parallel_environment)");
  if (const auto limit = limit_seconds(*options.time); limit && *limit <= *options.signal_seconds)
    return fail("launch.gridengine.time: a limit longer than signal_seconds is needed");
  return {};
}

}  // namespace

Expected<std::unique_ptr<LaunchConfig>> configure_gridengine(const LaunchSettings& settings,
                                                             i64 existing_job) {
  if (existing_job > 0) return fail("Grid Engine has no nodes of an existing job to use: leave --jobid out");
  auto options = settings.gridengine.value_or(GridEngineSettings());
  SWEEP_TRY(check_together(options));
  return std::make_unique<GridEngineConfig>(std::move(options));
}

}  // namespace sweep::launch
