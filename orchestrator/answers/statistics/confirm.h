// Confirmation: whether the order of a few configurations holds when each was measured again in several
// allocations. Pure statistics over values that follow from step times; docs/confirm.md has the formulas.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/answers/statistics/statistics.h"

namespace sweep::answers {

// One configuration measured again: a value for each repeat of each allocation.
struct Remeasured {
  std::string trial_id, configuration;
  double before = 0;  // the value it was chosen for
  struct Visit {
    std::string allocation;
    std::vector<double> values;  // above 0
  };
  std::vector<Visit> visits;
  std::string problem;  // why it has no further values; empty: it was measured as asked
};

// Shares: 0.01 is 1 % of the value.
struct Spread {
  double value = 0;               // geometric mean over allocations
  std::optional<Interval> range;  // its 95 % interval, from the allocations' means; absent for one allocation
  std::optional<double> between;  // standard deviation between allocations, beyond what repeats explain
  std::optional<double> within;   // standard deviation between repeats of one allocation
};
std::optional<Spread> spread_of(const Remeasured&);

enum class RankingStatus {
  kLeader,   // it was first before
  kBehind,   // clearly behind the leader
  kTied,     // its interval against the leader holds 0
  kAhead,    // clearly ahead of the leader: the ranking does not hold
  kUnknown,  // fewer than two allocations in common
};
// Against the leader, pair by pair within the allocations both were measured in.
struct Versus {
  RankingStatus status = RankingStatus::kUnknown;
  std::optional<double> share;    // value / leader's value - 1
  std::optional<Interval> range;  // 95 %
};
// `larger_is_better`: of the values. one.visits and leader.visits are matched by allocation.
Versus versus(const Remeasured& one, const Remeasured& leader, bool larger_is_better);

// The two-sided 95 % quantile of Student's t.
double student_t95(std::size_t degrees_of_freedom);

struct ConfirmedTrial {
  Remeasured of;
  std::optional<Spread> spread;  // nullopt: it was not measured again
  Versus against;                // against the first
};
struct Confirmed {
  std::string metric;
  std::vector<ConfirmedTrial> trials;  // trials in the order before, the leader first
  std::string verdict;                 // a sentence
  bool holds = false;  // no configuration is clearly ahead of the leader, and the leader was measured
};
// `all`: in the order before, the leader first. `metric`: of the table of fields.
Confirmed confirmed(const std::vector<Remeasured>& all, const std::string& metric);
std::string confirmed_text(const Confirmed&);  // the table and the sentence below it
// `ended_early`: why the measuring did, so that nothing is decided; empty: it did not.
nlohmann::json confirmed_json(const Confirmed&, const std::string& ended_early);

}  // namespace sweep::answers
