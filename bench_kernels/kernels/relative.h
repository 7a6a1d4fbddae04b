// Relative positions of T5 (Raffel et al. 2019, arXiv 1910.10683, section 2.1): a learned number for each head and
// bucket of distances is added to the scores. Half of the buckets are single distances; the others grow with the
// logarithm up to a distance from which on all share the last. Queries that see keys on both sides have half of the
// buckets for each.
#pragma once
#include "bench_kernels/kernels/ops.h"

namespace sweep::kernels {

struct Buckets {
  int count = 0, furthest = 0;
  bool both_sides = false;
};
// int64 [2 seq - 1] on the device: the bucket of each distance of query - key from seq - 1 down to 1 - seq.
at::Tensor buckets_of_distances(std::int64_t seq, const Buckets&, at::Device);

// The numbers that are added to the scores, from a table [count, heads]: [heads, seq, seq], a new tensor of the table's type.
at::Tensor relative_bias(const at::Tensor& table, const at::Tensor& buckets);
// dbias: the gradient of it, [heads, seq, seq] in the accumulation type.
void relative_bias_backward(const at::Tensor& dbias, const at::Tensor& buckets, const GradOut& dtable);

}  // namespace sweep::kernels
