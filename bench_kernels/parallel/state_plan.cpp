#include "bench_kernels/parallel/state_plan.h"

#include <limits>

#include "bench_kernels/shape/model_states.h"

namespace sweep::parallel {
namespace {

at::ScalarType scalar_type(shape::Number number) {
  switch (number) {
    case shape::Number::kBf16:
      return at::kBFloat16;
    case shape::Number::kFp16:
      return at::kHalf;
    case shape::Number::kFp32:
      break;
  }
  return at::kFloat;
}

}  // namespace

StatePlan::StatePlan(const Trial& t) : zero(t.zero) {
  const shape::StateTypes types = shape::state_types(t);
  compute = scalar_type(types.compute);
  weights = scalar_type(types.weights);
  gradients = scalar_type(types.gradients);
  master = types.master;
  parameters_outside = shape::parameters_outside(t);
  parameters_in_file = t.offload == Offload::kDiskParameters;
  optimizer_in_file = parameters_in_file || t.offload == Offload::kDisk;
  optimizer_outside = parameters_outside || optimizer_in_file || t.offload == Offload::kOptimizer;
  copies = values_sharded() || types.casts() || parameters_outside;
  products_staged = shape::stages_products(t);
  reshard_after_forward = t.reshard_after_forward;
  prefetch_forward = t.prefetch_forward;
  prefetch_backward = t.prefetch_backward;
  ahead_in_backward = shape::blocks_ahead_in_backward(t);
  gathers_after_block = copies && shape::gathers_after_block(t);
  bucket_bytes = copies ? std::numeric_limits<i64>::max() : t.grad_bucket_mb << 20;
}

BucketPeers peers_of(model::Role role, const StatePlan& plan, const Mesh& mesh, comm::Channel& alone) {
  const bool experts = role == model::Role::kExpert;
  BucketPeers peers{&alone, &mesh[experts ? Dimension::kExpertData : Dimension::kData], {}, 1};
  if (plan.zero > 0) {
    peers.shard = &mesh[experts ? Dimension::kExpertData : Dimension::kShard];
    peers.copies = &mesh[Dimension::kReplicate];
  }
  // The average is over the ranks with the same experts; each of them has the sum of ep ranks' tokens.
  if (experts) peers.scale = 1.0 / static_cast<double>(mesh[Dimension::kExpert].size());
  if (role == model::Role::kPartial) peers.sums.push_back(&mesh[Dimension::kTensor]);
  if (role == model::Role::kTied) peers.sums.push_back(&mesh[Dimension::kEnds]);
  return peers;
}

i64 bucket_multiple(const StatePlan& plan, const Mesh& mesh) {
  constexpr i64 kElements = 32;  // 64 bytes of the narrowest type
  if (plan.zero == 0) return 1;
  return kElements * mesh[Dimension::kShard].size();  // ep divides it
}

at::ScalarType compute_type(const Trial& t) {
  return scalar_type(shape::state_types(t).compute);
}

}  // namespace sweep::parallel
