// ChunkParameters: how many numbers of a chunk of the model a rank holds, by group (embedding, a layer, head)
// and role; and the room that whole gradients take where they are sharded (ZeRO 2 and 3), as backward goes
// through the groups.
#pragma once
#include <vector>

#include "bench_kernels/shape/stage_split.h"
#include "bench_kernels/shape/step_sizes.h"
#include "bench_kernels/shape/unit_memory.h"

namespace sweep::shape {

// kPartial, kExpert: other ranks share them than the rest, so they lie in buckets of their own
// (model/parameters.h).
struct GroupElements {
  double dense = 0, partial = 0, experts = 0;  // trained
  double frozen = 0, frozen_experts = 0;       // read only, without gradients
  double trained() const { return dense + partial + experts; }
  double all() const { return trained() + frozen + frozen_experts; }
};

// Room for the buckets that a group's gradients lie in.
struct GradientRoom {
  // Bytes, while either half of a layer is at work (of ends: at_mlp), and when the group's backward is over.
  double at_mlp = 0, at_attention = 0, at_end = 0;
};

struct ChunkContents {
  UnitWeights weights;
  GroupElements embedding, layer, head;
  i64 layers = 0;
  bool has_embedding = false, has_head = false, tied_here = false;
  bool tied_elsewhere = false;  // first and last stage both hold the table: a bucket of its own on each
  bool copies = false;          // the kernels read copies of the values, which come and go by group
};

class ChunkParameters : public ChunkContents {
 public:
  ChunkParameters(const Trial&, const StepSizes&, const StageShare&);

  // The sum over all groups, padding included.
  GroupElements all() const;
  GroupElements largest_bucket() const;  // of what is trained, each of its role
  // Groups in order of forward: embedding (if here), layers, head (if here).
  std::vector<GradientRoom> rooms(const Trial&) const;
  // Bytes of what is still under way when backward is over: until the chunk works again.
  double room_left(const Trial&) const;

 private:
  double padded(double elements) const;
  GroupElements padded(GroupElements) const;
  void count_layer(const Trial&);
  void count_adapters_of_mlp(const Adapters&);
  void count_adapters_of_attention(const Adapters&);
  void train(double elements, int role);
  double under_way_last(const GroupElements&) const;
  // The first layer of those that are computed again together with layer l: room is made for all of them
  // then.
  i64 first_of(i64 l) const { return l - l % again_; }
  std::vector<GradientRoom> rooms_of_groups() const;
  std::vector<GradientRoom> rooms_of_buckets() const;

  StepSizes s_;
  double multiple_ = 1, bucket_bytes_ = 0;
  // Copies of a bucket while it is reduced: the bucket itself, and what is added to its shard.
  double under_way_ = 1, experts_under_way_ = 1;
  i64 again_ = 1;
  std::vector<std::pair<double, int>>
      layer_stacks_;  // elements and role, in the order of backward; MLP's first
  std::size_t mlp_stacks_ = 0;
  bool partial_first_ = false;  // adapters: of a group, the bucket of partial gradients leaves first
};

}  // namespace sweep::shape
