// Candidate: what a strategy knows of one trial of the plan. Decision: what is to be done next. Both are
// plain values.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schema/plan_entry.h"
#include "schema/strategy.h"

namespace sweep::search {

enum class TrialStatus {
  kWaiting,
  kRunning,
  kMeasured,
  kOutOfMemory,
  kFailed,  // it has an answer or gave up, and it is no rate
};

// The chance to fit of a trial without a prediction.
inline constexpr double kUnknownFit = 0.95;
// The chance of a trial that is predicted not to fit.
inline constexpr double kLeastFit = 0.02;

// The known facts about a trial's run.
struct Known {
  TrialStatus status = TrialStatus::kWaiting;
  bool tried = false;     // it failed, and a trial was spent on it
  bool host_oom = false;  // it was the host's memory, which others use too
  double rate = 0;        // rate, if measured
  i64 alloc_retries = 0;  // allocator retries, if measured
};

struct Candidate : Known {
  const Trial* trial = nullptr;
  std::string_view id{};
  // Useful tokens per second and rank; nullopt: nothing is predicted.
  std::optional<double> predicted_rate{};
  std::optional<i64> predicted_bytes{};
  // How likely it is that it fits, by the plan's prediction.
  double fit_chance = kUnknownFit;
};

// Tokens that a rank processes in a step, without padding as far as the trial tells it.
double useful_tokens_of_a_rank(const Trial&);

// A candidate by the plan alone: nothing is known yet of its run.
Candidate candidate_of(const PlanEntry&, std::optional<double> memory_share);

// A trial that the strategy never starts, and why. The rule is kHistoryRule, kRecomputeRule or the strategy's
// word.
struct RuledOut {
  std::size_t candidate = 0;
  std::string rule, reason;
};

struct Decision {
  // Trials to start now, in this order; never more than at_once with those that run.
  std::vector<std::size_t> next;
  std::vector<RuledOut> ruled_out;
  // Messages about the decision; empty: nothing new.
  std::vector<std::string> notes;
};

// The most trials that a strategy starts of these, most of them unknown yet. All of them where it runs all.
struct Most {
  i64 trials = 0;
  // Cost of that many of the most expensive trials of each group; `cost` is indexed by the candidate.
  double cost = 0;
};
Most most_trials(std::span<const Candidate>, const Strategy&, std::span<const double> cost);

// How likely a need of so many bytes fits below a limit: one half at the limit, 95 % below 0.86 of it.
double chance_to_fit(double need, double limit);

}  // namespace sweep::search
