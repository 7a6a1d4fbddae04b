// AdamW of lists of tensors by fused kernels of a device: one launch for 64 tensors, whatever their sizes.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace sweep::kernels {

// The numbers of an AdamW update: parameter = decay x parameter - step_size x mean / (root x sqrt(square) + eps).
struct AdamwNumbers {
  double beta1 = 0, beta2 = 0, decay = 1, step_size = 0, root = 1, eps = 0;
};

// Each list has one entry for each parameter; only `copies` may be empty. Parameters and moments are of one type, gradients of one: that of
// the parameters or the copies, or fp32.
struct AdamwLists {
  const std::vector<at::Tensor>&parameters, &grads, &means, &squares;
  const std::vector<at::Tensor>&
      copies;              // get the updated parameters in their own type; empty: there are none
  double coefficient = 1;  // factor of the gradients
  AdamwNumbers by;
};
// Updates all in place. REQUIRES: updates_lists() of them.
void adamw(const AdamwLists&);
// True if the kernel runs for such tensors. A meta tensor counts as one of CUDA.
bool updates_lists(const at::Tensor& like);

}  // namespace sweep::kernels
