// The modelled work of FlashAttention's kernels, by names that LibTorch registers.
#include "worker/phantom/attention_kernel.h"

#include <gtest/gtest.h>

namespace sweep::phantom {
namespace {

std::string mangled(const std::string& kernel, const std::string& sizes, const std::string& arguments) {
  return "_ZN13pytorch_flash" + kernel + "I23Flash_fwd_kernel_traitsI" + sizes +
         "ELi4ELb0ELb0EN7cutlass10bfloat16_tE19Flash_kernel_traitsI" + sizes + "ELi4ES3_EE" + arguments +
         "EEvNS_16Flash_fwd_paramsE";
}

constexpr double kTokens = 512, kHeads = 28, kHead = 128;
constexpr double kAllPairs = kHeads * 2 * 2 * kTokens * kTokens * kHead;

TEST(AttentionKernel, ForwardMultipliesEachQueryWithEachKey) {
  const auto name = [](const char* causal, const char* local = "0") {
    return mangled("16flash_fwd_kernel", "Li128ELi128ELi64",
                   std::string("Lb0ELb") + causal + "ELb" + local + "ELb0ELb1ELb1ELb0ELb0E");
  };
  EXPECT_DOUBLE_EQ(AttentionKernel::named(name("0")).flops({4, 1, 28}), kAllPairs);
  EXPECT_DOUBLE_EQ(AttentionKernel::named(name("1")).flops({4, 1, 28}), kAllPairs / 2);
  EXPECT_DOUBLE_EQ(AttentionKernel::named(name("0", "1")).flops({4, 1, 28}), kAllPairs / 2) << "a window";
}

// The same work however many blocks share a query's keys.
TEST(AttentionKernel, SplitKeysAreNoMoreWork) {
  const auto name = [](const char* causal, const char* split) {
    return mangled("24flash_fwd_splitkv_kernel", "Li128ELi64ELi128",
                   std::string("Lb") + causal + "ELb0ELb0ELb1ELb1ELb0ELb" + split + "ELb0E");
  };
  EXPECT_DOUBLE_EQ(AttentionKernel::named(name("0", "0")).flops({8, 1, 28}), kAllPairs);
  EXPECT_DOUBLE_EQ(AttentionKernel::named(name("0", "1")).flops({8, 4, 28}), kAllPairs);
  EXPECT_DOUBLE_EQ(AttentionKernel::named(name("1", "1")).flops({8, 4, 28}), kAllPairs / 2);
}

TEST(AttentionKernel, WhatAddsTheSplitsUpMultipliesNothing) {
  const auto combine = AttentionKernel::named(
      mangled("32flash_fwd_splitkv_combine_kernel", "Li128ELi64ELi128", "Li4ELi7ELb0E"));
  EXPECT_EQ(combine.passes, 0);
  EXPECT_EQ(AttentionKernel::named("_ZN13pytorch_flash25flash_bwd_dot_do_o_kernelE").passes, 0);
}

}  // namespace
}  // namespace sweep::phantom
