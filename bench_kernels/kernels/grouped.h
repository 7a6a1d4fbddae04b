// Products of the rows of several experts with their weights: one kernel for all of them where the library has
// one for the device and the type, else one product for each expert.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "bench_kernels/kernels/ops.h"

namespace sweep::kernels {

// Rows of experts, one expert's after another's. The host knows how many there are; the device is told too.
struct Groups {
  std::vector<std::int64_t> counts;
  at::Tensor ends;  // int32: where each expert's rows end
  bool at_once =
      false;  // at::_grouped_mm: bf16, compute capability 9.0 or 10.x, sizes that are multiples of 8
};

// A weight is [experts * outputs, inputs], a bias [experts * outputs] (undefined: none). The results are new tensors.
at::Tensor grouped_linear(const at::Tensor& in, const at::Tensor& weight, const Groups&,
                          const at::Tensor& bias = {});
at::Tensor grouped_backward_input(const at::Tensor& dout, const at::Tensor& weight, const Groups&);
// Straight into each expert's part of the gradient: on a GPU by one product where all have as many rows, else by one for
// each expert. The library's kernel for all would need a copy of it.
void grouped_backward_weight(const at::Tensor& dout, const at::Tensor& in, const Groups&, const GradOut&);
void grouped_backward_bias(const at::Tensor& dout, const Groups&, const GradOut&);

}  // namespace sweep::kernels
