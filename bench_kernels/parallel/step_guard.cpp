#include "bench_kernels/parallel/step_guard.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "bench_kernels/shape/model_states.h"

namespace sweep::parallel {

StepGuard::StepGuard(const Trial& t, const Mesh& mesh, at::Device device, std::int64_t patience)
    : mesh_(mesh), clips_(t.grad_clip), scales_(shape::scales_loss(t)), patience_(patience) {
  if (scales_) scale_ = std::ldexp(1.0, static_cast<int>(t.initial_scale_power));
  if (clips_ || scales_) squares_ = at::zeros({1}, at::TensorOptions(device).dtype(at::kDouble));
}

std::optional<double> StepGuard::judge(const std::vector<const ModelState*>& states) {
  if (!squares_.defined()) return 1;
  squares_.zero_();
  for (const ModelState* state : states) state->add_squares(squares_);
  mesh_[Dimension::kWorld].all_reduce(squares_).wait();
  if (squares_.is_meta()) return 0.5;  // a dry run counts as clipped
  const double norm = std::sqrt(squares_.item<double>()) / scale_;
  norm_ = norm;
  const double unscaled = 1 / scale_;
  if (scales_ && !std::isfinite(norm)) {
    scale_ = std::max(1.0, scale_ / 2);
    good_steps_ = 0;
    return {};
  }
  if (scales_ && ++good_steps_ == patience_) {
    scale_ *= 2;
    good_steps_ = 0;
  }
  // The small addend is PyTorch's (torch.nn.utils.clip_grad_norm_).
  return clips_ ? unscaled * std::min(1.0, kLargestNorm / (norm + 1e-6)) : unscaled;
}

}  // namespace sweep::parallel
