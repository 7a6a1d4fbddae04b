#include "orchestrator/search/replay.h"

#include <algorithm>
#include <numeric>

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
  std::vector<Candidate> now(all.begin(), all.end());
  std::vector<std::size_t> order;
  for (;;) {
    const Decision decision = decide(now, strategy);
    for (const RuledOut& out : decision.ruled_out) now[out.candidate].standing = Standing::kFailed;
    for (const std::size_t i : decision.next) {
      now[i].standing = answers[i].standing, now[i].rate = answers[i].rate;
      now[i].alloc_retries = answers[i].alloc_retries, now[i].tried = true;
      order.push_back(i);
    }
    if (decision.next.empty()) return order;
  }
}

}  // namespace sweep::search
