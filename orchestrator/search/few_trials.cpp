// search: the trial with the highest expected gain, by the prediction corrected with what was measured so
// far; until little gain is expected.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "orchestrator/search/chooser.h"
#include "orchestrator/search/residual_model.h"

namespace sweep::search {
namespace {

// Measured trials before a small score ends the search; without predictions so many and twice the axes.
constexpr i64 kLeastMeasured = 5;

// A number that looks random, the same each time (splitmix64).
std::uint64_t scrambled(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9, x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

class FewTrials final : public Chooser {
 public:
  FewTrials(std::span<const Candidate> all, const Group& group, const Strategy& strategy)
      : all_(all),
        group_(group),
        strategy_(strategy),
        features_(all, group),
        likeness_(features_),
        predicted_(
            std::ranges::any_of(group, [&](std::size_t i) { return all[i].predicted_rate.has_value(); })) {}
  void decide(i64& left, Decision&) override;

 private:
  struct Choice {
    std::size_t member = 0;
    double score = 0;
  };
  const Candidate& at(std::size_t member) const { return all_[group_[member]]; }
  bool waits(std::size_t member) const {
    return at(member).status == TrialStatus::kWaiting && !std::ranges::binary_search(running_, member);
  }
  void read();
  void start(std::size_t member);
  std::optional<Choice> most_promising();
  std::optional<Choice> least_tried() const;
  std::optional<Choice> chosen();
  std::string why_enough(double most) const;
  double gain_by_deviation() const;
  double predicted(std::size_t member) const {
    return predicted_ ? std::log(std::max(at(member).predicted_rate.value_or(1), 1e-9)) : level_;
  }
  double chance(std::size_t member) const;
  double gain(double predicted, const Estimate&) const;

  std::span<const Candidate> all_;
  const Group& group_;
  const Strategy& strategy_;
  Features features_;
  Likeness likeness_;
  bool predicted_;  // any of them is predicted
  // State of the decision that is being made; the index is the place in the group.
  std::vector<Observation> seen_;
  std::vector<std::size_t> running_;
  std::vector<std::pair<const Likeness::Column*, bool>> ended_;  // each with whether it was measured
  // The candidates that a trial was spent on, or is being.
  std::vector<std::size_t> tried_;
  // The mean of what was measured, as a logarithm, where there are no predictions.
  double level_ = 0;
  std::optional<double> best_;
};

void FewTrials::read() {
  seen_.clear(), running_.clear(), ended_.clear(), tried_.clear(), best_.reset();
  for (std::size_t i = 0; i < group_.size(); ++i) {
    const Candidate& c = at(i);
    const bool runs = c.status == TrialStatus::kRunning;
    if (c.tried || runs) tried_.push_back(i);
    if (runs) running_.push_back(i);
    const bool measured = c.status == TrialStatus::kMeasured;
    if (measured || c.status == TrialStatus::kOutOfMemory || (c.status == TrialStatus::kFailed && c.tried))
      ended_.emplace_back(&likeness_.with(i), measured);
    if (!measured || c.rate <= 0) continue;
    seen_.push_back({i, std::log(c.rate)});
    best_ = std::max(best_.value_or(-1e300), std::log(c.rate));
  }
  level_ = 0;
  for (const Observation& each : seen_) level_ += each.residual / static_cast<double>(seen_.size());
  for (Observation& each : seen_) each.residual -= predicted(each.candidate);
}

void FewTrials::start(std::size_t member) {
  if (!at(member).tried) tried_.push_back(member);
  running_.insert(std::ranges::upper_bound(running_, member), member);
}

// The plan's chance, corrected by how near trials ended.
double FewTrials::chance(std::size_t member) const {
  double weight = 1, sum = at(member).fit_chance;
  for (const auto& [column, measured] : ended_) {
    const double near = column->near[member];
    weight += near, sum += measured ? near : 0;
  }
  return sum / weight;
}

// The trial with the largest expected gain over the best one so far; without one, the best predicted; both
// times the chance to fit. Running trials count as measured, with the rate that is expected of them.
std::optional<FewTrials::Choice> FewTrials::most_promising() {
  std::vector<std::size_t> waiting;
  for (std::size_t i = 0; i < group_.size(); ++i)
    if (waits(i)) waiting.push_back(i);
  std::optional<Choice> out;
  const auto consider = [&](std::size_t member, double score) {
    if (!out || score > out->score) out = Choice{member, score};
  };
  if (!best_) {
    double most = -1e300;
    for (const std::size_t i : waiting) most = std::max(most, predicted(i));
    for (const std::size_t i : waiting) consider(i, std::exp(predicted(i) - most) * chance(i));
    return out;
  }
  ResidualModel model(likeness_, seen_);
  if (!running_.empty()) {
    auto expected = seen_;
    const auto of_running = model.at(running_);
    for (std::size_t k = 0; k < running_.size(); ++k) expected.push_back({running_[k], of_running[k].mean});
    model = ResidualModel(likeness_, std::move(expected));
  }
  const auto estimates = model.at(waiting);
  for (std::size_t k = 0; k < waiting.size(); ++k)
    consider(waiting[k], gain(predicted(waiting[k]), estimates[k]) * chance(waiting[k]));
  return out;
}

// The expected gain over the best one so far.
double FewTrials::gain(double predicted, const Estimate& e) const {
  if (e.deviation <= 0) return 0;
  const double mean = predicted + e.mean, z = (mean - *best_) / e.deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  const double below = std::erfc(-z / std::numbers::sqrt2) / 2;
  return e.deviation * (z * below + density);
}

// The trial whose values were tried least, until every value of every axis was tried, so that a few trials show
// what each axis does; of equals one as if drawn.
std::optional<FewTrials::Choice> FewTrials::least_tried() const {
  std::optional<Choice> out;
  bool all_tried = true;
  for (std::size_t i = 0; i < group_.size(); ++i) {
    if (!waits(i)) continue;
    double score = 1e-9 * static_cast<double>(scrambled(i) >> 40);
    for (std::size_t axis = 0; axis < features_.axes(); ++axis) {
      const auto as_this = [&](std::size_t k) { return features_.distance(axis, i, k) == 0; };
      const auto count = std::ranges::count_if(tried_, as_this);
      score += 1.0 / static_cast<double>(1 + count);
      all_tried = all_tried && count > 0;
    }
    if (!out || score > out->score) out = Choice{i, score};
  }
  return all_tried ? std::nullopt : out;
}

// Without predictions the first trials are spread, in half of the trials at most.
std::optional<FewTrials::Choice> FewTrials::chosen() {
  if (!predicted_ && 2 * static_cast<i64>(tried_.size()) < strategy_.max_trials)
    if (const auto spread = least_tried()) return spread;
  return most_promising();
}

// The largest expected gain where every waiting trial may differ from its prediction as much as the measured ones
// did, whatever its axes. Where predictions prove wrong the model of residuals is sure too early: it explains few
// trials by their axes, and says of all others that nothing is to be gained.
double FewTrials::gain_by_deviation() const {
  if (!predicted_ || !best_) return 0;
  double mean = 0, square = 0, most = 0;
  const auto count = static_cast<double>(seen_.size());
  for (const Observation& each : seen_) mean += each.residual / count;
  for (const Observation& each : seen_) square += (each.residual - mean) * (each.residual - mean) / count;
  for (std::size_t i = 0; i < group_.size(); ++i)
    if (waits(i)) most = std::max(most, gain(predicted(i), {mean, std::sqrt(square)}) * chance(i));
  return most;
}

std::string FewTrials::why_enough(double most) const {
  if (static_cast<i64>(tried_.size()) >= strategy_.max_trials)
    return fmt::format("not tried: max_trials {} were run", strategy_.max_trials);
  const i64 measured =
      std::ranges::count(group_, TrialStatus::kMeasured, [&](std::size_t i) { return all_[i].status; });
  const i64 least = kLeastMeasured + (predicted_ ? 0 : 2 * static_cast<i64>(features_.axes()));
  if (measured < least || most >= strategy_.least_gain || gain_by_deviation() >= strategy_.least_gain)
    return {};
  return fmt::format(
      "not tried: after {} trials the best of what was left promised a gain of {:.2g} %, below "
      "least_gain {:.2g} %",
      tried_.size(), 100 * most, 100 * strategy_.least_gain);
}

void FewTrials::decide(i64& left, Decision& decision) {
  read();
  for (bool none_runs = running_.empty(); left > 0 || none_runs; none_runs = false) {
    const auto best = chosen();
    if (!best) return;
    if (const auto why = why_enough(best->score); !why.empty()) {
      if (none_runs) rule_out_rest(all_, group_, to_string(StrategyKind::kSearch), why, decision);
      return;
    }
    if (left <= 0) return;
    decision.next.push_back(group_[best->member]);
    --left;
    start(best->member);
  }
}

}  // namespace

std::unique_ptr<Chooser> make_search(std::span<const Candidate> all, const Group& group,
                                     const Strategy& strategy) {
  return std::make_unique<FewTrials>(all, group, strategy);
}

}  // namespace sweep::search
