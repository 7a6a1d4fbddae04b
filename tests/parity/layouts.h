// Runs a trial as its ranks, one forked process each, and puts the shares of all ranks together again: what
// every layout's step did to the whole model, comparable with any other layout's.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench_kernels/comm/group.h"
#include "bench_kernels/model/parameters.h"
#include "bench_kernels/parallel/mesh.h"
#include "bench_kernels/step/train_step.h"
#include "schema/trial.h"

namespace sweep::testing {

struct WholeTensor {
  at::Tensor value, gradient;  // float64; value after the last step, gradient of the last step
};
struct WholeRun {
  std::vector<double> losses;  // per step, mean over all tokens
  std::map<std::string, WholeTensor> tensors;
  std::vector<std::string> faults;  // a rank that failed, copies of one tensor that differ, holes
};
// backend: shm or gloo. AdamW runs with eps 1e-3, so that parameters can be compared. Ranks that hold copies
// of a tensor must hold the same numbers (relative 1e-6).
// source: initial values; with adapters draw_values where none is given, else those of the step's seed.
WholeRun run_layout(const Trial&, int steps, const model::InitialValues::Source& source = nullptr);
// A rank's share of the values that a trial with adapters starts from: their second matrix is not zero.
void draw_values(const model::Part&, const at::Tensor& share);

// The largest relative distances |a - b| / |b| over steps and tensors; a gradient below 1e-7 of the global
// norm counts against that floor.
struct Distance {
  double loss = 0, gradient = 0, value = 0;
  std::string worst;  // the tensor with the largest gradient distance
};
Distance distance(const WholeRun& a, const WholeRun& reference);

// The mesh of a forked rank (tests/unit/comm/forked_ranks.h), over the trial's backend.
parallel::Mesh mesh_of(const Trial&, const comm::GroupOptions&);

// What the body returns on each forked rank, in their order, given the trial's step and the rank. A rank that fails is
// a failure of the test.
using StepBody = std::function<std::vector<double>(step::TrainStep&, int rank)>;
std::vector<std::vector<double>> on_ranks(const Trial&, const StepBody&, optim::OptimizerOptions = {});

// A tiny Llama-like trial whose dimensions every degree up to 4 divides; global batch 8.
Trial tiny_trial();
// Turns a trial's model into one like Gemma 3: a window in every other layer, rotary positions by kind of layer, norms
// of heads and after each half, a table for both ends.
void windows_by_layer(Trial&);
// The same like gpt-oss: windows as above, sinks, experts, biases everywhere.
void with_sinks(Trial&);
// parity.long_layouts runs cases whose class of fault another case finds.
bool long_run();
// Its nodes and gpus_per_node follow from the degrees; global_batch_size stays, grad_accum follows.
Trial with_degrees(Trial, i64 dp, i64 tp, i64 pp, i64 cp, i64 ep = 1);

}  // namespace sweep::testing
