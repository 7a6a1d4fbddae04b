// One trial over nodes of several kinds: what a plan takes of them.
#include "bench_kernels/shape/mixed_hardware.h"

#include <gtest/gtest.h>

#include "bench_kernels/shape/device_memory.h"
#include "bench_kernels/shape/found_gpu.h"

namespace sweep::shape {
namespace {

TEST(MixedHardware, TakesTheLeastOfItsKinds) {
  const Hardware &a = *known_hardware("a100-40gb"), &h = *known_hardware("h100-sxm-80gb");
  const char* const name = "a100-40gb+h100-sxm-80gb";
  const Hardware* mix = known_hardware(name);
  ASSERT_NE(mix, nullptr);
  EXPECT_EQ(mix->name, name);
  EXPECT_EQ(mix->memory_bytes, a.memory_bytes);
  EXPECT_EQ(mix->peak_for(Precision::kBf16), a.peak_for(Precision::kBf16));
  EXPECT_FALSE(mix->peak_for(Precision::kFp8)) << "an A100 has no such units";
  EXPECT_EQ(mix->memory_bandwidth, a.memory_bandwidth);
  EXPECT_EQ(mix->inter_node_bandwidth, std::min(a.inter_node_bandwidth, h.inter_node_bandwidth));
  EXPECT_EQ(mix->compute_capability, a.compute_capability);
  EXPECT_DOUBLE_EQ(mix->price->usd_per_node_hour,
                   (a.price->usd_per_node_hour + h.price->usd_per_node_hour) / 2);
  EXPECT_EQ(known_hardware(name), mix) << "the same object, as long as the program runs";
}

TEST(MixedHardware, HasOneName) {
  EXPECT_EQ(known_hardware("h100-sxm-80gb+a100-40gb"), nullptr);
  EXPECT_NE(find_hardware("h100-sxm-80gb+a100-40gb").error().message.find("a100-40gb+h100-sxm-80gb"),
            std::string::npos);
}

TEST(MixedHardware, OnlyDifferentKnownGpusMix) {
  for (const char* name : {"cpu+a100-40gb", "a100-40gb+a100-40gb", "a100-40gb+absent", "a100-40gb+", "+"}) {
    EXPECT_EQ(known_hardware(name), nullptr) << name;
    EXPECT_FALSE(find_hardware(name)) << name;
  }
}

TEST(MixedHardware, NodesAlternateByKind) {
  EXPECT_EQ(kinds_of("a"), std::vector<std::string>{"a"});
  EXPECT_EQ(kinds_of("a+b"), (std::vector<std::string>{"a", "b"}));
  for (const i64 node : {0, 1, 2, 3}) EXPECT_EQ(kind_of_node("a+b", node), node % 2 == 0 ? "a" : "b");
}

TEST(MixedHardware, ANodeMayBeAnyOfTheKinds) {
  const Hardware& mix = *known_hardware("a100-40gb+h100-sxm-80gb");
  for (const char* kind : {"a100-40gb", "h100-sxm-80gb"}) {
    const Hardware& one = *known_hardware(kind);
    EXPECT_FALSE(not_the_declared(mix, {one.gpu, one.compute_capability, one.memory_bytes})) << kind;
  }
  const Hardware& other = *known_hardware("l4-24gb");
  EXPECT_TRUE(not_the_declared(mix, {other.gpu, other.compute_capability, other.memory_bytes}));
}

}  // namespace
}  // namespace sweep::shape
