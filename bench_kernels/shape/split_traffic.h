// Split traffic: the bytes that one rank sends in one step for tensor, context and expert parallelism and for
// tied embeddings, in closed form (Channel counts the same in the step; tests compare). Payloads count
// (n-1)/n of the whole tensor, an all-reduce twice that. Of a pipeline's rank: what its own layers and ends
// send. Data parallelism and ZeRO: model_states.h; activations between stages: stage_split.h.
#pragma once
#include "schema/trial.h"

namespace sweep::shape {

struct Volume {
  i64 calls = 0, bytes = 0;
  bool operator==(const Volume&) const = default;
  Volume& operator+=(const Volume& other) {
    calls += other.calls, bytes += other.bytes;
    return *this;
  }
};

// Per layer and micro-batch four all-reduces of the activations (Shoeybi et al. 2019, section 3), or under
// sequence parallelism six all-gathers and four reduce-scatters (two of the gathers are repeated in backward
// instead of kept: Korthikanti et al. 2022, section 4.2.2); recompute full runs forward again: two more of
// each. An expert layer keeps its rows whole, which saves one gather, and sums the gradients of the choices' weights
// over the group. Latent attention also keeps its rows whole. In backward it sums the latents' gradient over the group;
// where queries have a latent, it sums nothing else. One or two of each for embedding and head; two small all-reduces
// for the cross-entropy; and once a step the sum of the norms' gradients, on the shard under ZeRO. With adapters the
// norms are frozen, and what is summed once a step (with or without sequence parallelism) are the gradients of the
// adapters' unsplit matrices; rows that only a frozen weight's gradient would read are not gathered.
struct TensorTraffic {
  Volume all_reduce, all_gather, reduce_scatter;
};
// REQUIRES: tp > 1; the norms of a chunk fit in one bucket (grad_bucket_mb). Pieces of an overlapped exchange count
// as one call.
TensorTraffic tensor_traffic(const Trial&, i64 pipeline_rank = 0);

// Traffic of ranks that share a key-value head (tp > kv_heads). Per layer and micro-batch the head's k and v
// are gathered from its ranks' pieces, once more by recompute full, and their gradients are summed and
// scattered.
struct KeyValueTraffic {
  Volume all_gather, reduce_scatter;
};
KeyValueTraffic key_value_traffic(const Trial&, i64 pipeline_rank = 0);

// Ring: K and V go to the next rank cp - 1 times forward and backward, their gradients cp - 1 times backward
// (Liu et al. 2023, section 3). All-to-all: q, k, v and the result, forward and backward (Jacobs et al. 2023,
// section 3.1). Recomputation repeats the forward's: of the attention alone (selective) the ring, or the
// exchange of the result.
struct ContextTraffic {
  Volume send, all_to_all;
};
// REQUIRES: cp > 1.
ContextTraffic context_traffic(const Trial&, i64 pipeline_rank = 0);

// Per expert layer and micro-batch rows go to their experts and back, forward and backward: four all-to-alls
// (Lepikhin et al. 2020, GShard, section 3.2; Rajbhandari et al. 2022, DeepSpeed-MoE, section 5.2), six with
// full recomputation. Learned routing asks the peers' counts before each dispatch. `load`: the auxiliary
// loss's mean of the experts' shares over all data-parallel ranks (also where ep is 1).
struct ExpertTraffic {
  Volume all_to_all, counts, load;
};
// REQUIRES: experts > 0. The bytes of all_to_all are those of an even choice, or of the part that
// capacity_percent leaves: routing balanced, and experts divide the choices of each rank's positions.
ExpertTraffic expert_traffic(const Trial&, i64 pipeline_rank = 0);

// The table of tied embeddings that first and last stage both hold: the sum of its two gradients, once a
// step. Padding counts, of rows and of the bucket: it is sent.
Volume tied_traffic(const Trial&, i64 pipeline_rank);

}  // namespace sweep::shape
