#include "orchestrator/answers/history.h"

#include "orchestrator/metrics/steps.h"

namespace sweep::answers {
namespace {

HistoryStep history_step(const metrics::WholeStep& s) {
  const auto ms = [](i64 ns) { return static_cast<double>(ns) / 1e6; };
  HistoryStep out{s.step_ns};
  auto& values = out.values;
  values.emplace_back("steps/step_ms", ms(s.step_ns));
  if (s.forward_ns > 0) values.emplace_back("steps/forward_ms", ms(s.forward_ns));
  if (s.backward_ns > 0) values.emplace_back("steps/backward_ms", ms(s.backward_ns));
  if (s.optimizer_ns > 0) values.emplace_back("steps/optimizer_ms", ms(s.optimizer_ns));
  if (s.exposed_comm_ns) values.emplace_back("steps/exposed_comm_ms", ms(*s.exposed_comm_ns));
  if (s.data_ns) values.emplace_back("steps/data_ms", ms(*s.data_ns));
  if (s.tokens > 0) values.emplace_back("steps/tokens", static_cast<double>(s.tokens));
  if (s.loss) values.emplace_back("steps/loss", *s.loss);
  values.emplace_back("steps/alloc_retries", static_cast<double>(s.alloc_retries));
  values.emplace_back("steps/warmup", s.warmup ? 1.0 : 0.0);
  values.emplace_back("steps/repeat", static_cast<double>(s.repeat));
  return out;
}

}  // namespace

Expected<std::vector<HistoryStep>> history(store::Store& store, i64 sweep, const ResultRow& row) {
  SWEEP_GET(const auto attempt, store.final_attempt(sweep, row.trial_id));
  std::vector<HistoryStep> out;
  if (!attempt) return out;
  SWEEP_GET(const auto stored, store.records_of(*attempt));
  const i64 needed = metrics::ranks_needed(row.trial, row.trial.world());
  for (const auto& step : metrics::whole_steps(stored.records, needed)) out.push_back(history_step(step));
  return out;
}

}  // namespace sweep::answers
