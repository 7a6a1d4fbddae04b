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

inline ResultRow bad_row(std::string id, i64 tp, Outcome outcome, std::string reason) {
  ResultRow row = ok_row(std::move(id), tp, 1);
  row.metrics = {};
  row.outcome = outcome;
  row.reason = std::move(reason);
  return row;
}

}  // namespace sweep::answers
