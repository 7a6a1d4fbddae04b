// Kernel tables as CSV: written from a profile, read again, merged.
#include "bench_kernels/shape/kernel_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_matchers.h"

namespace sweep::shape {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

HardwareProfile measured() {
  HardwareProfile p;
  p.name = "mine", p.hardware = "a100-80gb";
  p.matmul = {{"bf16", 512, 1024, 2048, 2e-5}};
  p.copies = {{131072, 3e-6}};
  p.kernels = {{"attention_causal", "32x4096x128", "bf16", 1.5e-3}};
  return p;
}

TEST(ShapeKernelTable, HoldsProductsCopiesAndKernels) {
  EXPECT_EQ(kernel_table(measured()),
            "operator,shape,type,gpu,us\n"
            "mm,512x1024x2048,bf16,a100-80gb,20\n"
            "memory,131072,,a100-80gb,3\n"
            "attention_causal,32x4096x128,bf16,a100-80gb,1500\n");
}

TEST(ShapeKernelTable, IsReadAsItWasWritten) {
  const auto rows = must(read_kernel_table(kernel_table(measured()), "a100-80gb"));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1], (KernelTiming{"memory", "131072", "", 3e-6}));
  EXPECT_EQ(rows[2].shape, "32x4096x128");
}

TEST(ShapeKernelTable, RowsOfOtherHardwareAreLeftOut) {
  const std::string csv = "gpu,us,operator,shape,type\nl4-24gb,1,mm,8x8x8,bf16\n,2,mm,9x9x9,bf16\n";
  const auto rows = must(read_kernel_table(csv, "a100-80gb"));
  EXPECT_THAT(rows, ElementsAre(KernelTiming{"mm", "9x9x9", "bf16", 2e-6}));
  const auto none = read_kernel_table("gpu,us,operator,shape,type\nl4-24gb,1,mm,8x8x8,bf16\n", "a100-80gb");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error(), IsError(ErrorKind::kInvalidValue, "gpu"));
}

TEST(ShapeKernelTable, WhatCannotBeIsRefusedWithItsLine) {
  const std::string header = "operator,shape,type,gpu,us\n";
  for (const char* row :
       {"mm,8x8x,bf16,,1", "mm,8x8x8,bf16,,-1", "mm,8x8x8,bf16,,much", "mm,8x8x8,bf16", "mm,8x8x8,bf16,,nan",
        "mm,0x1x1,bf16,,1", "mm,8xx8,bf16,,1", ",8x8x8,bf16,,1", "mm,,bf16,,1", "gemm,8x8x8,bf16,,1",
        "mm,8x8,bf16,,1", "mm,8x8x8,bf17,,1", "attention,8x8x8,fp16,,1", "memory,8,bf16,,1"}) {
    const auto rows = read_kernel_table(header + "mm,8x8x8,bf16,,1\n" + row + "\n", "cpu");
    ASSERT_FALSE(rows) << row;
    EXPECT_EQ(rows.error().line, 3) << row;
    EXPECT_THAT(rows.error().message, HasSubstr("line 3"));
  }
  const auto none = read_kernel_table("operator,shape,us\n", "cpu");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().line, 1);
}

TEST(ShapeKernelTable, ANewRowReplacesItsLike) {
  auto rows = measured().kernels;
  add_kernels(rows, {{"attention_causal", "32x4096x128", "bf16", 1e-3}, {"bmm", "2x8x8x8", "bf16", 1e-6}});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].seconds, 1e-3);
}

// Further kernels are part of the profile's JSON and move no fit.
TEST(ShapeKernelTable, IsKeptWithTheProfile) {
  HardwareProfile p = measured();
  p.fit();
  const auto again = must(hardware_profile_from_json(to_json(p)));
  EXPECT_EQ(again.kernels, p.kernels);
  EXPECT_EQ(again.products.size(), 1u);
}

}  // namespace
}  // namespace sweep::shape
