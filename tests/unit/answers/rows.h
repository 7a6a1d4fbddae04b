// Rows for the tests of this room.
#pragma once
#include "bench_kernels/shape/catalogue.h"
#include "schema/result_row.h"

namespace sweep::answers {

inline ResultRow ok_row(std::string id, i64 tp, double tokens, double spread = 0.01) {
  ResultRow row;
  row.sweep = "s";
  row.trial_id = std::move(id);
  row.outcome = Outcome::kOk;
  row.trial.model = "llama3-8b";
  if (const auto spec = shape::find_model("llama3-8b")) row.trial.spec = *spec;
  row.trial.tp = tp;
  row.metrics.tokens_per_s_gpu = tokens;
  row.metrics.step_ms = 1e6 / tokens;
  row.metrics.step_ms_ci_low = 1e6 / tokens * (1 - spread);
  row.metrics.step_ms_ci_high = 1e6 / tokens * (1 + spread);
  return row;
}

// The row of a job of one rank, with its rates and costs where this share of its tokens is useful.
inline ResultRow useful_row(std::string id, double tokens, double fraction) {
  ResultRow row = ok_row(std::move(id), 1, tokens);
  Metrics& m = row.metrics;
  m.tokens_per_s = tokens, m.mt_per_hour = tokens * 3600 / 1e6, m.cost_per_mt = 1 / *m.mt_per_hour;
  m.useful_fraction = fraction, m.useful_cost_per_mt = *m.cost_per_mt / fraction;
  m.useful_tokens_per_s = m.useful_tokens_per_s_gpu = tokens * fraction;
  return row;
}

inline ResultRow bad_row(std::string id, i64 tp, Outcome outcome, std::string reason) {
  ResultRow row = ok_row(std::move(id), tp, 1);
  row.metrics = {};
  row.outcome = outcome;
  row.reason = std::move(reason);
  return row;
}

}  // namespace sweep::answers
