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

TEST(CachingModel, UnusedSegmentsAreGivenBackForABlockThatTheDeviceHasNoRoomFor) {
  CachingModel model(100 * kMiB);
  const char id[3] = {};
  ASSERT_TRUE(model.allocate(id, 60 * kMiB));
  model.free(id);
  ASSERT_TRUE(model.allocate(id, 70 * kMiB));
  EXPECT_EQ(model.retries(), 1);
  EXPECT_EQ(model.reserved(), 70 * kMiB);
  ASSERT_TRUE(model.allocate(id + 1, 30 * kMiB)) << "the limit itself may be reserved";
  EXPECT_EQ(model.peak_reserved(), 100 * kMiB);
  EXPECT_EQ(model.allocated(), 100 * kMiB);
}

TEST(CachingModel, PiecesOfSegmentsInUseAreNotGivenBack) {
  CachingModel model(100 * kMiB);
  const char id[3] = {};
  ASSERT_TRUE(model.allocate(id, 80 * kMiB));
  model.free(id);
  ASSERT_TRUE(model.allocate(id + 1, 30 * kMiB));  // 50 MiB of its segment stay free
  EXPECT_FALSE(model.allocate(id + 2, 60 * kMiB)) << "70 MiB are not allocated, and no piece is large enough";
  EXPECT_EQ(model.allocated(), 30 * kMiB);
  EXPECT_EQ(model.reserved(), 80 * kMiB);
  EXPECT_EQ(model.retries(), 1);
  EXPECT_TRUE(model.allocate(id + 2, 50 * kMiB));
}

TEST(CachingModel, AnUnknownBlockIsNotFreed) {
  CachingModel model;
  const char id = 0;
  model.free(&id);
  EXPECT_EQ(model.reserved(), 0);
}

}  // namespace
}  // namespace sweep::memory
