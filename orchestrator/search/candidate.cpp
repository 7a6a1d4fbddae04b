#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "bench_kernels/shape/documents.h"
#include "orchestrator/search/chooser.h"

namespace sweep::search {
namespace {

// The group with the highest score first.
void order_by_score(std::span<const Candidate> all, std::vector<Group>& groups) {
  const auto score = [&](const Group& group) {
    double best = 0;
    for (const std::size_t i : group)
      best = std::max(best, all[i].fit_chance * all[i].predicted_rate.value_or(0));
    return -best;
  };
  std::ranges::stable_sort(groups, {}, score);
}

i64 most_of(std::span<const Candidate> all, const Group& group, const Strategy& strategy) {
  switch (strategy.scope()) {
    case StrategyScope::kLayout:
      return most_batch_trials(all, group, strategy);
    case StrategyScope::kModels:
      return most_grow_trials(all, group);
    default:
      return strategy.max_trials;
  }
}

}  // namespace

double useful_tokens_of_a_rank(const Trial& t) {
  const double tokens = static_cast<double>(t.global_batch_size) * static_cast<double>(t.seq_len);
  return shape::useful_share(t) * tokens / static_cast<double>(t.world());
}

Candidate candidate_of(const PlanEntry& entry, std::optional<double> memory_share) {
  Candidate out;
  const Trial& t = entry.trial;
  out.trial = &t, out.id = entry.id, out.predicted_bytes = entry.predicted.bytes;
  if (entry.predicted.step_ms && *entry.predicted.step_ms > 0) {
    out.predicted_rate = 1e3 * useful_tokens_of_a_rank(t) / *entry.predicted.step_ms;
  }
  if (memory_share) out.fit_chance = chance_to_fit(*memory_share, 1);
  return out;
}

std::vector<Group> groups_of(std::span<const Candidate> all, const Strategy& strategy) {
  if (strategy.scope() == StrategyScope::kEveryTrial) return {};
  if (strategy.scope() == StrategyScope::kQuestion) return questions(all);
  auto out = strategy.scope() == StrategyScope::kModels ? settings_of_models(all) : layouts(all);
  order_by_score(all, out);
  return out;
}

Most most_trials(std::span<const Candidate> all, const Strategy& strategy, std::span<const double> cost) {
  Most out;
  if (strategy.runs_all())
    return {static_cast<i64>(all.size()), std::accumulate(cost.begin(), cost.end(), 0.0)};
  for (Group group : groups_of(all, strategy)) {
    const i64 most = std::min(static_cast<i64>(group.size()), most_of(all, group, strategy));
    std::ranges::stable_sort(group, std::greater(), [&](std::size_t i) { return cost[i]; });
    out.trials += most;
    for (std::size_t k = 0; k < static_cast<std::size_t>(most); ++k) out.cost += cost[group[k]];
  }
  return out;
}

double chance_to_fit(double need, double limit) {
  constexpr double kWidth = 0.05;
  if (need <= 0 || limit <= 0) return kUnknownFit;
  return std::clamp(1 / (1 + std::pow(need / limit, 1 / kWidth)), kLeastFit, 1 - kLeastFit);
}

}  // namespace sweep::search
