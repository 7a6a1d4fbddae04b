#include "orchestrator/search/learner.h"

#include <algorithm>
#include <numeric>

namespace sweep::search {
namespace {

using MakeChooser = std::unique_ptr<Chooser> (*)(std::span<const Candidate>, const Group&, const Strategy&);
// Makers in the order of StrategyKind.
constexpr MakeChooser kMake[] = {
#define STRATEGY(name, word, ...) make_##word,
#include "schema/strategies.def"
#undef STRATEGY
};
constexpr std::size_t kNoGroup = static_cast<std::size_t>(-1);

std::size_t first_from(const std::set<std::size_t>& groups, std::size_t least) {
  const auto found = groups.lower_bound(least);
  return found == groups.end() ? kNoGroup : *found;
}

std::vector<std::size_t> best_predicted_first(std::span<const Candidate> all) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return std::pair(all[i].fit_chance < 0.5, -all[i].predicted_rate.value_or(0));
  });
  return order;
}

}  // namespace

Learner::Learner(std::vector<Candidate> all, const Strategy& strategy)
    : all_(std::move(all)),
      strategy_(strategy),
      history_(all_, {strategy.uses_history(), strategy.skips_recompute()}),
      groups_(groups_of(all_, strategy)),
      group_of_(groups_.empty() ? 0 : all_.size()) {
  for (const Candidate& each : all_) {
    running_ += each.status == TrialStatus::kRunning;
    waiting_ += each.status == TrialStatus::kWaiting;
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (const std::size_t i : groups_[g]) group_of_[i] = g;
    choosers_.push_back(kMake[static_cast<std::size_t>(strategy.kind)](all_, groups_[g], strategy_));
    changed_.insert(changed_.end(), g);
  }
  // The smallest that ran out of memory first: it rules out the most, and is the one that is named.
  Group order(all_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return all_[i].trial->micro_batch_size; });
  for (const std::size_t i : order)
    if (all_[i].status != TrialStatus::kWaiting) conclude(i);
}

void Learner::started(std::size_t candidate) {
  Known running = all_[candidate];
  running.status = TrialStatus::kRunning;
  set(candidate, running);
}

void Learner::finished(std::size_t candidate, const Known& known) {
  set(candidate, known);
  conclude(candidate);
}

void Learner::set(std::size_t candidate, const Known& known) {
  const auto count = [&](i64 sign) {
    const TrialStatus status = all_[candidate].status;
    running_ += sign * (status == TrialStatus::kRunning),
        waiting_ += sign * (status == TrialStatus::kWaiting);
  };
  count(-1);
  static_cast<Known&>(all_[candidate]) = known;
  count(1);
  if (!group_of_.empty()) changed_.insert(group_of_[candidate]);
}

void Learner::rule_out(const RuledOut& each) {
  Known out = all_[each.candidate];
  out.status = TrialStatus::kFailed;
  set(each.candidate, out);
}

void Learner::conclude(std::size_t candidate) {
  for (RuledOut& each : history_.concluded_from(all_, candidate)) {
    rule_out(each);
    concluded_.push_back(std::move(each));
  }
}

// A group with nothing new starts trials where others leave room; without room it has nothing to say.
Decision Learner::next() {
  Decision out;
  out.ruled_out.swap(concluded_);
  i64 left = std::max<i64>(0, strategy_.at_once - running_);
  std::size_t g = 0;
  while ((g = std::min(first_from(changed_, g), left > 0 ? first_from(open_, g) : kNoGroup)) != kNoGroup) {
    const std::size_t before = out.ruled_out.size();
    choosers_[g]->decide(left, out);
    for (std::size_t k = before; k < out.ruled_out.size(); ++k) rule_out(out.ruled_out[k]);
    changed_.erase(g), open_.erase(g);
    const bool waits = std::ranges::any_of(
        groups_[g], [&](std::size_t i) { return all_[i].status == TrialStatus::kWaiting; });
    if (waits) open_.insert(g);
    ++g;
  }
  return out;
}

std::vector<std::size_t> replay(std::span<const Candidate> all, std::span<const Candidate> answers,
                                const Strategy& strategy) {
  if (strategy.runs_all()) return best_predicted_first(all);
  Learner learner({all.begin(), all.end()}, strategy);
  std::vector<std::size_t> order;
  for (;;) {
    const auto next = learner.next().next;
    if (next.empty()) return order;
    for (const std::size_t i : next) {
      Known answer = answers[i];
      answer.tried = true;
      learner.finished(i, answer);
      order.push_back(i);
    }
  }
}

}  // namespace sweep::search
