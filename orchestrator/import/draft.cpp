#include "orchestrator/import/draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "orchestrator/import/cells.h"

namespace sweep::imports {
namespace {

// A trial that ended ok took time and trained on tokens. Beyond `kMost` the figures that follow from a rate
// are no numbers any more, so they would not show that it is wrong.
Expected<void> rates_are_possible(const Metrics& m) {
  constexpr double kMost = 1e15;
  const std::pair<const char*, const std::optional<double>*> rates[] = {
      {"tokens_per_s_gpu", &m.tokens_per_s_gpu}, {"tokens_per_s", &m.tokens_per_s}, {"step_ms", &m.step_ms}};
  for (const auto& [name, value] : rates)
    if (*value && (**value <= 0 || **value > kMost))
      return fail(ErrorKind::kInvalidValue, name,
                  "{} is {} in a row that ended ok; leave the cell empty where it was not measured, or say "
                  "how the row ended",
                  name, **value);
  return {};
}

// Tokens per second of all ranks, as each figure of the row has them.
Expected<void> rates_agree(const Trial& t, const Metrics& m, bool tokens_known) {
  constexpr double kRounding = 0.05;
  const auto real = [](i64 n) { return static_cast<double>(n); };
  struct Rate {
    const char* field;
    std::string figure;
    double tokens_per_s;
  };
  std::vector<Rate> rates;
  if (m.tokens_per_s)
    rates.push_back({"tokens_per_s", fmt::format("tokens_per_s {}", *m.tokens_per_s), *m.tokens_per_s});
  if (m.tokens_per_s_gpu)
    rates.push_back({"tokens_per_s_gpu",
                     fmt::format("tokens_per_s_gpu {} x {} ranks", *m.tokens_per_s_gpu, t.world()),
                     *m.tokens_per_s_gpu * real(t.world())});
  if (m.step_ms && tokens_known)
    rates.push_back({"step_ms",
                     fmt::format("step_ms {} for {} x {} tokens", *m.step_ms, t.global_batch_size, t.seq_len),
                     real(t.global_batch_size) * real(t.seq_len) / (*m.step_ms / 1e3)});
  for (std::size_t i = 1; i < rates.size(); ++i) {
    const Rate &a = rates[0], &b = rates[i];
    if (std::max(a.tokens_per_s, b.tokens_per_s) <=
        (1 + kRounding) * std::min(a.tokens_per_s, b.tokens_per_s))
      continue;
    return fail(ErrorKind::kConflict, b.field,
                "{} is {:.6g} tokens/s, and {} is {:.6g}; correct the row or the unit (--map "
                "COLUMN=FIELD:UNIT), or leave one column out (--map COLUMN=-)",
                a.figure, a.tokens_per_s, b.figure, b.tokens_per_s);
  }
  return {};
}

Expected<void> interval_holds(const Metrics& m) {
  const auto outside = [&](const char* field, double bound, const char* relation) {
    return fail(ErrorKind::kConflict, field, "{} {} is {} step_ms {}; correct the row", field, bound,
                relation, *m.step_ms);
  };
  if (!m.step_ms) return {};
  if (m.step_ms_ci_low && *m.step_ms_ci_low > *m.step_ms)
    return outside("step_ms_ci_low", *m.step_ms_ci_low, "above");
  if (m.step_ms_ci_high && *m.step_ms_ci_high < *m.step_ms)
    return outside("step_ms_ci_high", *m.step_ms_ci_high, "below");
  return {};
}

}  // namespace

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

Expected<void> figures_are_possible(const Trial& t, const Metrics& m, bool tokens_known) {
  SWEEP_TRY(rates_are_possible(m));
  SWEEP_TRY(rates_agree(t, m, tokens_known));
  return interval_holds(m);
}

}  // namespace sweep::imports
