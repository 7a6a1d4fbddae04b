// batch: of one layout the largest micro-batch that fits, the largest before the allocator has to ask twice
// (the star), and the fastest.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "orchestrator/search/chooser.h"

namespace sweep::search {
namespace {

// The sizes of a layout that can still tell something: what failed otherwise than for memory is left out.
class Sizes {
 public:
  Sizes(std::span<const Candidate> all, const Group& layout) : all_(all) {
    for (const std::size_t i : layout)
      if (all[i].standing != Standing::kFailed) sizes_.push_back(i);
  }

  i64 count() const { return static_cast<i64>(sizes_.size()); }
  std::size_t candidate(i64 at) const { return sizes_[static_cast<std::size_t>(at)]; }
  const Candidate& of(i64 at) const { return all_[candidate(at)]; }
  bool is(i64 at, Standing standing) const { return at >= 0 && at < count() && of(at).standing == standing; }
  i64 tried() const {
    i64 n = 0;
    for (i64 at = 0; at < count(); ++at) n += !is(at, Standing::kWaiting);
    return n;
  }
  bool any_runs() const {
    for (i64 at = 0; at < count(); ++at)
      if (is(at, Standing::kRunning)) return true;
    return false;
  }
  // -1: none fits so far.
  i64 largest_that_fits() const {
    i64 largest = -1;
    for (i64 at = 0; at < count(); ++at)
      if (is(at, Standing::kMeasured)) largest = at;
    return largest;
  }
  i64 smallest_too_large() const {
    for (i64 at = 0; at < count(); ++at)
      if (is(at, Standing::kOutOfMemory)) return at;
    return count();
  }
  i64 fastest() const {
    i64 best = -1;
    for (i64 at = 0; at < count(); ++at)
      if (is(at, Standing::kMeasured) && (best < 0 || of(at).rate > of(best).rate)) best = at;
    return best;
  }
  // The largest without retries of the allocator; -1: none.
  i64 star() const {
    i64 star = -1;
    for (i64 at = 0; at < count(); ++at)
      if (is(at, Standing::kMeasured) && of(at).alloc_retries == 0) star = at;
    return star;
  }
  i64 size(i64 at) const { return of(at).trial->micro_batch_size; }

 private:
  std::span<const Candidate> all_;
  Group sizes_;
};

// Sizes given as `auto`, of which no prediction says what fits: they double from the smallest.
bool doubles(std::span<const Candidate> all, const Group& layout, const Strategy& strategy) {
  return strategy.auto_micro_batch &&
         std::ranges::all_of(layout, [&](std::size_t i) { return all[i].fit_chance == kUnknownFit; });
}

// Two larger sizes were hardly faster than this one: larger ones still are not worth a trial.
bool saturates(const Sizes& sizes) {
  constexpr double kHardly = 0.98;
  if (sizes.fastest() < 0) return false;
  const double enough = kHardly * sizes.of(sizes.fastest()).rate;
  i64 beyond = -1;  // measured sizes above the smallest that is fast enough
  for (i64 at = 0; at < sizes.count(); ++at)
    if (sizes.is(at, Standing::kMeasured) && (beyond >= 0 || sizes.of(at).rate >= enough)) ++beyond;
  return beyond >= 2;
}

// The next size at least twice as large as the largest that fits so far, or the last one.
std::optional<i64> doubled(const Sizes& sizes) {
  const i64 fits = sizes.largest_that_fits();
  if (fits < 0) return 0;
  if (fits + 1 >= sizes.count()) return {};
  i64 next = fits + 1;
  while (next + 1 < sizes.count() && sizes.size(next) < 2 * sizes.size(fits)) ++next;
  return next;
}

// Chooses the trial that halves the range in which the largest fitting size may be, by the plan's prediction
// and, for a third, anywhere. Its cost is at most log2 of the number of sizes, and 2, whatever the prediction
// is worth.
std::optional<i64> bracket(const Sizes& sizes) {
  constexpr double kAnywhere = 1.0 / 3;
  const i64 fits = sizes.largest_that_fits(), too_large = sizes.smallest_too_large();
  if (too_large - fits <= 1) return {};
  const auto chance = [&](i64 at) {
    if (at < 0) return 1.0;
    return at < sizes.count() ? sizes.of(at).fit_chance : 0.0;
  };
  const auto mass = [&](i64 at) {  // probability that `at` is the largest that fits
    return kAnywhere / static_cast<double>(sizes.count() + 1) +
           (1 - kAnywhere) * std::max(0.0, chance(at) - chance(at + 1));
  };
  double all = 0, below = 0;
  for (i64 at = fits; at < too_large; ++at) all += mass(at);
  i64 best = fits + 1;
  double nearest = 2;
  for (i64 at = fits + 1; at < too_large; ++at) {
    below += mass(at - 1);
    if (std::abs(below / all - 0.5) < nearest) nearest = std::abs(below / all - 0.5), best = at;
  }
  return best;
}

// Above the star, below the first size with retries.
std::optional<i64> towards_star(const Sizes& sizes) {
  const i64 star = sizes.star();
  i64 retries = star + 1;
  while (retries < sizes.count() && !(sizes.is(retries, Standing::kMeasured))) ++retries;
  if (retries >= sizes.count() || retries - star <= 1) return {};
  const i64 between = star + (retries - star) / 2;
  return sizes.is(between, Standing::kWaiting) ? std::optional(between)
                                               : std::nullopt;  // else it ran out of memory
}

// Rates rise to the fastest and fall behind it. It is mostly near the largest: steps away from there double.
std::optional<i64> towards_fastest(const Sizes& sizes) {
  const i64 best = sizes.fastest();
  if (best < 0) return {};
  if (sizes.is(best + 1, Standing::kWaiting)) return best + 1;
  if (!sizes.is(best - 1, Standing::kWaiting)) return {};
  i64 below = best - 1;
  while (sizes.is(below, Standing::kWaiting)) --below;
  const i64 step = std::max<i64>(1, sizes.largest_that_fits() - best);
  return best - std::min(step, std::max<i64>(1, (best - below) / 2));
}

std::string answer(const Sizes& sizes, bool saturated) {
  if (sizes.fastest() < 0) return fmt::format("no micro-batch of this layout fits; {} tried", sizes.tried());
  const i64 star = sizes.star(), largest = sizes.largest_that_fits();
  return fmt::format(
      "not tried: {} trials show that micro_batch_size {} is the largest that {}{} and {} the fastest",
      sizes.tried(), sizes.size(largest), saturated ? "is worth a trial" : "fits",
      star >= 0 && star != largest
          ? fmt::format(", {} the largest without allocator retries", sizes.size(star))
          : "",
      sizes.size(sizes.fastest()));
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
  const Sizes sizes(all_, layout_);
  if (sizes.count() == 0 || sizes.any_runs()) return;
  const bool doubling = doubles(all_, layout_, strategy_) && sizes.smallest_too_large() == sizes.count();
  const bool saturated = doubling && saturates(sizes);
  auto next = saturated ? std::optional<i64>() : doubling ? doubled(sizes) : bracket(sizes);
  const bool may_refine = sizes.tried() < most_batch_trials(all_, layout_, strategy_);
  if (!next && may_refine) next = towards_star(sizes);
  if (!next && may_refine) next = towards_fastest(sizes);
  if (!next)
    return rule_out_rest(all_, layout_, to_string(StrategyKind::kBatch), answer(sizes, saturated), decision);
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
