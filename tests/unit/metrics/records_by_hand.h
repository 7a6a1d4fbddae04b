// Records and trials whose figures are worked out by hand.
#pragma once

#include <cmath>
#include <vector>

#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/metrics/derive.h"

namespace sweep::metrics {

inline StepSample sample(i64 step, double step_ms, bool warmup = false) {
  StepSample s;
  s.step = step;
  s.warmup = warmup;
  s.step_ns = std::llround(step_ms * 1e6);
  s.forward_ns = s.step_ns / 4;
  s.backward_ns = s.step_ns / 2;
  s.optimizer_ns = s.step_ns / 8;
  s.tokens = 100;
  s.loss = 5.0 - 0.5 * static_cast<double>(step);
  return s;
}

inline RankRecord rank(i64 number, std::vector<StepSample> samples) {
  RankRecord r;
  r.rank = number;
  r.outcome = Outcome::kOk;
  r.samples = std::move(samples);
  return r;
}

inline Trial cpu_trial(i64 ranks = 1) {
  Trial t;
  t.model = "tiny-llama";
  t.spec = *shape::find_model("tiny-llama");
  t.dp = t.gpus_per_node = ranks;
  t.micro_batch_size = 2;
  t.grad_accum = 3;
  t.global_batch_size = 6 * ranks;
  t.seq_len = 50;
  return t;
}

inline Trial gpu_trial(const char* model, const char* hardware) {
  Trial t;
  t.model = model;
  t.spec = *shape::find_model(model);
  t.hardware = hardware;
  t.precision = Precision::kBf16;
  t.dp = t.gpus_per_node = 8;
  t.micro_batch_size = 1;
  t.global_batch_size = 8;
  t.seq_len = 4096;
  return t;
}

inline std::vector<RankRecord> eight_ranks(double step_ms) {
  std::vector<RankRecord> records;
  for (i64 r = 0; r < 8; ++r) records.push_back(rank(r, {sample(0, step_ms)}));
  return records;
}

}  // namespace sweep::metrics
