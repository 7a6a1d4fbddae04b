// InitialValues: the values that tensors have before the first step: drawn, or of a source. Drawn ones depend on (seed,
// name, element of the whole tensor) only, never on how the tensor is split.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "bench_kernels/model/quantized_stacks.h"
#include "bench_kernels/model/stacks.h"

namespace sweep::model {

class InitialValues {
 public:
  // Writes the initial values of this rank's share of a tensor (without its padding).
  using Source = std::function<void(const Part&, const at::Tensor& share)>;
  // Fills codes and scales of a whole tensor that is kept in 4 bits; false: it has none, and nothing is written.
  using CodeSource = std::function<bool(const Part& whole, const kernels::Nf4&)>;
  // source: where initial values come from; empty: drawn from the seed. codes: where those of quantized stacks
  // come from; empty, or it has none: the initial values are quantized. filled: told after each tensor that has
  // its initial values.
  explicit InitialValues(std::uint64_t seed, Source source = nullptr, CodeSource codes = nullptr,
                         std::function<void()> filled = nullptr)
      : seed_(seed), source_(std::move(source)), codes_(std::move(codes)), filled_(std::move(filled)) {}

  // Writes the elements of a bucket of these stacks from `first` on into a flat tensor.
  void fill(const std::vector<Stack>&, const Bucket&, const at::Tensor& flat, std::int64_t first,
            const QuantizedStacks&) const;
  // Gives the weights of the whole tensor of which the part is a share; the object must outlive the function.
  WeightRun of_whole(const Part&, std::int64_t columns, at::TensorOptions) const;

 private:
  void fill_from_source(const std::vector<Stack>&, const Bucket&, const at::Tensor& flat,
                        std::int64_t first) const;
  void fill_quantized(const std::vector<Stack>&, const Bucket&, const at::Tensor& flat, std::int64_t first,
                      const QuantizedStacks&) const;
  void draw(const Part&, std::int64_t columns, std::int64_t first, const at::Tensor& run, at::Device) const;

  std::uint64_t seed_;
  Source source_;
  CodeSource codes_;
  std::function<void()> filled_;
};

}  // namespace sweep::model
