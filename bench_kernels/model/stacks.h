// Stack: tensors of a model that lie one after another in a Bucket, as this rank holds them. Plain data, and the views
// of it in a flat tensor; Parameters makes it.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace sweep::model {

// The positions in the whole tensor, in order, of the rows (dimension 0) or columns (1) that a rank holds.
struct Slice {
  std::int64_t dimension = 0;
  std::int64_t whole = 0;  // size of that dimension in the whole tensor; 0: not split
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // begin, size
};

// Over which ranks a gradient must be summed beyond the data-parallel group: kPartial over the tensor group
// (norms under sequence parallelism, each rank's from its share of the rows), kTied over first and last
// stage. kExpert: over the ranks that hold the same experts instead of the data-parallel group.
enum class Role { kDense, kPartial, kTied, kExpert };

enum class Init { kUniform, kZero, kOne };

struct Part {
  std::string name;
  std::int64_t rows = 0;     // rows that this rank holds, padding included
  Slice slice;               // its place in the whole tensor
  std::int64_t padding = 0;  // number of last rows that are zeros and no part of the whole tensor
  std::int64_t real_rows() const { return rows - padding; }
};

struct Stack {
  std::vector<Part> parts;
  std::int64_t columns = 0;  // 0: vectors
  Init init = Init::kUniform;
  Role role = Role::kDense;
  bool frozen = false;     // read only: no gradient, no update
  bool quantized = false;  // kept in 4 bits (quantized_stacks.h)
  std::size_t group = 0;
  std::size_t bucket = 0;
  std::int64_t offset = 0;  // elements, in the bucket
  std::int64_t rows() const;
  std::int64_t elements() const { return rows() * (columns ? columns : 1); }
  // Elements in the bucket, of a part or all: of a quantized stack bytes.
  std::int64_t kept(const Part&) const;
  std::int64_t kept() const;
  // The view of the stack (or of one of its parts, without its padding) in any flat tensor of its bucket's size.
  at::Tensor view(const at::Tensor& flat) const;
  at::Tensor view(std::size_t part, const at::Tensor& flat) const;
};

struct Bucket {
  Role role = Role::kDense;
  bool frozen = false, quantized = false;
  std::size_t group = 0;
  std::vector<std::size_t> stacks;
  std::int64_t elements = 0;  // padded to the multiple that layout() was given
  at::Tensor values;          // flat, in the type the kernels compute in; quantized: bytes
  at::Tensor grads;           // flat, set by whoever owns the gradients; undefined: no room now
};

// Writes a whole tensor's weights from `first` on into a flat run.
using WeightRun = std::function<void(std::int64_t first, const at::Tensor& run)>;

}  // namespace sweep::model
