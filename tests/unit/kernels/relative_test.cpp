// Relative positions: buckets of distances by hand, and what is added to scores against sums over all pairs.
#include "bench_kernels/kernels/relative.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace sweep::kernels {
namespace {

constexpr Buckets kOneSide{32, 128, false}, kBothSides{32, 128, true};

// The bucket of a query that is so far behind its key.
std::int64_t bucket(std::int64_t distance, const Buckets& buckets) {
  constexpr std::int64_t kSeq = 1200;
  return buckets_of_distances(kSeq, buckets, at::kCPU)[kSeq - 1 - distance].item<std::int64_t>();
}

TEST(RelativePositions, NearDistancesHaveBucketsOfTheirOwn) {
  for (const std::int64_t near : {0, 1, 7, 15}) EXPECT_EQ(bucket(near, kOneSide), near);
  EXPECT_EQ(bucket(-5, kOneSide), 0) << "a key that no query sees";
  EXPECT_EQ(bucket(7, kBothSides), 7);
  EXPECT_EQ(bucket(-7, kBothSides), 16 + 7);
}

TEST(RelativePositions, FarDistancesShareThem) {
  EXPECT_EQ(bucket(16, kOneSide), 16);
  EXPECT_EQ(bucket(31, kOneSide), 21);  // 16 + floor(16 log(31 / 16) / log(128 / 16))
  EXPECT_EQ(bucket(120, kOneSide), 31);
  EXPECT_EQ(bucket(1000, kOneSide), 31);
  EXPECT_EQ(bucket(20, kBothSides), 10);  // 8 + floor(8 log(20 / 8) / log(128 / 8))
  EXPECT_EQ(bucket(-20, kBothSides), 26);
  EXPECT_EQ(bucket(-1000, kBothSides), 31);
}

TEST(RelativePositions, EachPairTakesItsDistance) {
  constexpr std::int64_t kSeq = 40, kHeads = 3;
  at::manual_seed(3);
  for (const Path way : {Path::kFused, Path::kPlain})
    for (const Buckets& buckets : {kOneSide, kBothSides}) {
      set_path(way);
      const at::Tensor of = buckets_of_distances(kSeq, buckets, at::kCPU);
      const at::Tensor table = at::randn({32, kHeads}, at::kDouble),
                       grad = at::randn({kHeads, kSeq, kSeq}, at::kDouble);
      const at::Tensor bias = relative_bias(table, of), sums = at::ones({32, kHeads}, at::kDouble);
      at::Tensor wanted = at::ones({32, kHeads}, at::kDouble);
      relative_bias_backward(grad, of, {sums, /*add=*/true});
      for (std::int64_t q = 0; q < kSeq; ++q)
        for (std::int64_t k = 0; k < kSeq; ++k) {
          const auto row = of[kSeq - 1 - (q - k)].item<std::int64_t>();
          ASSERT_TRUE(bias.select(1, q).select(1, k).equal(table[row])) << q << " " << k;
          wanted[row] += grad.select(1, q).select(1, k);
        }
      EXPECT_LT((sums - wanted).abs().max().item<double>(), 1e-12);
    }
  set_path(Path::kFused);
}

}  // namespace
}  // namespace sweep::kernels
