// Optimizer over a fixed list of parameters: AdamW in one of three implementations (plain: operators per
// tensor, foreach: operators over lists, fused: one kernel), which compute the same update up to rounding
// (Loshchilov and Hutter 2019, as torch.optim.AdamW), the same with moments in eight bits (kernels/eight_bit.h), or SGD
// without or with momentum (Sutskever et al. 2013, as torch.optim.SGD), one kernel on a GPU. On a GPU the fused AdamW is
// the kernel of kernels/adamw.h, elsewhere LibTorch's. It owns the moments, allocated at once; it never touches
// gradients. update() is the same without an owner, for moments kept elsewhere.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

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
  // Adafactor: the same, since its update is as large as lr times the size of the parameter's own numbers.
  double adafactor_scale = 50;
};

// The tensors that are kept for one parameter tensor, all zeros before the first update. AdamW: mean and square of the
// gradients; SGD with momentum: their mean. AdamW in eight bits: for mean and square the scales of blocks, then the
// codes; of a small tensor the moments in fp32 and no codes.
struct StateLayout {
  at::ScalarType type = at::kFloat;
  std::int64_t elements = 0;  // 0: there is none of this kind
  std::int64_t bytes() const { return elements * static_cast<std::int64_t>(c10::elementSize(type)); }
};
std::vector<StateLayout> state_layout(OptimizerKind, std::int64_t elements, at::ScalarType);

// The values of one step, list by list; parameters and gradients of one type, all on one device.
struct Lists {
  std::vector<at::Tensor> parameters, grads;
  std::vector<std::vector<at::Tensor>>
      moments;  // a list for each entry of the layout; undefined: there is none
  // Only updates_all_types() allows these: gradients of another type, a factor of them, and copies of the updated
  // parameters in a type of fewer digits.
  std::vector<at::Tensor> copies = {};
  double coefficient = 1;
};
// Whether one update takes gradients of any type, and writes copies, of tensors like this one: AdamW of the fused
// kernel of a GPU.
bool updates_all_types(OptimizerKind, const at::Tensor& like);
// The tensor that an update reads beside them, on their device. LibTorch's fused AdamW reads its count (fp32), that in
// eight bits the values of its codes; others read none: undefined.
at::Tensor make_aid(OptimizerKind, const at::Tensor& like);
// One update of all, the count-th.
void update(OptimizerKind, const OptimizerOptions&, std::int64_t count, const Lists&, const at::Tensor& aid);

class Optimizer {
 public:
  Optimizer(std::vector<at::Tensor> parameters, OptimizerKind, OptimizerOptions = {});
  // One update; one gradient per parameter, in their order, of the parameter's shape and type.
  void step(const std::vector<at::Tensor>& grads);
  // The same with coefficient times gradients of any type; the copies, where there are any, get the updated parameters.
  // REQUIRES: updates_all_types().
  void step(const std::vector<at::Tensor>& grads, double coefficient, std::vector<at::Tensor> copies);
  bool updates_all_types() const;
  // The same in parts: begin_step(), then each parameter once, in any order.
  void begin_step() { ++count_; }
  void step_one(std::size_t i, const at::Tensor& grad);
  // Bytes of the moments.
  std::int64_t bytes() const;
  // Lists of them, in the order of the layout: one tensor for each parameter.
  const std::vector<std::vector<at::Tensor>>& moments() const { return lists_.moments; }

 private:
  OptimizerKind kind_;
  OptimizerOptions options_;
  Lists lists_;
  at::Tensor aid_;
  std::int64_t count_ = 0;
};

}  // namespace sweep::optim
