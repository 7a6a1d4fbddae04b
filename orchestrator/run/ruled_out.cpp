#include "orchestrator/run/ruled_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace sweep::run {

Expected<std::vector<std::string>> store_ruled_out(const RunContext& context,
                                                   const std::vector<store::NotRun>& trials) {
  std::vector<std::string> out;
  if (trials.empty()) return out;
  const auto stored = context.store.rule_out(context.settings.sweep, trials);
  if (!stored) return stored;
  std::map<std::string, i64> reasons;
  i64 audited = 0;
  for (const auto& each : trials) {
    if (std::ranges::find(*stored, each.trial_id) == stored->end()) continue;
    audited += each.audited;
    if (each.audited) continue;
    ++reasons[each.rule + ": " + each.reason];
    out.push_back(each.trial_id);
  }
  for (const auto& [reason, count] : reasons)
    SWEEP_TRY(context.note(
        "strategy", fmt::format("{} {} not run; {}", count, count == 1 ? "trial is" : "trials are", reason)));
  if (audited > 0)
    SWEEP_TRY(context.note("strategy", fmt::format("{} of the pruned trials {} all the same, as an audit",
                                                   audited, audited == 1 ? "runs" : "run")));
  return out;
}

}  // namespace sweep::run
