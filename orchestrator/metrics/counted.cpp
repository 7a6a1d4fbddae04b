#include "orchestrator/metrics/counted.h"

namespace sweep::metrics {
namespace {

bool is_count(std::optional<i64> n) {
  return n && *n >= 0;
}

}  // namespace

std::optional<CountedStep> counted_step(const RankRecord& record) {
  const auto& phantom = record.effective.phantom;
  if (!phantom || !phantom->step) return std::nullopt;
  const PhantomCounts& step = *phantom->step;
  if (!is_count(step.launches) || !is_count(step.host_syncs) || !is_count(step.host_work_ns) ||
      !is_count(step.device_ns) || !is_count(step.busy_ns))
    return std::nullopt;
  const auto pinned = is_count(phantom->peak_pinned_bytes) ? phantom->peak_pinned_bytes : std::nullopt;
  return CountedStep{*step.launches,  *step.host_syncs, *step.host_work_ns,
                     *step.device_ns, *step.busy_ns,    pinned};
}

}  // namespace sweep::metrics
