#include "orchestrator/run/memory_history.h"

#include <algorithm>

#include "orchestrator/run/ruled_out.h"
#include "orchestrator/search/history.h"
#include "schema/audit.h"

namespace sweep::run {

bool MemoryHistory::concludes_from(Outcome outcome) const {
  const Strategy& strategy = context_.settings.strategy;
  if (!strategy.runs_all() || context_.settings.rehearse_most) return false;
  return (outcome == Outcome::kOom && strategy.uses_history()) ||
         (outcome == Outcome::kOk && strategy.skips_recompute());
}

Expected<void> MemoryHistory::read_plan() {
  if (!plan_.empty()) return {};
  auto all = context_.store.plan(context_.settings.sweep);
  if (!all) return tl::unexpected(all.error());
  plan_ = std::move(*all);
  for (const PlanEntry& entry : plan_)
    if (entry.admitted && !is_audited(entry)) candidates_.push_back(search::candidate_of(entry, {}));
  return {};
}

Expected<void> MemoryHistory::begin() {
  const auto progress = context_.store.progress(context_.settings.sweep);
  if (!progress) return tl::unexpected(progress.error());
  const bool tells = std::ranges::any_of(
      progress->by_outcome, [&](const auto& each) { return each.second > 0 && concludes_from(each.first); });
  if (!tells || progress->pending == 0) return {};
  const auto rows = context_.store.results(context_.settings.sweep);
  if (!rows) return tl::unexpected(rows.error());
  for (const ResultRow& row : *rows)
    if (row.state == State::kFinished)
      if (const auto ruled_out = ended(row.trial_id, row.outcome, row.oom_kind); !ruled_out)
        return tl::unexpected(ruled_out.error());
  return {};
}

// Those that run or have ended are among the candidates: the store prunes only what waits.
Expected<std::vector<std::string>> MemoryHistory::ended(const std::string& trial_id, Outcome outcome,
                                                        std::optional<OomKind> kind) {
  if (!concludes_from(outcome)) return std::vector<std::string>();
  SWEEP_TRY(read_plan());
  const auto found = std::ranges::find(candidates_, trial_id, &search::Candidate::id);
  if (found == candidates_.end()) return std::vector<std::string>();
  search::Candidate result = *found;
  result.standing = outcome == Outcome::kOom ? search::Standing::kOutOfMemory : search::Standing::kMeasured;
  result.host_oom = kind == OomKind::kHost;
  const Strategy& strategy = context_.settings.strategy;
  std::vector<store::NotRun> rows;
  for (const auto& each :
       search::ruled_out_by(result, candidates_, {strategy.uses_history(), strategy.skips_recompute()})) {
    search::Candidate& candidate = candidates_[each.candidate];
    const std::string id(candidate.id);
    rows.push_back({id, each.rule, each.reason, is_in_audit(id, strategy.audit)});
    candidate.standing = search::Standing::kFailed;
  }
  return store_ruled_out(context_, rows);
}

}  // namespace sweep::run
