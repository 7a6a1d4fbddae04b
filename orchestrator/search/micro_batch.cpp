// batch: of one layout the largest micro-batch that fits, the largest before the allocator has to ask twice
// (the star), and the fastest.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "orchestrator/search/chooser.h"
#include "orchestrator/search/sizes.h"

namespace sweep::search {
namespace {

// -1: none was measured.
i64 fastest(const Sizes& sizes) {
  i64 best = -1;
  for (i64 at = 0; at < sizes.count(); ++at)
    if (sizes.is(at, TrialStatus::kMeasured) && (best < 0 || sizes.of(at).rate > sizes.of(best).rate))
      best = at;
  return best;
}

// The largest without retries of the allocator; -1: none.
i64 star_of(const Sizes& sizes) {
  i64 star = -1;
  for (i64 at = 0; at < sizes.count(); ++at)
    if (sizes.is(at, TrialStatus::kMeasured) && sizes.of(at).alloc_retries == 0) star = at;
  return star;
}

// Sizes given as `auto`, of which no prediction says what fits: they double from the smallest.
bool doubles(std::span<const Candidate> all, const Group& layout, const Strategy& strategy) {
  return strategy.auto_micro_batch && nothing_predicted(all, layout);
}

// Two larger sizes were hardly faster than this one: larger ones still are not worth a trial.
bool saturates(const Sizes& sizes) {
  constexpr double kHardly = 0.98;
  if (fastest(sizes) < 0) return false;
  const double enough = kHardly * sizes.of(fastest(sizes)).rate;
  i64 beyond = -1;  // measured sizes above the smallest that is fast enough
  for (i64 at = 0; at < sizes.count(); ++at)
    if (sizes.is(at, TrialStatus::kMeasured) && (beyond >= 0 || sizes.of(at).rate >= enough)) ++beyond;
  return beyond >= 2;
}

// Above the star, below the first size with retries.
std::optional<i64> towards_star(const Sizes& sizes) {
  const i64 star = star_of(sizes);
  i64 retries = star + 1;
  while (retries < sizes.count() && !(sizes.is(retries, TrialStatus::kMeasured))) ++retries;
  if (retries >= sizes.count() || retries - star <= 1) return {};
  const i64 between = star + (retries - star) / 2;
  return sizes.is(between, TrialStatus::kWaiting) ? std::optional(between)
                                                  : std::nullopt;  // else it ran out of memory
}

// Rates rise to the fastest and fall behind it. It is mostly near the largest: steps away from there double.
std::optional<i64> towards_fastest(const Sizes& sizes) {
  const i64 best = fastest(sizes);
  if (best < 0) return {};
  if (sizes.is(best + 1, TrialStatus::kWaiting)) return best + 1;
  if (!sizes.is(best - 1, TrialStatus::kWaiting)) return {};
  i64 below = best - 1;
  while (sizes.is(below, TrialStatus::kWaiting)) --below;
  const i64 step = std::max<i64>(1, sizes.largest_that_fits() - best);
  return best - std::min(step, std::max<i64>(1, (best - below) / 2));
}

// "; micro_batch_size 6, 7 failed" of the trials that tell nothing of a size; empty: there are none.
std::string failed_sizes(std::span<const Candidate> all, const Group& layout) {
  std::vector<i64> sizes;
  for (const std::size_t i : layout)
    if (all[i].status == TrialStatus::kFailed && all[i].tried) sizes.push_back(micro_batch_of(all[i]));
  return sizes.empty() ? "" : fmt::format("; micro_batch_size {} failed", fmt::join(sizes, ", "));
}

std::string answer(const Sizes& sizes, bool saturated) {
  const i64 best = fastest(sizes);
  if (best < 0)
    return fmt::format("no micro-batch of this layout was measured; {} ran out of memory", sizes.tried());
  const i64 star = star_of(sizes), largest = sizes.largest_that_fits();
  const bool open = sizes.is(best - 1, TrialStatus::kWaiting) || sizes.is(best + 1, TrialStatus::kWaiting);
  return fmt::format(
      "not tried: {} trials show that micro_batch_size {} is the largest that {}{} and {} the fastest{}",
      sizes.tried(), sizes.size(largest), saturated ? "is worth a trial" : "fits",
      star >= 0 && star != largest
          ? fmt::format(", {} the largest without allocator retries", sizes.size(star))
          : "",
      sizes.size(best), open ? " of those measured" : "");
}

class MicroBatches final : public Chooser {
 public:
  MicroBatches(std::span<const Candidate> all, const Group& layout, const Strategy& strategy)
      : all_(all), layout_(layout), strategy_(strategy) {}
  void decide(i64& left, Decision&) override;

 private:
  std::span<const Candidate> all_;
  const Group& layout_;
  const Strategy& strategy_;
};

void MicroBatches::decide(i64& left, Decision& decision) {
  const Sizes sizes(all_, layout_, micro_batch_of);
  if (sizes.count() == 0 || sizes.any_runs()) return;
  const bool doubling = doubles(all_, layout_, strategy_) && sizes.smallest_too_large() == sizes.count();
  const bool saturated = doubling && saturates(sizes);
  auto next = saturated ? std::optional<i64>() : doubling ? doubled(sizes) : bracket(sizes);
  const bool may_refine = sizes.tried() < most_batch_trials(all_, layout_, strategy_);
  if (!next && may_refine) next = towards_star(sizes);
  if (!next && may_refine) next = towards_fastest(sizes);
  if (!next)
    return rule_out_rest(all_, layout_, to_string(StrategyKind::kBatch),
                         answer(sizes, saturated) + failed_sizes(all_, layout_), decision);
  if (left <= 0) return;
  decision.next.push_back(sizes.candidate(*next));
  --left;
}

}  // namespace

i64 most_batch_trials(std::span<const Candidate> all, const Group& layout, const Strategy& strategy) {
  const i64 least = all[layout.front()].trial->micro_batch_size,
            most = all[layout.back()].trial->micro_batch_size;
  const auto doublings = static_cast<i64>(std::ceil(std::log2(static_cast<double>(most - least + 1))));
  return (doubles(all, layout, strategy) ? 2 * doublings : doublings) + 2;
}

std::unique_ptr<Chooser> make_batch(std::span<const Candidate> all, const Group& layout,
                                    const Strategy& strategy) {
  return std::make_unique<MicroBatches>(all, layout, strategy);
}
// A grid chooses nothing but sizes given as `auto`.
std::unique_ptr<Chooser> make_grid(std::span<const Candidate> all, const Group& layout,
                                   const Strategy& strategy) {
  return make_batch(all, layout, strategy);
}

}  // namespace sweep::search
