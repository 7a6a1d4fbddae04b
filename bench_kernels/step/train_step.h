// TrainStep: one rank's training step, built once per trial and run once per step: grad_accum micro-steps of
// forward and backward, then AdamW. It owns model, optimizer state and batch, and times its parts; it knows
// nothing of deadlines, outcomes or files, and of other ranks only the GradientSync it is given.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench_kernels/parallel/gradient_sync.h"
#include "schema/progress.h"
#include "schema/trial.h"

namespace sweep::step {

// Spans of the steady clock (on CUDA: of the device's stream, by events) over all micro-steps.
struct StepTimes {
  std::int64_t step_ns = 0, forward_ns = 0, backward_ns = 0, optimizer_ns = 0;
  std::optional<std::int64_t> exposed_comm_ns;  // absent for one rank
  double loss = 0;                              // mean over this rank's tokens of the step, before the update
  std::int64_t tokens = 0;
};

// Why this step cannot run the trial on that kind of device, as a sentence; nothing when it can.
std::optional<std::string> unsupported(const Trial&, c10::DeviceType);

class TrainStep {
 public:
  // sync: null for one rank; it must outlive the step. on_part is told at each change of part, from the
  // calling thread. Throws std::invalid_argument with the sentence of unsupported().
  TrainStep(const Trial&, at::Device, std::int64_t dp_rank, parallel::GradientSync* sync,
            std::function<void(Part)> on_part);
  ~TrainStep();
  TrainStep(const TrainStep&) = delete;
  TrainStep& operator=(const TrainStep&) = delete;

  StepTimes run();
  const std::vector<std::pair<std::string, at::Tensor>>& named_parameters() const;
  std::string effective() const;  // JSON object: attention, optimizer, precision, device

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sweep::step
