#include "bench_kernels/optim/adamw.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <stdexcept>

namespace sweep::optim {

Kind kind_from(std::string_view name) {
  if (name == "plain") return Kind::kPlain;
  if (name == "foreach") return Kind::kForeach;
  if (name == "fused") return Kind::kFused;
  throw std::invalid_argument("optimizer '" + std::string(name) +
                              "' is unknown; use plain, foreach or fused.");
}

AdamW::AdamW(std::vector<at::Tensor> parameters, Kind kind, AdamWOptions options)
    : kind_(kind), options_(options), parameters_(std::move(parameters)) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& p : parameters_) {
    mean_.push_back(at::zeros(p.sizes(), p.options()));
    square_.push_back(at::zeros(p.sizes(), p.options()));
  }
  if (kind_ != Kind::kFused || parameters_.empty()) return;
  step_tensor_ = at::zeros({}, parameters_[0].options().dtype(at::kFloat));
  step_tensors_.assign(parameters_.size(), step_tensor_);
}

void AdamW::plain(const std::vector<at::Tensor>& grads) {
  const auto n = static_cast<double>(count_);
  const double correction1 = 1 - std::pow(options_.beta1, n), correction2 = 1 - std::pow(options_.beta2, n);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].mul_(1 - options_.lr * options_.weight_decay);
    mean_[i].lerp_(grads[i], 1 - options_.beta1);
    square_[i].mul_(options_.beta2).addcmul_(grads[i], grads[i], 1 - options_.beta2);
    const at::Tensor denominator = square_[i].sqrt().div_(std::sqrt(correction2)).add_(options_.eps);
    parameters_[i].addcdiv_(mean_[i], denominator, -options_.lr / correction1);
  }
}

void AdamW::foreach (const std::vector<at::Tensor>& grads) {
  const auto n = static_cast<double>(count_);
  const double correction1 = 1 - std::pow(options_.beta1, n), correction2 = 1 - std::pow(options_.beta2, n);
  at::_foreach_mul_(parameters_, 1 - options_.lr * options_.weight_decay);
  at::_foreach_lerp_(mean_, grads, 1 - options_.beta1);
  at::_foreach_mul_(square_, options_.beta2);
  at::_foreach_addcmul_(square_, grads, grads, 1 - options_.beta2);
  const std::vector<at::Tensor> denominators = at::_foreach_sqrt(square_);
  at::_foreach_div_(denominators, std::sqrt(correction2));
  at::_foreach_add_(denominators, options_.eps);
  at::_foreach_addcdiv_(parameters_, mean_, denominators, -options_.lr / correction1);
}

void AdamW::fused(const std::vector<at::Tensor>& grads) {
  step_tensor_.fill_(static_cast<double>(count_));
  if (step_tensor_.is_meta()) return;  // works in place: allocates nothing, and has no meta kernel
  at::_fused_adamw_(parameters_, grads, mean_, square_, {}, step_tensors_, options_.lr, options_.beta1,
                    options_.beta2, options_.weight_decay, options_.eps, false, false);
}

void AdamW::step(const std::vector<at::Tensor>& grads) {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below;
  ++count_;
  switch (kind_) {
    case Kind::kPlain:
      return plain(grads);
    case Kind::kForeach:
      return foreach (grads);
    case Kind::kFused:
      return fused(grads);
  }
}

}  // namespace sweep::optim
