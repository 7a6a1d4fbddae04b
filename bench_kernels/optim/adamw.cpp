#include "bench_kernels/optim/adamw.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <stdexcept>

namespace sweep::optim {
namespace {

struct Corrections {
  double first, second;
  Corrections(const AdamWOptions& o, std::int64_t count)
      : first(1 - std::pow(o.beta1, static_cast<double>(count))),
        second(1 - std::pow(o.beta2, static_cast<double>(count))) {}
};

void plain(const AdamWOptions& o, std::int64_t count, const Lists& l) {
  const Corrections correction(o, count);
  for (std::size_t i = 0; i < l.parameters.size(); ++i) {
    l.parameters[i].mul_(1 - o.lr * o.weight_decay);
    l.mean[i].lerp_(l.grads[i], 1 - o.beta1);
    l.square[i].mul_(o.beta2).addcmul_(l.grads[i], l.grads[i], 1 - o.beta2);
    const at::Tensor denominator = l.square[i].sqrt().div_(std::sqrt(correction.second)).add_(o.eps);
    l.parameters[i].addcdiv_(l.mean[i], denominator, -o.lr / correction.first);
  }
}

void foreach (const AdamWOptions& o, std::int64_t count, const Lists& l) {
  const Corrections correction(o, count);
  at::_foreach_mul_(l.parameters, 1 - o.lr * o.weight_decay);
  at::_foreach_lerp_(l.mean, l.grads, 1 - o.beta1);
  at::_foreach_mul_(l.square, o.beta2);
  at::_foreach_addcmul_(l.square, l.grads, l.grads, 1 - o.beta2);
  const std::vector<at::Tensor> denominators = at::_foreach_sqrt(l.square);
  at::_foreach_div_(denominators, std::sqrt(correction.second));
  at::_foreach_add_(denominators, o.eps);
  at::_foreach_addcdiv_(l.parameters, l.mean, denominators, -o.lr / correction.first);
}

void fused(const AdamWOptions& o, std::int64_t count, const Lists& l, at::Tensor step) {
  step.fill_(static_cast<double>(count));
  if (step.is_meta()) return;  // works in place: allocates nothing, and has no meta kernel
  const std::vector<at::Tensor> steps(l.parameters.size(), step);
  at::_fused_adamw_(l.parameters, l.grads, l.mean, l.square, {}, steps, o.lr, o.beta1, o.beta2,
                    o.weight_decay, o.eps, false, false);
}

}  // namespace

void update(AdamWKind kind, const AdamWOptions& options, std::int64_t count, const Lists& lists,
            const at::Tensor& step_tensor) {
  if (lists.parameters.empty()) return;
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below;
  switch (kind) {
    case AdamWKind::kPlain:
      return plain(options, count, lists);
    case AdamWKind::kForeach:
      return foreach (options, count, lists);
    case AdamWKind::kFused:
      return fused(options, count, lists, step_tensor);
  }
}

AdamW::AdamW(std::vector<at::Tensor> parameters, AdamWKind kind, AdamWOptions options)
    : kind_(kind), options_(options) {
  const at::NoGradGuard no_grad;
  lists_.parameters = std::move(parameters);
  for (const at::Tensor& p : lists_.parameters) {
    lists_.mean.push_back(at::zeros(p.sizes(), p.options()));
    lists_.square.push_back(at::zeros(p.sizes(), p.options()));
  }
  if (kind_ == AdamWKind::kFused && !lists_.parameters.empty())
    step_tensor_ = at::zeros({}, lists_.parameters[0].options().dtype(at::kFloat));
}

void AdamW::step(const std::vector<at::Tensor>& grads) {
  ++count_;
  Lists lists = lists_;
  lists.grads = grads;
  update(kind_, options_, count_, lists, step_tensor_);
}

void AdamW::step_one(std::size_t i, const at::Tensor& grad) {
  update(kind_, options_, count_, {{lists_.parameters[i]}, {grad}, {lists_.mean[i]}, {lists_.square[i]}},
         step_tensor_);
}

std::int64_t AdamW::bytes() const {
  std::int64_t sum = 0;
  for (const at::Tensor& mean : lists_.mean) sum += 2 * static_cast<std::int64_t>(mean.nbytes());
  return sum;
}

}  // namespace sweep::optim
