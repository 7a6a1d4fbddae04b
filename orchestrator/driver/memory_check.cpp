#include "orchestrator/driver/memory_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "bench_kernels/shape/step_sizes.h"
#include "orchestrator/driver/dry_runs.h"
#include "orchestrator/launch/programs.h"
#include "orchestrator/plan/memory_pruning.h"

namespace sweep::driver {
namespace {

// Trials that are asked without being told to: a process starts in a second and answers 40 to 100 of them in another.
constexpr std::size_t kMostUnasked = 200;

bool is_installed(const std::string& program) {
  return ::access(launch::companion(program).c_str(), X_OK) == 0;
}

std::vector<const PlanEntry*> nearest(std::vector<const PlanEntry*> near) {
  std::erase_if(near,
                [](const PlanEntry* e) { return shape::kernel_path(e->trial) != shape::KernelPath::kGpu; });
  const auto distance = [](const PlanEntry* e) { return std::abs(1 - plan::share_of_limit(*e).value_or(0)); };
  std::ranges::stable_sort(near, {}, distance);
  near.resize(std::min(near.size(), kMostUnasked));
  return near;
}

using Measured = std::map<std::string, plan::MeasuredMemory>;

Expected<Measured> measure(const std::vector<const PlanEntry*>& trials,
                           const std::function<void(const std::string&)>& say) {
  Measured out;
  if (trials.empty()) return out;
  say(fmt::format("dry runs of {} trials near their memory limit", trials.size()));
  const auto answers = dry_runs(trials, [&](std::size_t done) {
    if (done < trials.size()) say(fmt::format("dry runs: {}/{}", done, trials.size()));
  });
  if (!answers) return tl::unexpected(answers.error());
  for (const auto& [id, run] : *answers) {
    if (run.error.empty())
      out[id] = {run.bytes, run.refusal};
    else
      say(fmt::format("trial {}: {}; its prediction stays", id, run.error));
  }
  return out;
}

}  // namespace

Expected<MemoryCheck> check_memory(Planned& planned, DryRunScope scope, double audit,
                                   const std::function<void(const std::string&)>& say) {
  plan::MemoryPruning pruning{planned.grid.limits.memory_margin, {}, audit, planned.grid.measure};
  const auto near = plan::near_memory_limit(planned.entries, pruning.margin);
  MemoryCheck check{near.size(), 0};
  const bool all = scope == DryRunScope::kAll;
  if (all || (scope == DryRunScope::kNearest && is_installed("sweep-rank"))) {
    auto measured = measure(all ? near : nearest(near), say);
    if (!measured && all) return tl::unexpected(measured.error());
    if (measured)
      pruning.dry_runs = std::move(*measured);
    else
      say(measured.error().message + "; the predictions of memory stand");
  }
  check.measured = pruning.dry_runs.size();
  plan::prune_memory(planned.entries, pruning);
  return check;
}

}  // namespace sweep::driver
