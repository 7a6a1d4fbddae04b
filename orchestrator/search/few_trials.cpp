// search: the trial that promises most, by the prediction corrected with what was measured so far; until
// little is promised.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "orchestrator/search/residual_model.h"
#include "orchestrator/search/strategies.h"

namespace sweep::search {
namespace {

// Measured trials before a small promise ends the search.
constexpr i64 kLeastMeasured = 5;

// Of one group: which of its trials is worth a trial.
class Search {
 public:
  Search(std::span<const Candidate> all, const Group& group)
      : features_(members(all, group)), group_(members_) {
    std::vector<Observation> seen;
    for (std::size_t i = 0; i < group_.size(); ++i) {
      const Candidate& c = group_[i];
      if (c.standing == Standing::kMeasured && c.rate > 0) {
        seen.push_back({i, std::log(c.rate) - predicted(i)});
        best_ = std::max(best_.value_or(-1e300), std::log(c.rate));
      }
    }
    believe(std::move(seen));
  }

  // That a trial was spent on, or is being.
  i64 tried() const {
    return std::ranges::count_if(
        group_, [](const Candidate& c) { return c.tried || c.standing == Standing::kRunning; });
  }
  i64 measured() const { return std::ranges::count(group_, Standing::kMeasured, &Candidate::standing); }
  const Candidate& at(std::size_t i) const { return group_[i]; }
  std::size_t size() const { return group_.size(); }

  // Share that this trial is expected to gain over the best one so far; without one: how it compares with the
  // others.
  double promise(std::size_t i) const {
    if (!best_) return std::exp(predicted(i) - most_predicted()) * chance(i);
    const Estimate e = model_->at(i);
    if (e.deviation <= 0) return 0;
    const double mean = predicted(i) + e.mean, z = (mean - *best_) / e.deviation;
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    const double below = std::erfc(-z / std::numbers::sqrt2) / 2;
    return e.deviation * (z * below + density) * chance(i);
  }

  // As if this trial had been measured with the rate that is expected of it.
  void start(std::size_t i) {
    group_[i].standing = Standing::kRunning;
    believe(seen_);
  }

 private:
  const std::vector<Candidate>& members(std::span<const Candidate> all, const Group& group) {
    for (const std::size_t i : group) members_.push_back(all[i]);
    return members_;
  }
  double predicted(std::size_t i) const {
    return std::log(std::max(group_[i].predicted_rate.value_or(1), 1e-9));
  }
  double most_predicted() const {
    double most = -1e300;
    for (std::size_t i = 0; i < group_.size(); ++i)
      if (group_[i].standing == Standing::kWaiting) most = std::max(most, predicted(i));
    return most;
  }

  // The plan's chance, corrected by how near trials ended.
  double chance(std::size_t i) const {
    double weight = 1, sum = group_[i].fit_chance;
    for (std::size_t k = 0; k < group_.size(); ++k) {
      const Candidate& c = group_[k];
      const bool ran = c.standing == Standing::kMeasured;
      if (!ran && c.standing != Standing::kOutOfMemory && !(c.standing == Standing::kFailed && c.tried))
        continue;
      const double near = std::exp(-features_.distance(i, k));
      weight += near, sum += ran ? near : 0;
    }
    return sum / weight;
  }

  void believe(std::vector<Observation> seen) {
    seen_ = std::move(seen);
    model_.emplace(features_, seen_);
    auto believed = seen_;
    for (std::size_t i = 0; i < group_.size(); ++i)
      if (group_[i].standing == Standing::kRunning) believed.push_back({i, model_->at(i).mean});
    if (believed.size() > seen_.size()) model_.emplace(features_, std::move(believed));
  }

  std::vector<Candidate> members_;
  Features features_;
  std::vector<Candidate>& group_;
  std::vector<Observation> seen_;
  std::optional<double> best_;
  std::optional<ResidualModel> model_;
};

}  // namespace

void decide_few_trials(std::span<const Candidate> all, const Group& question, const Strategy& strategy,
                       i64& left, Decision& decision) {
  Search search(all, question);
  const i64 running =
      std::ranges::count_if(question, [&](std::size_t i) { return all[i].standing == Standing::kRunning; });
  for (bool none_runs = running == 0;; none_runs = false) {
    std::optional<std::size_t> chosen;
    double most = 0;
    for (std::size_t i = 0; i < search.size(); ++i) {
      if (search.at(i).standing != Standing::kWaiting) continue;
      const double promise = search.promise(i);
      if (!chosen || promise > most) chosen = i, most = promise;
    }
    if (!chosen) return;
    std::string why;
    if (search.tried() >= strategy.max_trials)
      why = fmt::format("not tried: max_trials {} were run", strategy.max_trials);
    else if (search.measured() >= kLeastMeasured && most < strategy.least_gain)
      why = fmt::format(
          "not tried: after {} trials the best of what was left promised a gain of {:.2g} %, below "
          "least_gain {:.2g} %",
          search.tried(), 100 * most, 100 * strategy.least_gain);
    if (!why.empty()) {
      if (none_runs) rule_out_rest(all, question, "search", why, decision);
      return;
    }
    if (left <= 0) return;
    decision.next.push_back(question[*chosen]);
    --left;
    search.start(*chosen);
  }
}

}  // namespace sweep::search
