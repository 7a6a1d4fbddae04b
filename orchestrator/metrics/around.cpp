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

// Over ranks, by the tokens that they evaluated.
class MeanByTokens {
 public:
  void add(const AroundStep& a, std::optional<double> value) {
    const auto n = static_cast<double>(a.eval_tokens.value_or(0));
    if (value) sum_ += n * *value, tokens_ += n;
  }
  std::optional<double> value() const { return tokens_ > 0 ? std::optional(sum_ / tokens_) : std::nullopt; }

 private:
  double sum_ = 0, tokens_ = 0;
};

void gather(Metrics& m, std::span<const RankRecord> records) {
  MeanByTokens loss, bleu, rouge_l;
  for (const RankRecord& r : records) {
    if (!r.effective.around) continue;
    const AroundStep& a = *r.effective.around;
    add(m.checkpoint_bytes, a.checkpoint_bytes);
    raise(m.checkpoint_ms, ms(a.checkpoint_ns));
    raise(m.checkpoint_stall_ms, ms(a.checkpoint_stall_ns));
    raise(m.checkpoint_host_bytes, a.checkpoint_host_bytes);
    raise(m.eval_ms, ms(a.eval_ns));
    raise(m.eval_metrics_ms, ms(a.eval_metrics_ns));
    raise(m.eval_peak_bytes, a.eval_peak_bytes);
    add(m.load_bytes, a.load_bytes);
    raise(m.load_ms, ms(a.load_ns));
    raise(m.load_host_bytes, a.load_host_bytes);
    loss.add(a, a.eval_loss), bleu.add(a, a.eval_bleu), rouge_l.add(a, a.eval_rouge_l);
  }
  m.eval_loss = loss.value(), m.eval_bleu = bleu.value(), m.eval_rouge_l = rouge_l.value();
}

}  // namespace

void add_around(Metrics& m, const Trial& t, std::span<const RankRecord> records) {
  gather(m, records);
  const bool untimed =
      (t.checkpoint != CheckpointKind::kNone && !m.checkpoint_stall_ms) ||
      (t.eval_batch_size > 0 && !m.eval_ms);  // a rehearsal writes nothing and computes nothing
  if (!m.step_ms || !m.tokens_per_s || untimed) return;
  const auto checkpoint_every = static_cast<double>(t.checkpoint_every);
  const double more = m.checkpoint_stall_ms.value_or(0) / checkpoint_every +
                      m.eval_ms.value_or(0) / static_cast<double>(t.eval_every);
  const double written = m.checkpoint_ms.value_or(0) / checkpoint_every;  // the next one waits for that
  const double share = *m.step_ms / std::max(*m.step_ms + more, written);
  m.run_tokens_per_s = *m.tokens_per_s * share;
  if (m.cost_per_mt) m.run_cost_per_mt = *m.cost_per_mt / share;
  if (m.useful_tokens_per_s) m.useful_run_tokens_per_s = *m.useful_tokens_per_s * share;
  if (m.useful_cost_per_mt) m.useful_run_cost_per_mt = *m.useful_cost_per_mt / share;
}

}  // namespace sweep::metrics
