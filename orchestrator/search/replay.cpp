#include "orchestrator/search/replay.h"

#include <algorithm>
#include <numeric>

#include "orchestrator/search/learner.h"

namespace sweep::search {
namespace {

std::vector<std::size_t> best_predicted_first(std::span<const Candidate> all) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return std::pair(all[i].fit_chance < 0.5, -all[i].predicted_rate.value_or(0));
  });
  return order;
}

}  // namespace

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
