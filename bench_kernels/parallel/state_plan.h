// StatePlan: types, sharding and placement of the model states of a trial, and the channels of each bucket. The
// parts of ModelState read it.
#pragma once
#include <c10/core/ScalarType.h>

#include <vector>

#include "bench_kernels/model/parameters.h"
#include "bench_kernels/parallel/mesh.h"
#include "schema/trial.h"

namespace sweep::parallel {

struct StatePlan {
  explicit StatePlan(const Trial&);

  i64 zero = 0;
  at::ScalarType compute, weights, gradients;
  bool master = false;  // an fp32 copy beside the weights, which the optimizer updates
  bool copies = false;  // the kernels read a copy of the values, made for each use of a block
  bool parameters_outside = false, optimizer_outside = false, optimizer_in_file = false;
  bool parameters_in_file = false;
  bool products_staged = false;  // gradients are made in the type of the products' factors
  bool reshard_after_forward = true;
  i64 prefetch_forward = 0, prefetch_backward = 0;
  i64 ahead_in_backward = 0;  // blocks of prefetch_backward that are gathered before a block's backward
  bool gathers_after_block = false;  // and all of them when it is over, before its gradients are reduced
  i64 bucket_bytes = 0;

  bool gradients_sharded() const { return zero >= 2; }
  bool values_sharded() const { return zero >= 3; }
  // Quantized buckets need a copy only where ZeRO 3 shards them.
  bool copies_of(const model::Bucket& bucket) const { return bucket.quantized ? values_sharded() : copies; }
  // The optimizer's values are not the weights themselves.
  bool apart() const { return master || (optimizer_outside && !parameters_outside); }
};

// The ranks a bucket's numbers are shared with. Never null; of one rank where there is nothing to send.
struct BucketPeers {
  comm::Channel* shard = nullptr;    // each holds an equal part of what is sharded
  comm::Channel* copies = nullptr;   // same part, other tokens: gradients are averaged over both
  std::vector<comm::Channel*> sums;  // parts of the gradient that must be added, beyond the average
  double scale = 1;                  // factor of the average
};
BucketPeers peers_of(model::Role, const StatePlan&, const Mesh&, comm::Channel& alone);
// Bucket sizes are multiples of this many elements, so that every share of every role is whole and aligned.
i64 bucket_multiple(const StatePlan&, const Mesh&);

at::ScalarType compute_type(const Trial&);

}  // namespace sweep::parallel
