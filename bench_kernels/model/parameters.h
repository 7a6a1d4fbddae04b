// Parameters: the named tensors of a model, as the Hugging Face safetensors file of its family names and
// shapes them, and their gradients. It owns the storage; it knows nothing of what is computed with them.
//
// Linear layers that read the same input (q, k, v; gate, up) are stacked: one storage, one product, and each
// named tensor a leaf that views its rows. Values depend on (seed, name, element) only, never on the layout.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench_kernels/kernels/ops.h"

namespace sweep::model {

class Parameters {
 public:
  using Id = std::size_t;
  static constexpr Id kNone = static_cast<Id>(-1);

  Parameters(at::TensorOptions options, std::uint64_t seed) : options_(options), seed_(seed) {}

  enum class Init { kUniform, kZero, kOne };
  // A tensor of its own storage.
  Id add(std::string name, at::IntArrayRef shape, Init init);

  struct Part {
    std::string name;
    std::int64_t rows = 0;
  };
  struct Stack {
    std::vector<Id> parts;
    at::Tensor whole;  // over the storage of all parts, in their order; no leaf
  };
  // Tensors stacked along their first dimension; columns 0: vectors.
  Stack add_stack(const std::vector<Part>&, std::int64_t columns, Init init);

  // Allocates the gradients, stacked like the parameters. Without this call they come from elsewhere
  // (gradient buckets).
  void allocate_gradients();

  const at::Tensor& operator[](Id id) const { return list_[id].second; }
  const std::vector<std::pair<std::string, at::Tensor>>& all() const { return list_; }

  // Where the gradient of one tensor, or of a stack (one entry per contiguous run), goes; begin and rows say
  // which rows.
  struct GradRows {
    kernels::GradOut out;
    std::int64_t begin = 0, rows = 0;
  };
  kernels::GradOut grad(Id id, bool add) const { return {list_[id].second.grad(), add}; }
  std::vector<GradRows> grads(const Stack&, bool add) const;
  // Says that the gradient of this micro-step is complete: runs the tensor's post-accumulate hook.
  void ready(Id id) const;
  void ready(const Stack&) const;

 private:
  void fill(Id id, Init init);

  at::TensorOptions options_;
  std::uint64_t seed_;
  std::vector<std::pair<std::string, at::Tensor>> list_;
  std::vector<Stack> stacks_;
};

}  // namespace sweep::model
