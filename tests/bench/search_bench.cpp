// Measures what `strategy: search` computes between two attempts. A plan of N trials of one question (default
// 20,000; first argument) with four axes and predictions; 40 trials are run, one after another.
//   begin_ms   groups and features of the plan, once
//   gap_ms     from a result to the next trial to start: median and largest of 40
//   gap_cpu_ms processor time of the same, on average: what counts where other work runs beside it
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "orchestrator/search/learner.h"

namespace {

using namespace sweep;

constexpr i64 kTrials = 40;

std::vector<Trial> trials(i64 count) {
  std::vector<Trial> out(static_cast<std::size_t>(count));
  for (i64 i = 0; i < count; ++i) {
    Trial& t = out[static_cast<std::size_t>(i)];
    t.model = "m", t.tp = i64{1} << (i % 4), t.pp = i64{1} << (i / 4 % 4), t.zero = i / 16 % 4;
    t.micro_batch_size = t.global_batch_size = 1 + i / 64;
  }
  return out;
}

double rate(const Trial& t, double wrong) {
  const auto log = [](i64 n) { return std::log2(static_cast<double>(n)); };
  const double size = static_cast<double>(t.micro_batch_size);
  return 1e5 * size / (size + 8) /
         (1 + wrong * log(t.tp) + 0.1 * log(t.pp) + 0.05 * static_cast<double>(t.zero));
}

double milliseconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  const i64 count = argc > 1 ? std::strtoll(argv[1], nullptr, 10) : 20000;
  if (count < 64) return std::fputs("usage: search_bench [TRIALS], at least 64\n", stderr), 2;
  const auto all = trials(count);
  std::vector<search::Candidate> candidates;
  for (const Trial& t : all) {
    search::Candidate& c = candidates.emplace_back();
    c.trial = &t, c.predicted_rate = rate(t, 0.1);
  }
  Strategy strategy;
  strategy.kind = StrategyKind::kSearch, strategy.max_trials = kTrials, strategy.least_gain = 0;
  std::optional<search::Learner> learner;
  const double begin = milliseconds([&] { learner.emplace(candidates, strategy); });
  std::vector<double> gaps;
  const std::clock_t cpu = std::clock();
  auto next = learner->next().next;
  while (!next.empty()) {
    search::Known known;
    known.status = search::TrialStatus::kMeasured, known.tried = true,
    known.rate = rate(all[next.front()], 0.3);
    learner->started(next.front());
    gaps.push_back(milliseconds([&] {
      learner->finished(next.front(), known);
      next = learner->next().next;
    }));
  }
  const double cpu_ms = 1e3 * static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  std::ranges::sort(gaps);
  const nlohmann::json out{{"trials", count},
                           {"tried", gaps.size()},
                           {"begin_ms", begin},
                           {"gap_cpu_ms", cpu_ms / static_cast<double>(gaps.size())},
                           {"gap_ms", {{"median", gaps[gaps.size() / 2]}, {"largest", gaps.back()}}}};
  std::puts(out.dump().c_str());
}
