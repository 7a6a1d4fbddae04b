// The rules of CUDA's caching allocator, on sizes whose reserved bytes are known.
#include "bench_kernels/kernels/caching_model.h"

#include <gtest/gtest.h>

namespace sweep::memory {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

TEST(CachingModel, SegmentsAreOfThreeKinds) {
  CachingModel model;
  const char id[3] = {};
  model.allocate(id, 100);
  EXPECT_EQ(model.reserved(), 2 * kMiB);
  model.allocate(id + 1, 5 * kMiB);
  EXPECT_EQ(model.reserved(), 22 * kMiB);
  model.allocate(id + 2, 33 * kMiB - 1);
  EXPECT_EQ(model.reserved(), 56 * kMiB);
}

TEST(CachingModel, WhatIsFreedIsSplitAndJoinedAgain) {
  CachingModel model;
  const char id[4] = {};
  model.allocate(id, 100 * kMiB);
  model.free(id);
  for (int i = 0; i < 4; ++i) model.allocate(id + i, 25 * kMiB);
  EXPECT_EQ(model.reserved(), 100 * kMiB);
  for (int i = 0; i < 4; ++i) model.free(id + i);
  model.allocate(id, 100 * kMiB);
  EXPECT_EQ(model.reserved(), 100 * kMiB);
}

TEST(CachingModel, ALargerBlockThanAnyFreeOneIsReservedBesideThem) {
  CachingModel model;
  const char id[2] = {};
  model.allocate(id, 30 * kMiB);
  model.free(id);
  model.allocate(id, 31 * kMiB);
  EXPECT_EQ(model.reserved(), 62 * kMiB);
  model.allocate(id + 1, 29 * kMiB + 1);  // 1 MiB is too little to split off
  model.free(id + 1);
  model.allocate(id + 1, 30 * kMiB);
  EXPECT_EQ(model.reserved(), 62 * kMiB);
}

TEST(CachingModel, AnUnknownBlockIsNotFreed) {
  CachingModel model;
  const char id = 0;
  model.free(&id);
  EXPECT_EQ(model.reserved(), 0);
}

}  // namespace
}  // namespace sweep::memory
