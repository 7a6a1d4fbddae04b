#include "orchestrator/search/sizes.h"

#include <algorithm>
#include <cmath>

#include "bench_kernels/shape/count.h"

namespace sweep::search {

i64 micro_batch_of(const Candidate& c) {
  return c.trial->micro_batch_size;
}

i64 parameters_of(const Candidate& c) {
  return shape::parameter_count(c.trial->spec);
}

Sizes::Sizes(std::span<const Candidate> all, const Group& group, SizeOf size_of)
    : all_(all), size_of_(size_of) {
  for (const std::size_t i : group)
    if (all[i].status != TrialStatus::kFailed) sizes_.push_back(i);
}

i64 Sizes::tried() const {
  return std::ranges::count_if(sizes_,
                               [&](std::size_t i) { return all_[i].status != TrialStatus::kWaiting; });
}

bool Sizes::any_runs() const {
  return std::ranges::any_of(sizes_, [&](std::size_t i) { return all_[i].status == TrialStatus::kRunning; });
}

i64 Sizes::largest_that_fits() const {
  i64 largest = -1;
  for (i64 at = 0; at < count(); ++at)
    if (is(at, TrialStatus::kMeasured)) largest = at;
  return largest;
}

i64 Sizes::smallest_too_large() const {
  i64 at = 0;
  while (at < count() && !is(at, TrialStatus::kOutOfMemory)) ++at;
  return at;
}

bool nothing_predicted(std::span<const Candidate> all, const Group& group) {
  return std::ranges::all_of(group, [&](std::size_t i) { return all[i].fit_chance == kUnknownFit; });
}

std::optional<i64> doubled(const Sizes& sizes) {
  const i64 fits = sizes.largest_that_fits();
  if (fits < 0) return 0;
  if (fits + 1 >= sizes.count()) return {};
  i64 next = fits + 1;
  while (next + 1 < sizes.count() && sizes.size(next) < 2 * sizes.size(fits)) ++next;
  return next;
}

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

}  // namespace sweep::search
