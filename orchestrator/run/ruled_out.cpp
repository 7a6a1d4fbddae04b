#include "orchestrator/run/ruled_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace sweep::run {
namespace {

constexpr std::size_t kReasonsTold = 3;

std::string not_run(i64 count) {
  return fmt::format("{} {} not run", count, count == 1 ? "trial is" : "trials are");
}

// One line for each reason; of many reasons one line in all, since `explain` has that of each trial.
Expected<void> note_rule(const RunContext& context, const std::string& rule,
                         const std::map<std::string, i64>& reasons) {
  if (reasons.size() > kReasonsTold) {
    i64 all = 0;
    for (const auto& [reason, count] : reasons) all += count;
    const auto& first = reasons.begin()->first;
    return context.note("strategy", fmt::format("{}; {}: {} reasons, one of them: {}", not_run(all), rule,
                                                reasons.size(), first));
  }
  for (const auto& [reason, count] : reasons)
    SWEEP_TRY(context.note("strategy", fmt::format("{}; {}: {}", not_run(count), rule, reason)));
  return {};
}

}  // namespace

Expected<std::vector<std::string>> store_ruled_out(const RunContext& context,
                                                   const std::vector<store::NotRun>& trials) {
  std::vector<std::string> out;
  if (trials.empty()) return out;
  const auto stored = context.store.rule_out(context.settings.sweep, trials);
  if (!stored) return stored;
  std::map<std::string, std::map<std::string, i64>> reasons;  // reasons of each rule
  i64 audited = 0;
  for (const auto& each : trials) {
    if (std::ranges::find(*stored, each.trial_id) == stored->end()) continue;
    audited += each.audited;
    if (each.audited) continue;
    ++reasons[each.rule][each.reason];
    out.push_back(each.trial_id);
  }
  for (const auto& [rule, counts] : reasons) SWEEP_TRY(note_rule(context, rule, counts));
  if (audited > 0)
    SWEEP_TRY(context.note("strategy", fmt::format("{} of the pruned trials {} all the same, as an audit",
                                                   audited, audited == 1 ? "runs" : "run")));
  return out;
}

}  // namespace sweep::run
