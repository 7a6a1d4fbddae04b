// QuantizedStacks: the bytes of stacks that are kept in 4 bits, made of weights and back. The parts of a stack lie one after
// another in the bytes of its bucket, each as shape::Nf4Extent says. A tensor is quantized whole, so that the codes do
// not depend on how it is split. It owns no bytes.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>

#include "bench_kernels/kernels/nf4.h"
#include "bench_kernels/model/stacks.h"

namespace sweep::model {

// The tensor that the part is a share of.
Part whole_of(const Part&);
std::int64_t whole_columns(const Part&, std::int64_t columns);
// How many weights the whole tensor has.
std::int64_t whole_weights(const Part&, std::int64_t columns);
// How many bytes the codes and scales of the part are.
std::int64_t quantized_bytes(const Part&, std::int64_t columns);

class QuantizedStacks {
 public:
  QuantizedStacks() = default;  // there are none
  explicit QuantizedStacks(at::TensorOptions options);

  const at::TensorOptions& options() const { return options_; }  // device and type of the weights
  // Values of a stack, or of one of its parts, from a flat tensor of its bucket's size.
  at::Tensor dequantized(const Stack&, const at::Tensor& flat) const;
  at::Tensor dequantized(const Stack&, std::size_t part, const at::Tensor& flat) const;
  // The bytes of a part, of such weights, which are asked for some at a time, in order.
  at::Tensor quantized(const Part&, std::int64_t columns, const WeightRun&) const;
  // The same of codes and scales that `make` fills; false: it has none, and the weights are quantized.
  at::Tensor packed(const Part&, std::int64_t columns,
                    const std::function<bool(const kernels::Nf4& whole)>& make,
                    const std::function<WeightRun()>& weights) const;

 private:
  void dequantize(const Stack&, std::size_t part, const at::Tensor& flat, const at::Tensor& values) const;
  void quantize_whole(const WeightRun&, std::int64_t size, const kernels::Nf4& whole) const;

  at::TensorOptions options_;
  at::Tensor maps_;  // maps of the codes
};

}  // namespace sweep::model
