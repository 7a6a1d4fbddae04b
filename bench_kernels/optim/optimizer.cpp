#include "bench_kernels/optim/optimizer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <stdexcept>
#include <tuple>

#include "bench_kernels/kernels/adamw.h"
#include "bench_kernels/kernels/device/args.h"
#include "bench_kernels/kernels/eight_bit.h"
#include "bench_kernels/shape/optimizer_states.h"

namespace sweep::optim {
namespace {

struct Corrections {
  double first, second;
  Corrections(const OptimizerOptions& o, std::int64_t count)
      : first(1 - std::pow(o.beta1, static_cast<double>(count))),
        second(1 - std::pow(o.beta2, static_cast<double>(count))) {}
};

kernels::AdamwNumbers numbers_of(const OptimizerOptions& o, std::int64_t count) {
  const Corrections correction(o, count);
  return {.beta1 = o.beta1,
          .beta2 = o.beta2,
          .decay = 1 - o.lr * o.weight_decay,
          .step_size = o.lr / correction.first,
          .root = 1 / std::sqrt(correction.second),
          .eps = o.eps};
}

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

void fused_kernel(const OptimizerOptions& o, std::int64_t count, const Lists& l) {
  kernels::adamw({.parameters = l.parameters,
                  .grads = l.grads,
                  .means = l.moments[0],
                  .squares = l.moments[1],
                  .copies = l.copies,
                  .coefficient = l.coefficient,
                  .by = numbers_of(o, count)});
}

void fused(const OptimizerOptions& o, std::int64_t count, const Lists& l, at::Tensor step) {
  if (kernels::updates_lists(l.parameters[0])) return fused_kernel(o, count, l);
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

// Decay, then the step: in another order than bitsandbytes, which shows in lr x weight_decay of an update.
void eight_bit(const OptimizerOptions& o, std::int64_t count, const Lists& l, const at::Tensor& maps) {
  const kernels::AdamwNumbers numbers = numbers_of(o, count);
  for (std::size_t i = 0; i < l.parameters.size(); ++i)
    kernels::adamw_eight_bit({.parameter = l.parameters[i],
                              .grad = l.grads[i],
                              .mean = l.moments[0][i],
                              .square = l.moments[1][i],
                              .mean_codes = l.moments[2][i],
                              .square_codes = l.moments[3][i],
                              .maps = maps,
                              .by = numbers});
}

}  // namespace

// The planner counts with the kernel's blocks; the kernel's source is compiled alone and includes nothing of the planner.
static_assert(shape::kEightBitBlock == device::kEightBitBlock);

std::vector<StateLayout> state_layout(OptimizerKind kind, std::int64_t elements, at::ScalarType type) {
  if (kind != OptimizerKind::kAdamw8bit)
    return std::vector<StateLayout>(static_cast<std::size_t>(shape::moments_of(kind)), {type, elements});
  const bool codes = elements >= shape::kLeastEightBit;
  const std::int64_t scales = (elements + shape::kEightBitBlock - 1) / shape::kEightBitBlock;
  const StateLayout scale{at::kFloat, codes ? scales : elements}, code{at::kByte, codes ? elements : 0};
  return {scale, scale, code, code};
}

bool updates_all_types(OptimizerKind kind, const at::Tensor& like) {
  return kind == OptimizerKind::kFused && kernels::updates_lists(like);
}

at::Tensor make_aid(OptimizerKind kind, const at::Tensor& like) {
  const at::NoGradGuard no_grad;
  if (kind == OptimizerKind::kFused && !updates_all_types(kind, like))
    return at::zeros({}, like.options().dtype(at::kFloat));
  if (kind == OptimizerKind::kAdamw8bit) return kernels::dynamic_maps(like.options());
  return {};
}

void update(OptimizerKind kind, const OptimizerOptions& options, std::int64_t count, const Lists& lists,
            const at::Tensor& aid) {
  if (lists.parameters.empty()) return;
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below;
  switch (kind) {
    case OptimizerKind::kPlain:
      return plain(options, count, lists);
    case OptimizerKind::kForeach:
      return foreach (options, count, lists);
    case OptimizerKind::kFused:
      return fused(options, count, lists, aid);
    case OptimizerKind::kSgd:
    case OptimizerKind::kSgdMomentum:
      return sgd(options, lists);
    case OptimizerKind::kAdamw8bit:
      return eight_bit(options, count, lists, aid);
    case OptimizerKind::kPagedAdamw:  // PagedStates
    case OptimizerKind::kAdafactor:   // Adafactor
      break;
  }
  throw std::invalid_argument("no optimizer of lists");
}

Optimizer::Optimizer(std::vector<at::Tensor> parameters, OptimizerKind kind, OptimizerOptions options)
    : kind_(kind), options_(options) {
  const at::NoGradGuard no_grad;
  lists_.parameters = std::move(parameters);
  for (const at::Tensor& p : lists_.parameters) {
    const auto layout = state_layout(kind, p.numel(), p.scalar_type());
    lists_.moments.resize(layout.size());
    for (std::size_t i = 0; i < layout.size(); ++i)
      lists_.moments[i].push_back(layout[i].elements == 0
                                      ? at::Tensor()
                                      : at::zeros({layout[i].elements}, p.options().dtype(layout[i].type)));
  }
  if (!lists_.parameters.empty()) aid_ = make_aid(kind, lists_.parameters[0]);
}

bool Optimizer::updates_all_types() const {
  return !lists_.parameters.empty() && optim::updates_all_types(kind_, lists_.parameters[0]);
}

void Optimizer::step(const std::vector<at::Tensor>& grads, double coefficient,
                     std::vector<at::Tensor> copies) {
  ++count_;
  Lists lists = lists_;
  lists.grads = grads, lists.coefficient = coefficient, lists.copies = std::move(copies);
  update(kind_, options_, count_, lists, aid_);
}

void Optimizer::step(const std::vector<at::Tensor>& grads) {
  step(grads, 1, {});
}

void Optimizer::step_one(std::size_t i, const at::Tensor& grad) {
  Lists one{{lists_.parameters[i]}, {grad}, {}, {}};
  for (const auto& moment : lists_.moments) one.moments.push_back({moment[i]});
  update(kind_, options_, count_, one, aid_);
}

std::int64_t Optimizer::bytes() const {
  std::int64_t sum = 0;
  for (const auto& moment : lists_.moments)
    for (const at::Tensor& values : moment)
      if (values.defined()) sum += static_cast<std::int64_t>(values.nbytes());
  return sum;
}

}  // namespace sweep::optim
