// Trials laid out on nodes of eight H100s, and their predictions by a profile.
#pragma once
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/plan/rules.h"
#include "orchestrator/predict/predict.h"

namespace sweep::predict {

inline Trial laid_out(const char* model, i64 nodes, i64 dp, i64 tp, i64 pp, i64 micros, i64 micro_batch,
                      i64 zero) {
  Trial t;
  t.spec = *shape::find_model(model);
  t.hardware = "h100-sxm-80gb", t.nodes = nodes, t.gpus_per_node = 8;
  t.dp = dp, t.tp = tp, t.pp = pp, t.grad_accum = micros, t.micro_batch_size = micro_batch, t.zero = zero;
  t.seq_len = 4096, t.precision = Precision::kBf16;
  return t;
}

inline const TrainerProfile& built_in(const char* name) {
  return *built_in_profile(name);
}

inline TrialPrediction predicted(const Trial& t, const TrainerProfile& p = built_in("nanotron")) {
  TrialPrediction out;
  predict_trial(t, p, *shape::find_hardware(t.hardware), plan::step_refusal, out);
  return out;
}

}  // namespace sweep::predict
