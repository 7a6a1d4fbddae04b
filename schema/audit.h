// Audit: a share of the trials that a rule prunes is run all the same, to see how often the rule is wrong
// (`sweep run --audit`). Such a trial is admitted and keeps the rule and the reason of its pruning.
#pragma once
#include <string_view>

#include "schema/plan_entry.h"

namespace sweep {

// Rules that conclude that a trial does not fit; and those that conclude that it is not the best. The other
// rules say that a trial cannot be expressed, or was not asked for: nothing of them is audited.
// kHistoryRule and kRecomputeRule stand on results; a strategy's rule is its name (schema/strategies.def). `grow` is
// not among them: it compares models, and no rate says which of two models is right.
inline constexpr std::string_view kMemoryRule = "memory", kHistoryRule = "history",
                                  kRecomputeRule = "recompute";
bool is_fit_rule(std::string_view);
bool is_rank_rule(std::string_view);
inline bool is_audited_rule(std::string_view rule) {
  return is_fit_rule(rule) || is_rank_rule(rule);
}

// Decides by the trial's id alone: the same trials each time, every trial with the same chance.
bool is_in_audit(std::string_view trial_id, double share);
inline bool is_audited(const PlanEntry& entry) {
  return entry.admitted && !entry.rule.empty();
}

}  // namespace sweep
