// ChunkParameters: how many numbers of a chunk of the model a rank holds, by group (embedding, a layer, head)
// and role; and the memory of their gradients as backward goes through the groups.
#pragma once
#include <vector>

#include "bench_kernels/shape/stage_split.h"
#include "bench_kernels/shape/step_sizes.h"
#include "bench_kernels/shape/unit_memory.h"

namespace sweep::shape {

// kPartial, kExpert: other ranks share them than the rest, so they lie in buckets of their own
// (model/parameters.h).
struct GroupElements {
  double dense = 0, partial = 0, experts = 0;   // trained
  double frozen = 0, frozen_experts = 0;        // read only, without gradients
  double quantized = 0, quantized_experts = 0;  // bytes, of weights that are counted nowhere else
  double trained() const { return dense + partial + experts; }
  double all() const { return trained() + frozen + frozen_experts; }
};

// kept: until the next step begins. whole: buckets on their way to shards (ZeRO 2 and 3).
struct GradientBytes {
  double kept = 0, whole = 0;
  double total() const { return kept + whole; }
};

// While a part of a layer is at work (of ends: at_mlp), and when the group's backward is over. The gradients of experts
// leave before at_cross.
struct GradientRoom {
  GradientBytes at_mlp, at_cross, at_attention, at_end;
};

// Backwards of a chunk in a step: the first one makes the gradients, the next ones add to them.
enum class Backward { kFirst, kNext };

struct LayerContents {
  GroupElements elements;
  std::vector<std::pair<double, int>> stacks;  // elements and role, in the order of backward; the MLP's first
  std::size_t mlp_stacks = 0;
  std::size_t cross_end = 0;  // the stacks of cross-attention are those from mlp_stacks to here
};

struct ChunkContents {
  UnitWeights weights;
  GroupElements embedding, head;
  // dense_layer: without the experts that others have; encoder_layer: without cross-attention; encoder_end: positions of
  // the decoder, then the encoder's last norm.
  LayerContents layer, dense_layer, encoder_layer, encoder_end;
  // All; those of each kind come first. After the encoder's the group encoder_end follows.
  i64 layers = 0, dense_layers = 0, encoder_layers = 0;
  const LayerContents& at(i64 number) const {
    if (number < encoder_layers) return encoder_layer;
    return number < dense_layers ? dense_layer : layer;
  }
  bool has_encoder() const { return encoder_layers > 0; }
  i64 groups() const { return layers + has_embedding + has_encoder() + has_head; }
  i64 group_of(i64 layer) const { return layer + has_embedding + (has_encoder() && layer >= encoder_layers); }
  bool has_embedding = false, has_head = false, tied_here = false;
  bool table_stays = false;     // more than one group reads the token table
  bool tied_elsewhere = false;  // first and last stage both hold the table: a bucket of its own on each
  bool copies = false;          // the kernels read copies of the values, which come and go by group
};

class ChunkParameters : public ChunkContents {
 public:
  ChunkParameters(const Trial&, const StepSizes&, const StageShare&);

  // The sum over all groups, padding included.
  const GroupElements& all() const { return all_; }
  GroupElements largest_bucket() const;  // largest trained bucket of each role
  // Groups in order of forward: embedding (if here), layers (the encoder's, its end), head (if here). Of a next backward beside the
  // gradients that are there.
  std::vector<GradientRoom> rooms(Backward) const;
  // Bytes of what is still under way when backward is over: until the chunk works again.
  double room_left() const;

 private:
  GroupElements sum_of_groups() const;
  double padded(double elements) const;
  GroupElements padded(GroupElements) const;
  LayerContents count_layer(const Trial&, bool experts, bool cross = false);
  void count_cross_attention(const ModelSpec&, LayerContents&);
  void count_mlp(const ModelSpec&, bool experts, LayerContents&);
  void count_attention(const ModelSpec&, LayerContents&);
  void count_latent_attention(LayerContents&);
  void count_adapters_of_mlp(const Adapters&, LayerContents&);
  void count_adapters_of_attention(const Adapters&, LayerContents&);
  void count_adapters_of_latents(const Adapters&, LayerContents&);
  void add(LayerContents&, double elements, int role) const;
  // Adds the weight of a linear layer; a quantized one is counted apart.
  void add_weight(LayerContents&, double elements, int role) const;
  static void train(LayerContents&, double elements, int role);
  double under_way_last(const GroupElements&) const;
  std::vector<GradientRoom> rooms_of_groups(Backward) const;
  std::vector<GradientRoom> rooms_of_buckets(Backward) const;

  StepSizes s_;
  GroupElements all_;
  double multiple_ = 1, bucket_bytes_ = 0;
  bool sharded_ = false, adds_ = false;   // gradients; in micro-steps after the first
  bool leaves_last_ = false;              // buckets of gradients leave when their group's backward is over
  double of_dense_ = 1, of_experts_ = 1;  // shards, as shares of a bucket
};

}  // namespace sweep::shape
