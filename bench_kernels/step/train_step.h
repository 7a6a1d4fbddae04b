// TrainStep: one rank's training step, built once per trial and run once per step: grad_accum micro-steps of
// forward and backward, then the optimizer. It owns model, optimizer state and batch, and times its parts; it knows
// nothing of deadlines, outcomes or files, and of other ranks only the mesh it is given.
#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench_kernels/model/parameters.h"
#include "bench_kernels/parallel/mesh.h"
#include "bench_kernels/parallel/model_state.h"
#include "bench_kernels/step/batch.h"
#include "bench_kernels/step/text_scorer.h"
#include "schema/progress.h"
#include "schema/records.h"
#include "schema/trial.h"

namespace sweep::step {

// Spans of the steady clock (on CUDA: of the device's stream, by events) over all micro-steps.
struct StepTimes {
  std::int64_t step_ns = 0, forward_ns = 0, backward_ns = 0, optimizer_ns = 0;
  // Waited for: gradients on their way, and other stages of a pipeline (that wait is in step_ns only, else in
  // no part). Absent for one rank.
  std::optional<std::int64_t> exposed_comm_ns;
  // Waited for the step's data, in step_ns and in no part. Absent where it is made in memory.
  std::optional<std::int64_t> data_ns;
  // Mean over this rank's labelled tokens of the step, before the update; 0 with tokens 0 on a rank without the head.
  double loss = 0;
  std::int64_t tokens = 0;
  // The busiest expert's rows over an expert's mean, the largest over layers and micro-steps; nullopt: the
  // model is dense.
  std::optional<double> expert_load;
  // fp16: the scale after the step, and whether its update was left out.
  std::optional<double> loss_scale;
  bool skipped = false;
};

// An evaluation of all its batches, without an update. The loss is the mean over this rank's labelled tokens; 0 with
// tokens 0 on a rank without the head.
struct Evaluation {
  std::int64_t ns = 0, tokens = 0;
  double loss = 0;
  // eval_metrics ngram, on the first rank with the head of each tensor group. BLEU is that of all of them together.
  std::optional<TextScores> text;
};

// Why this step cannot run the trial on that kind of device, as a sentence; nothing when it can.
std::optional<std::string> unsupported(const Trial&, c10::DeviceType);

// Weights and tokens to take instead of those drawn from the step's seed; where its data is written and read from
// (empty: the folder of temporary files), and whether it is.
struct Given {
  model::InitialValues::Source weights{};
  model::InitialValues::CodeSource codes{};
  TokenSource tokens{};
  std::filesystem::path data_folder{};
  bool reads_data = true;
};

class TrainStep {
 public:
  // The mesh must outlive the step. on_part is told at each change of part and, while this makes the weights,
  // after each tensor (kNone), from the calling thread. Throws
  // std::invalid_argument with the sentence of unsupported().
  TrainStep(const Trial&, at::Device, const parallel::Mesh&, std::function<void(Part)> on_part,
            optim::OptimizerOptions = {}, const Given& = {});
  ~TrainStep();
  TrainStep(const TrainStep&) = delete;
  TrainStep& operator=(const TrainStep&) = delete;

  // micros: so many of its micro-batches from now on; losses and gradients are then not the step's.
  StepTimes run(std::optional<i64> micros = std::nullopt);
  // Forward only, over eval_batches times the first eval_batch_size sequences of each data-parallel rank. REQUIRES:
  // eval_batch_size > 0. scores: false leaves the comparison of the predicted text out (phantom GPUs predict nothing).
  Evaluation evaluate(bool scores = true);
  // This rank's share of every tensor it holds, whole even where ZeRO shards it: a collective of all ranks.
  // Gradients are those of the last step, averaged over its tokens; undefined where the tensor is frozen, and
  // before the first step.
  struct Tensor {
    std::string name;
    model::Slice slice;
    model::Role role = model::Role::kDense;
    at::Tensor value, gradient;
  };
  std::vector<Tensor> tensors();
  // The states of each chunk of the model that this rank holds; and the state of the first one.
  std::vector<const parallel::ModelState*> states() const;
  const parallel::ModelState& state() const { return *states().front(); }
  EffectiveSettings effective() const;  // attention, optimizer, precision

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sweep::step
