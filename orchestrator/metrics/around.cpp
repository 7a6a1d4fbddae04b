#include "orchestrator/metrics/around.h"

#include <algorithm>
#include <optional>

namespace sweep::metrics {
namespace {

template <class T>
void raise(std::optional<T>& highest, std::optional<T> value) {
  if (value) highest = std::max(highest.value_or(*value), *value);
}

void add(std::optional<i64>& sum, std::optional<i64> value) {
  if (value) sum = sum.value_or(0) + *value;
}

std::optional<double> ms(std::optional<i64> ns) {
  return ns ? std::optional(static_cast<double>(*ns) / 1e6) : std::nullopt;
}

void gather(Metrics& m, std::span<const RankRecord> records) {
  double losses = 0, tokens = 0;
  for (const RankRecord& r : records) {
    if (!r.effective.around) continue;
    const AroundStep& a = *r.effective.around;
    add(m.checkpoint_bytes, a.checkpoint_bytes);
    raise(m.checkpoint_ms, ms(a.checkpoint_ns));
    raise(m.checkpoint_stall_ms, ms(a.checkpoint_stall_ns));
    raise(m.checkpoint_host_bytes, a.checkpoint_host_bytes);
    raise(m.eval_ms, ms(a.eval_ns));
    raise(m.eval_peak_bytes, a.eval_peak_bytes);
    add(m.load_bytes, a.load_bytes);
    raise(m.load_ms, ms(a.load_ns));
    raise(m.load_host_bytes, a.load_host_bytes);
    const auto n = static_cast<double>(a.eval_tokens.value_or(0));
    if (a.eval_loss) losses += n * *a.eval_loss, tokens += n;
  }
  if (tokens > 0) m.eval_loss = losses / tokens;
}

}  // namespace

void add_around(Metrics& m, const Trial& t, std::span<const RankRecord> records) {
  gather(m, records);
  if (!m.step_ms || !m.tokens_per_s || (!m.checkpoint_stall_ms && !m.eval_ms)) return;
  const double more = m.checkpoint_stall_ms.value_or(0) / static_cast<double>(t.checkpoint_every) +
                      m.eval_ms.value_or(0) / static_cast<double>(t.eval_every);
  const double share = *m.step_ms / (*m.step_ms + more);
  m.run_tokens_per_s = *m.tokens_per_s * share;
  if (m.cost_per_mt) m.run_cost_per_mt = *m.cost_per_mt / share;
}

}  // namespace sweep::metrics
