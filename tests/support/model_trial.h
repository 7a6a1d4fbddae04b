// A trial of a model of the catalogue for tests: dp over all ranks, bf16, 4,096 tokens.
#pragma once
#include "bench_kernels/shape/catalogue.h"
#include "schema/trial.h"

namespace sweep {

inline Trial model_trial(const char* model, const char* hardware, i64 nodes = 1, i64 ranks = 8) {
  Trial t;
  t.model = model;
  t.spec = *shape::find_model(model);
  t.hardware = hardware;
  t.precision = Precision::kBf16;
  t.nodes = nodes;
  t.gpus_per_node = ranks;
  t.dp = t.global_batch_size = nodes * ranks;
  t.seq_len = 4096;
  return t;
}

}  // namespace sweep
