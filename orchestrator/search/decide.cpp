#include <algorithm>
#include <cmath>

#include "orchestrator/search/strategies.h"

namespace sweep::search {
namespace {

i64 running(std::span<const Candidate> all) {
  return std::ranges::count(all, Standing::kRunning, &Candidate::standing);
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

double chance_to_fit(double need, double limit) {
  constexpr double kWidth = 0.05;
  if (need <= 0 || limit <= 0) return kUnknownFit;
  return std::clamp(1 / (1 + std::pow(need / limit, 1 / kWidth)), kLeastFit, 1 - kLeastFit);
}

Decision decide(std::span<const Candidate> all, const Strategy& strategy) {
  Decision out;
  auto groups = layouts(all);
  out.ruled_out = ruled_out_by_memory(all, groups);
  std::vector<Candidate> now(all.begin(), all.end());
  for (const RuledOut& each : out.ruled_out) now[each.candidate].standing = Standing::kFailed;
  i64 left = std::max<i64>(0, strategy.at_once - running(all));
  if (strategy.kind == StrategyKind::kBatch) {
    order_by_promise(now, groups);
    for (const Group& layout : groups) decide_micro_batch(now, layout, left, out);
  } else {
    const auto of_question = strategy.kind == StrategyKind::kPlaybook ? decide_playbook : decide_few_trials;
    for (const Group& question : questions(now)) of_question(now, question, strategy, left, out);
  }
  return out;
}

}  // namespace sweep::search
