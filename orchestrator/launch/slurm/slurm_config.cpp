#include "orchestrator/launch/slurm/slurm_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/expected.h"
#include "base/text.h"
#include "base/time.h"
#include "orchestrator/launch/batch/script_file.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/slurm/slurm_scheduler.h"
#include "orchestrator/launch/slurm/slurm_script.h"
#include "orchestrator/launch/slurm/slurm_state.h"

namespace sweep::launch {
namespace {

constexpr double kQuestionLimit = 60;  // seconds

// How many nodes an existing job has, and how long it lasts. 0 nodes: it has none, or Slurm does not answer.
void read_existing_job(SlurmOptions& options) {
  const auto answer = run_alone({"squeue", "--noheader", fmt::format("--jobs={}", options.existing_job),
                                 "--states=RUNNING", "--format=%D|%L"},
                                kQuestionLimit);
  options.max_nodes = answer.ok() ? std::atoll(answer.out.c_str()) : 0;
  const auto left = answer.out.find('|');
  if (!answer.ok() || left == std::string::npos) return;
  const auto seconds = limit_seconds(answer.out.substr(left + 1, answer.out.find('\n') - left - 1));
  if (seconds) options.existing_job_ends_s = steady_s() + *seconds;
}

std::set<std::string> partitions_of(const SlurmOptions& options) {
  std::set<std::string> out{*options.partition};
  for (const auto& [hardware, own] : *options.hardware)
    out.insert(own.partition.stated ? *own.partition : *options.partition);
  if (options.head->partition.stated) out.insert(*options.head->partition);
  return out;
}

// "gpu:h100:8(S:0-3)", "8", "h100:8" -> 8. nullopt: it names no GPUs.
std::optional<i64> gpus_in(const std::string& name, const std::string& asked) {
  const auto from = name == "gres" ? asked.find("gpu") : 0;
  if (from == std::string::npos) return std::nullopt;
  const auto text = asked.substr(from, asked.find_first_of("(,", from) - from);
  const auto digits = text.find_last_not_of("0123456789");
  const auto number = digits == std::string::npos ? text : text.substr(digits + 1);
  const i64 count = number.empty() ? 0 : std::atoll(number.c_str());
  return count > 0 ? std::optional(count) : std::nullopt;
}

// Slots of a node that jobs of these settings hand out.
Expected<i64> slots_of(const SlurmOptions& options) {
  if (*options.colocate && *options.slots < 1)
    return fail(
        "launch.slurm.colocate: say with `slots` how many GPUs (CPU ranks) of a node may be busy at once");
  return *options.colocate ? *options.slots : 1;
}

class SlurmConfig final : public LaunchConfig {
 public:
  explicit SlurmConfig(SlurmOptions options) : options_(std::move(options)) {}

  std::string screen() const override { return *options_.screen; }
  double confirm_gpu_hours() const override { return *options_.confirm_gpu_hours; }
  std::map<std::string, std::string> orchestrator_options() const override {
    std::map<std::string, std::string> out;
    if (options_.account.stated) out["account"] = *options_.account;
    if (options_.wckey.stated) out["wckey"] = *options_.wckey;
    return out;
  }
  Expected<SlotLimit> slot_limit(i64 requested) const override {
    auto options = options_;
    if (requested > 0) options.slots = requested;
    return slots_of(options).map([](i64 slots) { return SlotLimit{slots, "launch.slurm.slots"}; });
  }
  std::optional<KnownGpus> gpus_of_node(const std::string& hardware) const override {
    const auto asks = sbatch_options_for(hardware, options_);
    for (const char* name : {"gres", "gpus-per-node"})
      if (const auto found = asks.find(name); found != asks.end())
        if (const auto count = gpus_in(name, found->second))
          return KnownGpus{*count, name + (" " + found->second)};
    return std::nullopt;
  }
  std::optional<ClusterSize> cluster_size() const override {
    return ClusterSize{options_.max_nodes.if_stated(), options_.max_allocations.if_stated(),
                       options_.allocation_nodes.if_stated(), limit_seconds(*options_.time),
                       *options_.spread_seconds};
  }

  Expected<RunLimits> prepare(const RunRequest& request) override {
    if (options_.existing_job > 0) {
      options_.max_allocations = 1;
      read_existing_job(options_);
      if (*options_.max_nodes < 1)
        return fail(fmt::format("Slurm tells of no nodes of job {}: is it running?", options_.existing_job));
    } else {
      SWEEP_TRY(read_partitions(options_));
    }
    if (request.slots > 0) options_.slots = request.slots;
    SWEEP_GET(const auto slots, slots_of(options_));
    RunLimits limits;
    limits.allocate_per_shape = true;
    limits.slots = slots;
    limits.max_nodes = *options_.max_nodes, limits.max_allocations = *options_.max_allocations;
    limits.time_s = options_.time_s, limits.allocation_nodes = *options_.allocation_nodes;
    limits.all_nodes = options_.existing_job > 0;
    limits.spread_s = *options_.spread_seconds;
    for (const auto& [partition, idle] : options_.idle) limits.idle_nodes = std::max(limits.idle_nodes, idle);
    return limits;
  }
  std::unique_ptr<Launcher> make(boost::asio::io_context& io, const Programs& programs,
                                 Launcher::Sink sink) const override {
    return make_slurm(io, options_, programs, std::move(sink));
  }
  Expected<Preview> preview(const AllocationRequest& request, const Programs& programs) const override {
    SWEEP_GET(auto script, slurm_script(request, options_, programs));
    return test_submission(std::move(script));
  }
  Expected<std::vector<Finding>> check(const CheckRequest& request) const override {
    CheckRequest within = request;
    within.nodes = nodes_to_check(request.nodes);
    return check_slurm(options_, within);
  }
  i64 nodes_to_check(i64 requested) const override {
    return std::min(requested, options_.max_nodes.if_stated().value_or(requested));
  }
  Expected<std::unique_ptr<Leftovers>> leftovers(std::span<const AllocationPlace> places) const override {
    return slurm_leftovers(places);
  }

 private:
  SlurmOptions options_;
};

}  // namespace

Expected<void> read_partitions(SlurmOptions& options) {
  for (const auto& partition : partitions_of(options)) {
    const auto answer = run_alone(sinfo_of(partition), kQuestionLimit);
    if (!answer.ok()) continue;
    const auto facts = read_sinfo(answer.out);
    options.idle[partition] = facts.idle;
    if (!facts.longest_s) continue;
    const auto name = partition.empty() ? std::string("the default partition") : "partition " + partition;
    if (options.time_s && *options.time_s > *facts.longest_s)
      return fail(fmt::format("launch.slurm.time: {} is longer than {} allows a job ({}); make it shorter",
                              slurm_time(*options.time_s), name, slurm_time(*facts.longest_s)));
    if (*facts.longest_s <= reserved_seconds(options))
      return fail(
          fmt::format("{} allows a job {}, and signal_seconds leaves nothing of it; name another partition",
                      name, slurm_time(*facts.longest_s)));
    options.longest_s = std::min(options.longest_s.value_or(*facts.longest_s), *facts.longest_s);
  }
  if (!options.time_s) options.time_s = options.longest_s;
  return {};
}

Expected<Preview> test_submission(std::string script) {
  SWEEP_GET(const auto file, ScriptFile::make(script));
  const auto answer = run_alone({"sbatch", "--test-only", file.path()}, kQuestionLimit);
  return Preview{std::move(script), answer.ok(), answer.err + answer.out};
}

Expected<std::unique_ptr<LaunchConfig>> configure_slurm(const LaunchSettings& settings, i64 existing_job) {
  SWEEP_GET(auto options, slurm_options_from(settings.slurm.value_or(SlurmSettings())));
  options.existing_job = existing_job;
  return std::make_unique<SlurmConfig>(std::move(options));
}

i64 surrounding_slurm_job() {
  const char* job = std::getenv("SLURM_JOB_ID");
  return job != nullptr ? std::atoll(job) : 0;
}

}  // namespace sweep::launch
