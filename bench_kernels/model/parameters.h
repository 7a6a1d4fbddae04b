// Parameters: the named tensors of the model part that one rank holds, as the Hugging Face safetensors file
// of the family names and shapes them, and where their gradients go. It owns the flat buffers of values; it
// knows nothing of what is computed with them, of other ranks, or of who owns the gradients.
//
// Linear layers that read the same input (q, k, v; gate, up) are one Stack: contiguous, one product. Stacks
// lie in Buckets: flat buffers of one kind and group (a block, the embedding, the head), which is what ZeRO
// shards, gathers and reduces.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench_kernels/model/gradient_buffers.h"
#include "bench_kernels/model/initial_values.h"
#include "bench_kernels/model/quantized_stacks.h"
#include "bench_kernels/model/stacks.h"

namespace sweep::model {

class Parameters {
 public:
  using Id = std::size_t;
  static constexpr Id kNone = static_cast<Id>(-1);

  explicit Parameters(InitialValues initial) : initial_(std::move(initial)) {}
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
    return stacks_[id].quantized ? codes_.dequantized(stacks_[id], bucket_of(id).values) : values_[id];
  }
  const QuantizedStacks& codes() const { return codes_; }
  // Gives the initial weights of the whole tensor of which a quantized part is a share.
  WeightRun initial_weights(Id id, std::size_t part) const {
    return initial_.of_whole(stacks_[id].parts[part], stacks_[id].columns, codes_.options());
  }
  GradientBuffers& gradients() const { return gradients_; }

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
  at::Tensor gradient(Id id) const { return stacks_[id].view(bucket_of(id).grads); }
  at::Tensor gradient(const Named& n) const {
    return stacks_[n.stack].view(n.part, bucket_of(n.stack).grads);
  }
  const Bucket& bucket_of(Id id) const { return buckets_[stacks_[id].bucket]; }

 private:
  InitialValues initial_;
  QuantizedStacks codes_;
  mutable GradientBuffers gradients_{*this};
  std::size_t groups_ = 0;
  bool base_frozen_ = false;
  std::vector<Stack> stacks_;
  std::vector<Bucket> buckets_;
  std::vector<at::Tensor> values_;  // one view per stack
  std::vector<std::pair<std::size_t, Id>> also_read_;
};

}  // namespace sweep::model
