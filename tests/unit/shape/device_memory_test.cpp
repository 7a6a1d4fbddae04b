#include "bench_kernels/shape/device_memory.h"

#include <gtest/gtest.h>

#include "bench_kernels/shape/catalogue.h"

namespace sweep::shape {
namespace {

constexpr i64 kMiB = i64{1} << 20;

Trial on_h100(i64 dp, i64 tp) {
  Trial t;
  t.hardware = "h100-sxm-80gb";
  t.dp = dp, t.tp = tp, t.gpus_per_node = dp * tp, t.global_batch_size = dp;
  t.spec = *find_model("tiny-llama");
  return t;
}

TEST(AllocatorLimit, ContextAndCommunicatorsAreTakenOff) {
  const i64 whole = *known_hardware("h100-sxm-80gb")->memory_bytes;
  EXPECT_EQ(allocator_limit(on_h100(1, 1)), whole - 500 * kMiB);
  EXPECT_EQ(allocator_limit(on_h100(8, 1)), whole - (500 + 160) * kMiB) << "all groups are the world";
  EXPECT_EQ(allocator_limit(on_h100(4, 2)), whole - (500 + 3 * 160) * kMiB) << "world, dp, tp";
}

TEST(AllocatorLimit, ACapIsTheLimit) {
  Trial t = on_h100(8, 1);
  t.memory_cap_bytes = 1000 * kMiB;
  EXPECT_EQ(allocator_limit(t), 1000 * kMiB);
}

TEST(AllocatorLimit, AProcessorHasNone) {
  Trial t = on_h100(8, 1);
  t.hardware = "cpu";
  t.memory_cap_bytes = 1000 * kMiB;
  EXPECT_FALSE(allocator_limit(t));
  t.hardware = "no such";
  EXPECT_FALSE(allocator_limit(t));
}

}  // namespace
}  // namespace sweep::shape
