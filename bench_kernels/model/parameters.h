// Parameters: the named tensors of the model part that one rank holds, as the Hugging Face safetensors file
// of the family names and shapes them, and where their gradients go. It owns the flat buffers of values; it
// knows nothing of what is computed with them, of other ranks, or of who owns the gradients.
//
// Linear layers that read the same input (q, k, v; gate, up) are one Stack: contiguous, one product. Stacks
// lie in Buckets: flat buffers of one kind and group (a block, the embedding, the head), which is what ZeRO
// shards, gathers and reduces. Values depend on (seed, name, element of the whole tensor) only, never on how
// the tensor is split.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench_kernels/kernels/nf4.h"
#include "bench_kernels/kernels/ops.h"

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

class Parameters {
 public:
  using Id = std::size_t;
  static constexpr Id kNone = static_cast<Id>(-1);
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
    bool quantized = false;  // kept in 4 bits (quantized.cpp)
    std::size_t group = 0;
    std::size_t bucket = 0;
    std::int64_t offset = 0;  // elements, in the bucket
    std::int64_t rows() const;
    std::int64_t elements() const { return rows() * (columns ? columns : 1); }
    // Elements in the bucket, of a part or all: of a quantized stack bytes.
    std::int64_t kept(const Part&) const;
    std::int64_t kept() const;
  };
  struct Bucket {
    Role role = Role::kDense;
    bool frozen = false, quantized = false;
    std::size_t group = 0;
    std::vector<Id> stacks;
    std::int64_t elements = 0;  // padded to the multiple that layout() was given
    at::Tensor values;          // flat, in the type the kernels compute in; quantized: bytes
    at::Tensor grads;           // flat, set by whoever owns the gradients; undefined: no room now
  };

  // Writes the initial values of this rank's share of a tensor (without its padding).
  using Source = std::function<void(const Part&, const at::Tensor& share)>;
  // Fills codes and scales of a whole tensor that is kept in 4 bits; false: it has none, and nothing is written.
  using CodeSource = std::function<bool(const Part& whole, const kernels::Nf4&)>;
  // source: where initial values come from; empty: drawn from the seed. codes: where those of quantized stacks
  // come from; empty, or it has none: the initial values are quantized. filled: told after each tensor that has
  // its initial values.
  explicit Parameters(std::uint64_t seed, Source source = nullptr, CodeSource codes = nullptr,
                      std::function<void()> filled = nullptr)
      : seed_(seed), source_(std::move(source)), codes_(std::move(codes)), filled_(std::move(filled)) {}
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  // Tensors stacked along their first dimension; columns 0: vectors. Before layout() only.
  Id add(std::vector<Part> parts, std::int64_t columns, Init, Role = Role::kDense);
  // Stacks that add() makes from now on are frozen; those of add_trained() are not.
  void freeze_base() { base_frozen_ = true; }
  Id add_trained(std::vector<Part> parts, std::int64_t columns, Init, Role = Role::kDense);
  bool trains(Id id) const { return !stacks_[id].frozen; }
  // Keeps a frozen stack in 4 bits: weight() makes its values anew for each use. Before layout() only.
  void quantize(Id id);
  // Stacks added from now on belong to this group (numbered from 0 in the order of use in forward).
  void begin_group() { ++groups_; }
  std::size_t groups() const { return groups_; }
  // The group that is open reads this stack of an earlier group too (a head that shares the table).
  void also_reads(Id id) { also_read_.emplace_back(groups_ - 1, id); }

  struct Layout {
    at::TensorOptions options;      // device and type of the values
    std::int64_t bucket_bytes = 0;  // a bucket is closed before it would grow larger (one stack alone may be)
    bool within_groups = false;     // a bucket never spans two groups
    std::int64_t multiple = 1;      // bucket sizes are multiples of this many elements
    // Products write gradients in the values' type even where they could write the buffers'.
    bool products_staged = false;
    // Told of each bucket in turn, in the place of filling it: it may fill, copy or free the values before
    // the next bucket's are allocated.
    std::function<void(const Bucket&)> place = nullptr;
  };
  // Assigns stacks to buckets, last group first (the order in which backward completes them), allocates the
  // values and fills them.
  void layout(const Layout&);

  const std::vector<Stack>& stacks() const { return stacks_; }
  std::vector<Bucket>& buckets() { return buckets_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  // Writes the initial values of a bucket's elements from `first` on into a flat tensor (of any floating
  // type), drawn on the bucket's device.
  void fill(const Bucket&, const at::Tensor& flat, std::int64_t first = 0) const;

  // Buckets whose values a group reads, ascending. After layout().
  std::vector<std::size_t> buckets_read_by(std::size_t group) const;

  // Values of a whole stack, [rows, columns] or [rows]. REQUIRES: it is not quantized.
  const at::Tensor& operator[](Id id) const { return values_[id]; }
  // The same of any stack; of a quantized one in a tensor of the caller's own.
  at::Tensor weight(Id id) const {
    return stacks_[id].quantized ? dequantized(id, bucket_of(id).values) : values_[id];
  }
  // Writes a whole tensor's weights from `first` on into a flat run.
  using WeightRun = std::function<void(std::int64_t first, const at::Tensor& run)>;
  // Gives the initial weights of the whole tensor of which the part is a share; how many those are.
  WeightRun initial_weights(Id, std::size_t part) const;
  std::int64_t whole_weights(Id, std::size_t part) const;
  at::ScalarType weight_type() const { return options_.dtype().toScalarType(); }
  // The bytes of a quantized part, of such weights, which are asked for some at a time, in order.
  at::Tensor quantized(Id, std::size_t part, const WeightRun&) const;
  // Values of a quantized stack, in the type the kernels compute in, from a flat tensor of its bucket's size.
  at::Tensor dequantized(Id id, const at::Tensor& flat) const;
  // The view of a stack (or of one of its parts, without its padding) in any flat tensor of its bucket's
  // size.
  at::Tensor view(Id id, const at::Tensor& flat) const;
  at::Tensor view(Id id, std::size_t part, const at::Tensor& flat) const;

  // The destination of the gradient: the first writer since forget_gradients() overwrites it, later ones add
  // to it. If the gradient buffer is of another type than the values, a temporary of the values' type takes
  // what this micro-batch writes, and ready() adds it to the buffer.
  kernels::GradOut grad(Id id) const;
  // The same for a product's result, which a GPU writes into a buffer of fp32 without a temporary.
  kernels::GradOut product_grad(Id id) const;
  void forget_gradients(const Bucket&);
  // Says that this micro-batch's part of the gradient is there: tells the observer.
  void ready(Id id) const;
  void set_observer(std::function<void(Id)> observer) { observer_ = std::move(observer); }

  struct Named {
    std::string name;
    Id stack;
    std::size_t part;
  };
  // Every tensor, in the order of use in forward.
  std::vector<Named> all() const;
  at::Tensor value(const Named& n) const { return value(n, bucket_of(n.stack).values); }
  // The same from a flat tensor of the bucket's size.
  at::Tensor value(const Named& n, const at::Tensor& flat) const;
  at::Tensor gradient(const Named& n) const { return view(n.stack, n.part, bucket_of(n.stack).grads); }
  const Bucket& bucket_of(Id id) const { return buckets_[stacks_[id].bucket]; }

 private:
  void fill_from_source(const Bucket&, const at::Tensor& flat, std::int64_t first) const;
  void dequantize(Id, std::size_t part, const at::Tensor& flat, const at::Tensor& values) const;
  void fill_quantized(const Bucket&, const at::Tensor& flat, std::int64_t first) const;
  void quantize_whole(const WeightRun&, std::int64_t size, const kernels::Nf4& whole) const;
  at::Tensor packed(Id, std::size_t part, const std::function<void(const kernels::Nf4& whole)>& make) const;
  at::Tensor initial_codes(Id, std::size_t part) const;
  void draw(const Part&, std::int64_t columns, std::int64_t first, const at::Tensor& run, at::Device) const;

  kernels::GradOut in_buffer(Id) const;

  std::uint64_t seed_;
  Source source_;
  CodeSource codes_;
  std::function<void()> filled_;
  std::size_t groups_ = 0;
  bool base_frozen_ = false;
  std::vector<Stack> stacks_;
  std::vector<Bucket> buckets_;
  at::TensorOptions options_;  // options of values
  bool products_staged_ = false;
  at::Tensor maps_;                         // maps of the codes of quantized stacks
  std::vector<at::Tensor> values_;          // one view per stack
  mutable std::vector<bool> written_;       // per stack, since forget_gradients()
  mutable std::vector<at::Tensor> staged_;  // per stack: this micro-batch's gradient in the values' type
  std::vector<std::pair<std::size_t, Id>> also_read_;
  std::function<void(Id)> observer_;
};

}  // namespace sweep::model
