#include "orchestrator/import/draft.h"

#include <fmt/format.h>

#include "orchestrator/import/cells.h"

namespace sweep::imports {

Expected<std::optional<Outcome>> outcome_of(const Draft& draft) {
  if (!draft.state.empty()) {
    const auto state = read_outcome(draft.state);
    if (!state || !*state) return state;
  }
  if (!draft.status.empty()) return read_outcome(draft.status);
  const Metrics& m = draft.metrics;
  const bool measured = m.step_ms || m.tokens_per_s || m.tokens_per_s_gpu || m.mfu_reported ||
                        m.peak_allocated_bytes || m.peak_reserved_bytes || m.memory_reported_bytes ||
                        m.host_peak_rss_bytes;
  return measured ? Outcome::kOk : Outcome::kFailedUnknown;
}

Result result_of(Outcome outcome, const Draft& draft, const std::string& id) {
  Result out;
  out.trial_id = id, out.outcome = outcome;
  out.oom_kind = outcome == Outcome::kOom ? oom_kind_from(draft.oom_kind) : std::nullopt;
  out.metrics = draft.metrics;
  if (outcome == Outcome::kOk) return out;
  Metrics memory;  // rates of a trial that did not end ok mean nothing
  memory.peak_allocated_bytes = draft.metrics.peak_allocated_bytes;
  memory.peak_reserved_bytes = draft.metrics.peak_reserved_bytes;
  memory.memory_reported_bytes = draft.metrics.memory_reported_bytes;
  memory.host_peak_rss_bytes = draft.metrics.host_peak_rss_bytes;
  memory.oom_asked_bytes = draft.metrics.oom_asked_bytes;
  out.metrics = memory;
  out.reason = !draft.reason.empty()  ? draft.reason
               : draft.status.empty() ? "the imported row gives no figure and no reason"
                                      : fmt::format("the imported row says '{}' and no more", draft.status);
  return out;
}

}  // namespace sweep::imports
