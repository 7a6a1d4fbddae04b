#include "bench_kernels/parallel/state_plan.h"

#include <limits>
#include <numeric>

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

// Whether ep divides the experts over ranks; else every rank of the data group has all of them, as dense tensors.
bool divides_experts(const Mesh& mesh) {
  return mesh[Dimension::kExpert].size() > 1;
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
  BucketPeers peers{&alone, &mesh[Dimension::kData], {}, 1};
  if (role == model::Role::kExpert && divides_experts(mesh)) {
    // The average is over the ranks with the same experts; each of them has the sum of ep ranks' tokens.
    peers.copies = &mesh[Dimension::kExpertData];
    peers.scale = 1.0 / static_cast<double>(mesh[Dimension::kExpert].size());
    if (plan.zero > 0) std::swap(peers.shard, peers.copies);
  } else if (plan.zero > 0) {
    peers.shard = &mesh[Dimension::kShard];
    peers.copies = &mesh[Dimension::kReplicate];
  }
  if (role == model::Role::kPartial) peers.sums.push_back(&mesh[Dimension::kTensor]);
  if (role == model::Role::kTied) peers.sums.push_back(&mesh[Dimension::kEnds]);
  return peers;
}

i64 bucket_multiple(const StatePlan& plan, const Mesh& mesh) {
  constexpr i64 kElements = 32;  // 64 bytes of the narrowest type
  if (plan.zero == 0) return 1;
  const i64 dense = mesh[Dimension::kShard].size(), experts = mesh[Dimension::kExpertData].size();
  return kElements * (divides_experts(mesh) ? std::lcm(dense, experts) : dense);
}

at::ScalarType compute_type(const Trial& t) {
  return scalar_type(shape::state_types(t).compute);
}

}  // namespace sweep::parallel
