// A GPU that is there is compared with the declared hardware.
#include "bench_kernels/shape/found_gpu.h"

#include <gtest/gtest.h>

namespace sweep::shape {
namespace {

constexpr i64 kGib = i64{1} << 30;

TEST(FoundGpu, CodeRunsOnLaterMinorVersionsOfItsMajorOne) {
  const std::vector<std::string> archs{"7.5", "8.0", "9.0"};
  EXPECT_TRUE(has_code_for(archs, "8.6"));
  EXPECT_FALSE(has_code_for(archs, "7.0")) << "V100";
  EXPECT_FALSE(has_code_for(archs, "12.0"));
  EXPECT_FALSE(has_code_for(archs, ""));
}

TEST(FoundGpu, FlashAttentionNeedsAmpereOrLater) {
  EXPECT_FALSE(runs_flash("v100-16gb"));
  EXPECT_TRUE(runs_flash("a100-80gb"));
  EXPECT_TRUE(runs_flash("h100-sxm-80gb"));
  EXPECT_TRUE(runs_flash("cpu")) << "other code";
  EXPECT_TRUE(runs_flash("unknown-gpu"));
}

TEST(FoundGpu, FusedKernelsNeedTuringOrLater) {
  EXPECT_FALSE(runs_fused("v100-16gb"));
  for (const char* name : {"titan-rtx-24gb", "a100-80gb", "b200-180gb", "cpu", "of no catalogue"})
    EXPECT_TRUE(runs_fused(name)) << name;
}

TEST(FoundGpu, WheelsRunFromTuringOnAndNotOnRocm) {
  const auto refused = [](const char* name) { return not_run_by_wheels(*known_hardware(name)).has_value(); };
  for (const char* name : {"v100-16gb", "v100-32gb", "mi300x-192gb", "mi355x-288gb"})
    EXPECT_TRUE(refused(name)) << name;
  for (const char* name : {"cpu", "titan-rtx-24gb", "a100-80gb", "b300-288gb", "gb200-186gb", "gb300-288gb"})
    EXPECT_FALSE(refused(name)) << name;
}

TEST(FoundGpu, AnotherKindOrAnotherMemoryIsNotTheDeclared) {
  const auto h100 = *find_hardware("h100-sxm-80gb");
  EXPECT_FALSE(not_the_declared(h100, {"NVIDIA H100 80GB HBM3", "9.0", i64{85045149696}}));
  EXPECT_FALSE(not_the_declared(h100, {"NVIDIA H100 80GB HBM3", "", {}})) << "nothing is known of it";
  EXPECT_TRUE(not_the_declared(h100, {"NVIDIA A100-SXM4-80GB", "8.0", 79 * kGib}));
  EXPECT_TRUE(not_the_declared(h100, {"NVIDIA H100 PCIe", "9.0", 79 * kGib}))
      << "the catalogue knows it by name";
  EXPECT_FALSE(not_the_declared(h100, {"", "9.0", 79 * kGib}));
  EXPECT_TRUE(not_the_declared(h100, {"NVIDIA H200", "9.0", 140 * kGib}));
  EXPECT_TRUE(not_the_declared(h100, {"NVIDIA H100 MIG 3g.40gb", "9.0", 39 * kGib}));
}

}  // namespace
}  // namespace sweep::shape
