// The sizes of LibTorch's grouped products, by the names and arguments of their two kernels.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "worker/phantom/library_kernels.h"

namespace sweep::phantom {
namespace {

TEST(GroupedKernel, IsKnownByName) {
  EXPECT_EQ(grouped_kernel("_ZN2at4cuda6detail25prepare_grouped_gemm_dataIN7cutlass10bfloat16_tES4_S4_fE"),
            GroupedKernel::kSizes);
  EXPECT_EQ(grouped_kernel("_ZN7cutlass13device_kernelIN2at4cuda6detail25enable_3x_kernel_for_sm9xINS_4gemm6"
                           "kernel13GemmUniversalINS5_17GroupProblemShapeIN4cute5tupleIJiiiEEEEE"),
            GroupedKernel::kProduct);
  EXPECT_EQ(grouped_kernel("_ZN7cutlass13device_kernelIN2at4cuda6detail4gemmE"), GroupedKernel::kNone);
}

TEST(GroupedKernel, TellsTheTypeOfTheFactors) {
  EXPECT_FALSE(groups_fp8(
      "_ZN2at4cuda6detail25prepare_grouped_gemm_dataIN7cutlass10bfloat16_tES4_S4_fN4cute5tupleIJiiiEEE"));
  EXPECT_TRUE(
      groups_fp8("_ZN2at4cuda6detail25prepare_grouped_gemm_dataIN7cutlass12float_e4m3_tES4_NS3_10bfloat16_"
                 "tEfN4cute5tupleIJiiiEEE"));
}

// The size that is split among the groups is -1: the shapes tell what it is of all.
TEST(GroupedKernel, TellsTheSizesOfAllGroups) {
  struct Case {
    std::int32_t m, n, k;
    std::array<std::int64_t, 3> left, right;
    double all[3];
  };
  const Case cases[] = {{-1, 3584, 4096, {8192, 4096, 0}, {8, 4096, 3584}, {8192, 3584, 4096}},
                        {3584, 4096, -1, {3584, 8192, 0}, {8192, 4096, 0}, {3584, 4096, 8192}}};
  for (Case one : cases) {
    std::vector<void*> arguments(27, nullptr);
    arguments[15] = &one.m, arguments[16] = &one.n, arguments[17] = &one.k;
    arguments[21] = one.left.data(), arguments[22] = one.right.data();
    const GroupedSizes sizes = grouped_sizes(arguments.data());
    EXPECT_EQ(sizes.m, one.all[0]);
    EXPECT_EQ(sizes.n, one.all[1]);
    EXPECT_EQ(sizes.k, one.all[2]);
  }
}

}  // namespace
}  // namespace sweep::phantom
