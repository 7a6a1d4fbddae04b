#include "bench_kernels/comm/shm_segment.h"

#include <gtest/gtest.h>

namespace sweep::comm {
namespace {

TEST(ShmSegment, RanksSpinWhereEachHasAProcessor) {
  EXPECT_TRUE(spins_for(2, 2));
  EXPECT_TRUE(spins_for(8, 128));
  EXPECT_FALSE(spins_for(4, 2));
  EXPECT_FALSE(spins_for(2, 1));
}

}  // namespace
}  // namespace sweep::comm
