#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "orchestrator/search/history.h"
#include "orchestrator/search/strategies.h"

namespace sweep::search {
namespace {

i64 running(std::span<const Candidate> all) {
  return std::ranges::count(all, Standing::kRunning, &Candidate::standing);
}

bool by_layout(const Strategy& strategy) {
  return strategy.kind == StrategyKind::kBatch ||
         (strategy.kind == StrategyKind::kGrid && strategy.auto_micro_batch);
}

// The layout that promises most first.
void order_by_promise(std::span<const Candidate> all, std::vector<Group>& layouts) {
  const auto promise = [&](const Group& layout) {
    double best = 0;
    for (const std::size_t i : layout)
      best = std::max(best, all[i].fit_chance * all[i].predicted_rate.value_or(0));
    return -best;
  };
  std::ranges::stable_sort(layouts, {}, promise);
}

}  // namespace

Candidate candidate_of(const PlanEntry& entry, std::optional<double> memory_share) {
  Candidate out;
  const Trial& t = entry.trial;
  out.trial = &t, out.id = entry.id, out.predicted_bytes = entry.predicted.bytes;
  if (entry.predicted.step_ms && *entry.predicted.step_ms > 0) {
    const double tokens = static_cast<double>(t.global_batch_size) * static_cast<double>(t.seq_len);
    out.predicted_rate = 1e3 * tokens / *entry.predicted.step_ms / static_cast<double>(t.world());
  }
  if (memory_share) out.fit_chance = chance_to_fit(*memory_share, 1);
  return out;
}

Most most_trials(std::span<const Candidate> all, const Strategy& strategy, std::span<const double> cost) {
  Most out;
  Group everything(all.size());
  std::iota(everything.begin(), everything.end(), std::size_t{0});
  const bool layout = by_layout(strategy);
  const auto groups = strategy.runs_all() ? std::vector<Group>{everything}
                      : layout            ? layouts(all)
                                          : questions(all);
  for (Group group : groups) {
    auto most = static_cast<i64>(group.size());
    if (!strategy.runs_all())
      most = std::min(most, layout ? most_batch_trials(all, group, strategy) : strategy.max_trials);
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

Decision decide(std::span<const Candidate> all, const Strategy& strategy) {
  Decision out;
  auto groups = layouts(all);
  out.ruled_out = ruled_out_by_history(all, groups, {strategy.uses_history(), strategy.skips_recompute()});
  std::vector<Candidate> now(all.begin(), all.end());
  for (const RuledOut& each : out.ruled_out) now[each.candidate].standing = Standing::kFailed;
  i64 left = std::max<i64>(0, strategy.at_once - running(all));
  if (by_layout(strategy)) {
    order_by_promise(now, groups);
    for (const Group& layout : groups) decide_micro_batch(now, layout, strategy, left, out);
  } else {
    const auto of_question = strategy.kind == StrategyKind::kPlaybook ? decide_playbook : decide_few_trials;
    for (const Group& question : questions(now)) of_question(now, question, strategy, left, out);
  }
  return out;
}

}  // namespace sweep::search
