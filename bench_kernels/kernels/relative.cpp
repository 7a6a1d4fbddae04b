#include "bench_kernels/kernels/relative.h"

#include <ATen/ATen.h>

#include <cmath>
#include <optional>
#include <vector>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/dispatch.h"

namespace sweep::kernels {
namespace {

// distance: of a key before its query, or, on both sides, also behind it (negative).
std::int64_t bucket_of(std::int64_t distance, const Buckets& b) {
  const std::int64_t side = b.both_sides ? b.count / 2 : b.count, exact = side / 2;
  const std::int64_t first = b.both_sides && distance < 0 ? side : 0;
  const std::int64_t away = b.both_sides ? std::abs(distance) : std::max<std::int64_t>(distance, 0);
  if (away < exact) return first + away;
  // The reference computes in fp32 too: a number at the edge of two buckets goes where it goes there.
  const float share =
      std::log(static_cast<float>(away) / static_cast<float>(exact)) /
      static_cast<float>(std::log(static_cast<double>(b.furthest) / static_cast<double>(exact)));
  const auto further = static_cast<std::int64_t>(share * static_cast<float>(side - exact));
  return first + std::min(exact + further, side - 1);
}

// seq - 1, ..., 0, where `like` is.
at::Tensor backwards(std::int64_t seq, const at::Tensor& like) {
  return at::arange(seq - 1, -1, -1, like.options());
}

}  // namespace

at::Tensor buckets_of_distances(std::int64_t seq, const Buckets& buckets, at::Device device) {
  std::vector<std::int64_t> of;
  for (std::int64_t distance = seq - 1; distance > -seq; --distance)
    of.push_back(bucket_of(distance, buckets));
  const at::Tensor out = at::empty({2 * seq - 1}, at::TensorOptions(device).dtype(at::kLong));
  if (!out.is_meta()) at::Tensor(out).copy_(at::from_blob(of.data(), {2 * seq - 1}, at::kLong));
  return out;
}

// Row q of the result begins at distance q, which is the number seq - 1 - q.
at::Tensor relative_bias(const at::Tensor& table, const at::Tensor& buckets) {
  const std::int64_t seq = (buckets.size(0) + 1) / 2;
  if (way(table) == Way::kNothing) return at::empty({table.size(1), seq, seq}, table.options());
  at::Tensor by_distance, rows;
  {
    std::optional<memory::ScratchScope> scratch;
    if (table.is_cpu()) scratch.emplace();
    by_distance = at::index(table, {std::optional<at::Tensor>(buckets)}).t().contiguous();
    rows = backwards(seq, buckets);
  }
  return at::index(by_distance.unfold(1, seq, 1), {std::nullopt, std::optional<at::Tensor>(rows)});
}

// Rows that are as long as there are distances, the first one earlier: a column holds one distance.
void relative_bias_backward(const at::Tensor& dbias, const at::Tensor& buckets, const GradOut& dtable) {
  if (way(dbias) == Way::kNothing) return;
  std::optional<memory::ScratchScope> scratch;
  if (dbias.is_cpu()) scratch.emplace();
  const std::int64_t heads = dbias.size(0), seq = dbias.size(1), distances = 2 * seq - 1;
  const at::Tensor wide = at::zeros({heads, seq * 2 * seq}, dbias.options());
  wide.view({heads, seq, 2 * seq}).narrow(2, 0, seq).index_copy_(1, backwards(seq, buckets), dbias);
  const at::Tensor by_distance = wide.narrow(1, 0, seq * distances).view({heads, seq, distances}).sum(1);
  const at::Tensor sums = at::zeros({dtable.grad.size(0), heads}, dbias.options());
  at::Tensor(sums).index_add_(0, buckets, by_distance.t());
  put(dtable, sums);
}

}  // namespace sweep::kernels
