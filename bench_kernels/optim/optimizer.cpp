#include "bench_kernels/optim/optimizer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <stdexcept>
#include <tuple>

namespace sweep::optim {
namespace {

struct Corrections {
  double first, second;
  Corrections(const OptimizerOptions& o, std::int64_t count)
      : first(1 - std::pow(o.beta1, static_cast<double>(count))),
        second(1 - std::pow(o.beta2, static_cast<double>(count))) {}
};

void plain(const OptimizerOptions& o, std::int64_t count, const Lists& l) {
  const auto& [mean, square] = std::tie(l.moments[0], l.moments[1]);
  const Corrections correction(o, count);
  for (std::size_t i = 0; i < l.parameters.size(); ++i) {
    l.parameters[i].mul_(1 - o.lr * o.weight_decay);
    mean[i].lerp_(l.grads[i], 1 - o.beta1);
    square[i].mul_(o.beta2).addcmul_(l.grads[i], l.grads[i], 1 - o.beta2);
    const at::Tensor denominator = square[i].sqrt().div_(std::sqrt(correction.second)).add_(o.eps);
    l.parameters[i].addcdiv_(mean[i], denominator, -o.lr / correction.first);
  }
}

void foreach (const OptimizerOptions& o, std::int64_t count, const Lists& l) {
  const auto& [mean, square] = std::tie(l.moments[0], l.moments[1]);
  const Corrections correction(o, count);
  at::_foreach_mul_(l.parameters, 1 - o.lr * o.weight_decay);
  at::_foreach_lerp_(mean, l.grads, 1 - o.beta1);
  at::_foreach_mul_(square, o.beta2);
  at::_foreach_addcmul_(square, l.grads, l.grads, 1 - o.beta2);
  const std::vector<at::Tensor> denominators = at::_foreach_sqrt(square);
  at::_foreach_div_(denominators, std::sqrt(correction.second));
  at::_foreach_add_(denominators, o.eps);
  at::_foreach_addcdiv_(l.parameters, mean, denominators, -o.lr / correction.first);
}

void fused(const OptimizerOptions& o, std::int64_t count, const Lists& l, at::Tensor step) {
  step.fill_(static_cast<double>(count));
  if (step.is_meta()) return;  // works in place: allocates nothing, and has no meta kernel
  const std::vector<at::Tensor> steps(l.parameters.size(), step);
  at::_fused_adamw_(l.parameters, l.grads, l.moments[0], l.moments[1], {}, steps, o.lr, o.beta1, o.beta2,
                    o.weight_decay, o.eps, false, false);
}

// The velocity starts at zero and the dampening is 0: its first value is the gradient, as in torch.optim.SGD.
void sgd(const OptimizerOptions& o, const Lists& l) {
  const double lr = o.lr * o.sgd_scale;
  const bool momentum = !l.moments.empty();
  if (l.parameters[0].is_cuda()) {
    const std::vector<at::Tensor> none;
    return at::_fused_sgd_(l.parameters, l.grads, momentum ? l.moments[0] : none, o.weight_decay,
                           momentum ? o.momentum : 0, lr, /*dampening=*/0, false, false, false);
  }
  // Not by the fused kernel of processors: that of PyTorch 2.11 computes updates of bf16 and fp16 parameters
  // without storing them, but for the last few of a tensor.
  if (!momentum) {
    at::_foreach_mul_(l.parameters, 1 - lr * o.weight_decay);
    return at::_foreach_add_(l.parameters, l.grads, -lr);
  }
  at::_foreach_mul_(l.moments[0], o.momentum);
  at::_foreach_add_(l.moments[0], l.grads);
  at::_foreach_add_(l.moments[0], l.parameters, o.weight_decay);
  at::_foreach_add_(l.parameters, l.moments[0], -lr);
}

}  // namespace

void update(OptimizerKind kind, const OptimizerOptions& options, std::int64_t count, const Lists& lists,
            const at::Tensor& step_tensor) {
  if (lists.parameters.empty()) return;
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below;
  switch (kind) {
    case OptimizerKind::kPlain:
      return plain(options, count, lists);
    case OptimizerKind::kForeach:
      return foreach (options, count, lists);
    case OptimizerKind::kFused:
      return fused(options, count, lists, step_tensor);
    case OptimizerKind::kSgd:
    case OptimizerKind::kSgdMomentum:
      return sgd(options, lists);
  }
}

Optimizer::Optimizer(std::vector<at::Tensor> parameters, OptimizerKind kind, std::size_t moments,
                     OptimizerOptions options)
    : kind_(kind), options_(options) {
  const at::NoGradGuard no_grad;
  lists_.parameters = std::move(parameters);
  lists_.moments.resize(moments);
  for (const at::Tensor& p : lists_.parameters)
    for (auto& moment : lists_.moments) moment.push_back(at::zeros(p.sizes(), p.options()));
  if (kind_ == OptimizerKind::kFused && !lists_.parameters.empty())
    step_tensor_ = at::zeros({}, lists_.parameters[0].options().dtype(at::kFloat));
}

void Optimizer::step(const std::vector<at::Tensor>& grads) {
  ++count_;
  Lists lists = lists_;
  lists.grads = grads;
  update(kind_, options_, count_, lists, step_tensor_);
}

void Optimizer::step_one(std::size_t i, const at::Tensor& grad) {
  Lists one{{lists_.parameters[i]}, {grad}, {}};
  for (const auto& moment : lists_.moments) one.moments.push_back({moment[i]});
  update(kind_, options_, count_, one, step_tensor_);
}

std::int64_t Optimizer::bytes() const {
  std::int64_t sum = 0;
  for (const auto& moment : lists_.moments)
    for (const at::Tensor& values : moment) sum += static_cast<std::int64_t>(values.nbytes());
  return sum;
}

}  // namespace sweep::optim
