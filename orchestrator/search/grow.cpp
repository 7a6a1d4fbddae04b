// grow: of the trials that differ by their model alone, the largest model that fits.
#include <fmt/format.h>

#include <cmath>

#include "orchestrator/search/chooser.h"
#include "orchestrator/search/sizes.h"

namespace sweep::search {
namespace {

std::string answer(const Sizes& models) {
  const i64 largest = models.largest_that_fits();
  if (largest < 0) return fmt::format("no model fits in this setting; {} tried", models.tried());
  return fmt::format("not tried: {} trials show that {} ({:.3g} G parameters) is the largest model that fits",
                     models.tried(), models.of(largest).trial->model,
                     static_cast<double>(models.size(largest)) / 1e9);
}

class LargestModel final : public Chooser {
 public:
  LargestModel(std::span<const Candidate> all, const Group& setting) : all_(all), setting_(setting) {}

  void decide(i64& left, Decision& decision) override {
    const Sizes models(all_, setting_, parameters_of);
    if (models.count() == 0 || models.any_runs()) return;
    // Without a prediction a model far too large could take the host's memory: they double from the smallest.
    const bool doubling = nothing_predicted(all_, setting_) && models.smallest_too_large() == models.count();
    const auto next = doubling ? doubled(models) : bracket(models);
    if (!next) return rule_out_rest(all_, setting_, to_string(StrategyKind::kGrow), answer(models), decision);
    if (left <= 0) return;
    decision.next.push_back(models.candidate(*next));
    --left;
  }

 private:
  std::span<const Candidate> all_;
  const Group& setting_;
};

}  // namespace

i64 most_grow_trials(std::span<const Candidate> all, const Group& setting) {
  const auto log2 = [](i64 n) { return static_cast<i64>(std::ceil(std::log2(static_cast<double>(n)))); };
  const i64 least = std::max<i64>(1, parameters_of(all[setting.front()]));
  const i64 doublings =
      nothing_predicted(all, setting) ? 1 + log2(1 + parameters_of(all[setting.back()]) / least) : 0;
  return doublings + log2(static_cast<i64>(setting.size())) + 2;
}

std::unique_ptr<Chooser> make_grow(std::span<const Candidate> all, const Group& setting, const Strategy&) {
  return std::make_unique<LargestModel>(all, setting);
}

}  // namespace sweep::search
