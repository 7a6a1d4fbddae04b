// Optimizer over a fixed list of parameters: AdamW in one of three implementations (plain: operators per
// tensor, foreach: operators over lists, fused: one kernel), which compute the same update up to rounding
// (Loshchilov and Hutter 2019, as torch.optim.AdamW), or SGD without or with momentum (Sutskever et al. 2013,
// as torch.optim.SGD), one kernel on a GPU. It owns the moments, in the parameters' type, allocated at once; it
// never touches gradients. update() is the same without an owner, for moments kept elsewhere.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "schema/trial.h"

namespace sweep::optim {

// Fixed for every trial. The learning rate is small: a step costs the same, and a model of any size without
// warm-up does not diverge in the few steps that are timed.
struct OptimizerOptions {
  double lr = 1e-5, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  // SGD: lr is multiplied by this, since its update is as small as the gradient; AdamW's is as large as lr.
  double sgd_scale = 1000;
  double momentum = 0.9;
};

// The values of one step, list by list; all of one type, on one device. moments: of AdamW the mean and the square of
// the gradients, of SGD with momentum their mean (shape::moments_of says how many lists there are).
struct Lists {
  std::vector<at::Tensor> parameters, grads;
  std::vector<std::vector<at::Tensor>> moments;
};
// One update of all, the count-th; step_tensor (fp32 scalar on their device) is what the fused AdamW reads.
void update(OptimizerKind, const OptimizerOptions&, std::int64_t count, const Lists&,
            const at::Tensor& step_tensor);

class Optimizer {
 public:
  // moments: the number of lists that this kind keeps.
  Optimizer(std::vector<at::Tensor> parameters, OptimizerKind, std::size_t moments, OptimizerOptions = {});
  // One update; one gradient per parameter, in their order, of the parameter's shape and type.
  void step(const std::vector<at::Tensor>& grads);
  // The same in parts: begin_step(), then each parameter once, in any order.
  void begin_step() { ++count_; }
  void step_one(std::size_t i, const at::Tensor& grad);
  // Bytes of the moments (without the count of the fused kernel).
  std::int64_t bytes() const;

 private:
  OptimizerKind kind_;
  OptimizerOptions options_;
  Lists lists_;
  at::Tensor step_tensor_;  // fused AdamW: the count where the kernel reads it
  std::int64_t count_ = 0;
};

}  // namespace sweep::optim
