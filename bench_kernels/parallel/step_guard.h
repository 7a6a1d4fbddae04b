// StepGuard: what happens to a step's gradients before the update: the loss scale of fp16 and the agreement
// of all ranks whether the step counts, and clipping to a global norm. It owns the scale; gradients belong to
// others.
//
// The norm is over the whole model: each rank adds the squares of the parts it holds, every element divided
// by the number of ranks that hold it. A norm that is not finite means that a gradient is not: under fp16 the
// step is skipped everywhere and the scale halved; it doubles after kPatience good steps (Micikevicius et al.
// 2018, section 3.2; constants as PyTorch's GradScaler). The trial says where the scale starts.
#pragma once
#include <optional>
#include <vector>

#include "bench_kernels/parallel/model_state.h"

namespace sweep::parallel {

class StepGuard {
 public:
  static constexpr std::int64_t kPatience = 2000;
  static constexpr double kLargestNorm = 1;

  StepGuard(const Trial&, const Mesh&, at::Device, std::int64_t patience = kPatience);

  // The loss is multiplied by it before its gradient is taken.
  double loss_scale() const { return scale_; }
  bool scales() const { return scales_; }
  // After finish_gradients() of all states of this rank: the factor of the gradients; nullopt:
  // the step is skipped. A collective of all ranks where there is something to agree on.
  std::optional<double> judge(const std::vector<const ModelState*>&);
  // The norm of the last judged step before clipping; nullopt if nothing asked for it.
  std::optional<double> norm() const { return norm_; }

 private:
  const Mesh& mesh_;
  bool clips_ = false, scales_ = false;
  at::Tensor squares_;  // float64 [1] on the device
  double scale_ = 1;
  std::int64_t good_steps_ = 0, patience_;
  std::optional<double> norm_;
};

}  // namespace sweep::parallel
