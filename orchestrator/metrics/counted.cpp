#include "orchestrator/metrics/counted.h"

#include <algorithm>

namespace sweep::metrics {
namespace {

bool is_count(std::optional<i64> n) {
  return n && *n >= 0;
}

}  // namespace

std::optional<double> guessed_share(const RankRecord& record) {
  const auto& phantom = record.effective.phantom;
  if (!phantom) return std::nullopt;
  const PhantomCounts& of = phantom->step ? *phantom->step : *phantom;
  if (!is_count(of.kernel_ns) || !is_count(of.tabled_ns) || !is_count(of.scaled_ns) || *of.kernel_ns == 0)
    return std::nullopt;
  const double known = static_cast<double>(*of.tabled_ns) + static_cast<double>(*of.scaled_ns);
  return std::clamp(1 - known / static_cast<double>(*of.kernel_ns), 0.0, 1.0);
}

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
