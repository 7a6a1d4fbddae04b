// The modelled work of FlashAttention's kernels, by names that LibTorch registers.
#include "worker/phantom/attention_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace sweep::phantom {
namespace {

std::string mangled(const std::string& kernel, const std::string& sizes, const std::string& arguments) {
  return "_ZN13pytorch_flash" + kernel + "I23Flash_fwd_kernel_traitsI" + sizes +
         "ELi4ELb0ELb0EN7cutlass10bfloat16_tE19Flash_kernel_traitsI" + sizes + "ELi4ES3_EE" + arguments +
         "EEvNS_16Flash_fwd_paramsE";
}

constexpr int kMultiprocessors = 132;
constexpr double kTokens = 512, kHeads = 28, kHead = 128;
constexpr double kAllPairs = kHeads * 2 * 2 * kTokens * kTokens * kHead;

double launch_flops(const std::string& name, const Grid& grid, const void* parameters = nullptr) {
  const auto kernel = AttentionKernel::named(name);
  return kernel.flops(grid, kernel.span(grid, kMultiprocessors, parameters));
}

// The parameters of a launch as far as they are read.
std::vector<std::int32_t> launch_parameters(std::int32_t queries, std::int32_t keys, std::int32_t left,
                                            std::int32_t right) {
  std::vector<std::int32_t> out(120);
  out[45] = queries, out[46] = keys, out[97] = left, out[98] = right;
  return out;
}

TEST(AttentionKernel, ForwardMultipliesEachQueryWithEachKey) {
  const auto name = [](const char* causal, const char* local = "0") {
    return mangled("16flash_fwd_kernel", "Li128ELi128ELi64",
                   std::string("Lb0ELb") + causal + "ELb" + local + "ELb0ELb1ELb1ELb0ELb0E");
  };
  EXPECT_DOUBLE_EQ(launch_flops(name("0"), {4, 1, 28}), kAllPairs);
  EXPECT_DOUBLE_EQ(launch_flops(name("1"), {4, 1, 28}), kAllPairs / 2);
  EXPECT_DOUBLE_EQ(launch_flops(name("0", "1"), {4, 1, 28}), kAllPairs / 2) << "a window";
}

// The same work however many blocks share a query's keys.
TEST(AttentionKernel, SplitKeysAreNoMoreWork) {
  const auto name = [](const char* causal, const char* split) {
    return mangled("24flash_fwd_splitkv_kernel", "Li128ELi64ELi128",
                   std::string("Lb") + causal + "ELb0ELb0ELb1ELb1ELb0ELb" + split + "ELb0E");
  };
  EXPECT_DOUBLE_EQ(launch_flops(name("0", "0"), {8, 1, 28}), kAllPairs);
  EXPECT_DOUBLE_EQ(launch_flops(name("0", "1"), {8, 4, 28}), kAllPairs);
  EXPECT_DOUBLE_EQ(launch_flops(name("1", "1"), {8, 4, 28}), kAllPairs / 2);
}

TEST(AttentionKernel, KeysAreThoseOfTheLaunch) {
  const std::string all =
      mangled("16flash_fwd_kernel", "Li128ELi128ELi64", "Lb0ELb0ELb0ELb0ELb1ELb1ELb0ELb0E");
  const std::string window =
      mangled("16flash_fwd_kernel", "Li128ELi128ELi64", "Lb0ELb0ELb1ELb0ELb1ELb1ELb0ELb0E");
  EXPECT_DOUBLE_EQ(launch_flops(all, {4, 1, 28}, launch_parameters(512, 2048, -1, -1).data()), 4 * kAllPairs);
  // 256 keys a query, and fewer of the first 256 queries.
  const auto of_window = launch_parameters(512, 512, 255, 0);
  EXPECT_DOUBLE_EQ(launch_flops(window, {4, 1, 28}, of_window.data()),
                   kAllPairs / 512 / 512 * (256 * 256 / 2 + 256 * 256));
  // The table is asked for the causal attention that is as much work.
  const auto kernel = AttentionKernel::named(window);
  EXPECT_DOUBLE_EQ(kernel.length(kernel.span({4, 1, 28}, kMultiprocessors, of_window.data())),
                   std::sqrt(2.0 * 3 * 256 * 256 / 2));
  EXPECT_DOUBLE_EQ(kernel.length(kernel.span({4, 1, 28}, kMultiprocessors)), 512);
  EXPECT_DOUBLE_EQ(launch_flops(window, {4, 1, 28}, launch_parameters(7, 7, 255, 0).data()), kAllPairs / 2)
      << "not this launch's";
}

// The grid of a deterministic pass fills the device: ceil(132 / 28) blocks for each head, whatever the keys are.
TEST(AttentionKernel, ADeterministicBackwardPassIsAsMuchWork) {
  const std::string sizes = "Li128ELi64ELi128ELi8ELi4ELi2ELi2E";
  const std::string backward =
      "_ZN13pytorch_flash44flash_bwd_dq_dk_dv_loop_seqk_parallel_kernelI23Flash_bwd_kernel_traitsI" + sizes +
      "Lb1ELb0EN7cutlass10bfloat16_tE19Flash_kernel_traitsI" + sizes +
      "ES3_EELb0ELb0ELb0ELb0ELb1ELb1ELb0EEEvNS_16Flash_bwd_paramsE";
  auto parameters = launch_parameters(512, 512, -1, -1);
  parameters[44] = 1;  // sequences
  EXPECT_DOUBLE_EQ(launch_flops(backward, {4, 1, 28}, parameters.data()), 2.5 * kAllPairs);
  EXPECT_DOUBLE_EQ(launch_flops(backward, {5, 1, 28}, parameters.data()), 2.5 * kAllPairs);
  parameters[44] = 2;
  EXPECT_DOUBLE_EQ(launch_flops(backward, {5, 1, 28}, parameters.data()), 2.5 * kAllPairs / 16 * 25)
      << "not this launch's";
}

TEST(AttentionSpan, CountsPairs) {
  EXPECT_DOUBLE_EQ((AttentionSpan{512, 2048}).pairs(), 512.0 * 2048);
  EXPECT_DOUBLE_EQ((AttentionSpan{512, 512, -1, 0}).pairs(), 512.0 * 512 / 2);
  EXPECT_DOUBLE_EQ((AttentionSpan{512, 2048, -1, 0}).pairs(),
                   512.0 * 1536 + 512.0 * 512 / 2);                              // the last queries
  EXPECT_DOUBLE_EQ((AttentionSpan{2048, 512, -1, 0}).pairs(), 512.0 * 512 / 2);  // the first see no key
  EXPECT_DOUBLE_EQ((AttentionSpan{1024, 1024, 4095, 0}).pairs(), 1024.0 * 1024 / 2);
  EXPECT_NEAR((AttentionSpan{4096, 4096, 63, 64}).pairs(), 4096.0 * 128, 4096.0 * 2);
}

TEST(AttentionKernel, WhatAddsTheSplitsUpMultipliesNothing) {
  const auto combine = AttentionKernel::named(
      mangled("32flash_fwd_splitkv_combine_kernel", "Li128ELi64ELi128", "Li4ELi7ELb0E"));
  EXPECT_EQ(combine.passes, 0);
  EXPECT_EQ(AttentionKernel::named("_ZN13pytorch_flash25flash_bwd_dot_do_o_kernelE").passes, 0);
}

}  // namespace
}  // namespace sweep::phantom
