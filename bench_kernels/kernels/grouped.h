// Products of the rows of several experts with their weights: one kernel for all of them where the library has
// one for the device and the type, else one product for each expert.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bench_kernels/kernels/ops.h"

namespace sweep::kernels {

// Numbers of a device that the host reads later. The copy starts when this is made; who asks before it is there waits.
class Arriving {
 public:
  explicit Arriving(const at::Tensor& numbers);  // int64, of a device or a processor
  const std::vector<std::int64_t>& get();

 private:
  at::Tensor host_;
  std::optional<c10::Event> there_;
  std::vector<std::int64_t> values_;
};

// Rows of experts, one expert's after another's. The device knows where they end, the host how many they are: beforehand,
// or when it asks.
struct Groups {
  std::vector<std::int64_t> known;
  at::Tensor ends;  // int32: where each expert's rows end
  bool at_once =
      false;  // at::_grouped_mm: bf16, compute capability 9.0 or 10.x, sizes that are multiples of 8
  std::shared_ptr<Arriving> arriving = {};
  const std::vector<std::int64_t>& counts() const { return arriving ? arriving->get() : known; }
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
