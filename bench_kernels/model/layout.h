// Layout: the share of the model that one rank computes, and the channels to the peers that hold the rest.
// One rank alone is the plain model: every channel is of size one and sends nothing.
#pragma once
#include <cstdint>

#include "bench_kernels/comm/channel.h"
#include "schema/model_spec.h"

namespace sweep::model {

// A run of consecutive layers, with the embedding before it or the head after it.
struct Chunk {
  std::int64_t first_layer = 0, layers = 0;
  bool embedding = true, head = true;
};

// Channels are never null. They outlive the model.
struct Layout {
  comm::Channel *tensor, *context, *expert;
  comm::Channel* data;              // the ranks with the same parameters and other tokens
  comm::Channel* key_value;         // ranks of the tensor group whose queries read the same key-value head
  std::int64_t token_rank = 0;      // this rank's number among them: dp rank x cp + cp rank
  bool sequence_parallel = false;   // residuals and norms on tokens / tensor->size()
  bool tensor_overlap = false;      // tensor-parallel communication in pieces, beside the matmul
  bool context_all_to_all = false;  // heads are exchanged; else K and V travel round the ring
  bool tied_elsewhere = false;      // tied embeddings, whose other end is on another stage

  std::int64_t tp() const { return tensor->size(); }
  std::int64_t cp() const { return context->size(); }
  std::int64_t ep() const { return expert->size(); }
  // The residual stream holds a share of the rows on each rank of the tensor group.
  bool rows_split() const { return sequence_parallel && tp() > 1; }
};

// The layout of one rank that holds everything.
class AloneLayout {
 public:
  Layout value() { return {&tensor_, &context_, &expert_, &data_, &key_value_}; }

 private:
  comm::Channel tensor_{"tp"}, context_{"cp"}, expert_{"ep"}, data_{"dp"}, key_value_{"kv"};
};

}  // namespace sweep::model
