// Split traffic: the bytes that one rank sends in one step for tensor and context parallelism, in closed form
// (Channel counts the same in the step; a test compares). Payloads count (n-1)/n of the whole tensor, an
// all-reduce twice that.
#pragma once
#include "schema/trial.h"

namespace sweep::shape {

struct Volume {
  i64 calls = 0, bytes = 0;
  bool operator==(const Volume&) const = default;
};

// Per layer and micro-batch four all-reduces of the activations (Shoeybi et al. 2019, section 3), or under
// sequence parallelism six all-gathers and four reduce-scatters (two of the gathers are repeated in backward
// instead of kept: Korthikanti et al. 2022, section 4.2.2); one or two of each for embedding and head; two
// small all-reduces for the cross-entropy; and once a step the sum of the norms' gradients.
struct TensorTraffic {
  Volume all_reduce, all_gather, reduce_scatter;
};
// REQUIRES: tp > 1, pp == 1, recompute none. Pieces of an overlapped exchange count as one call.
TensorTraffic tensor_traffic(const Trial&);

// Ring: K and V go to the next rank cp - 1 times forward and backward, their gradients cp - 1 times backward
// (Liu et al. 2023, section 3). All-to-all: q, k, v and the result, forward and backward (Jacobs et al. 2023,
// section 3.1).
struct ContextTraffic {
  Volume send, all_to_all;
};
// REQUIRES: cp > 1, pp == 1, recompute none.
ContextTraffic context_traffic(const Trial&);

}  // namespace sweep::shape
