// How many threads a rank computes with on the host.
#include <gtest/gtest.h>

#include "runtime/rank_process.h"

namespace sweep::rank {
namespace {

TEST(Threads, AreTheTrialsOnCpuAndWhereNothingIsUpdatedOnTheHost) {
  Trial t;
  t.gpus_per_node = 8, t.offload = Offload::kOptimizer;
  EXPECT_EQ(threads_of(t, 128), 1) << "CPU ranks have the threads they were given";
  t.hardware = "h100-sxm-80gb", t.offload = Offload::kNone;
  EXPECT_EQ(threads_of(t, 128), 1);
}

TEST(Threads, OfAGpuRankThatUpdatesOnTheHostAreItsShareOfTheCores) {
  Trial t;
  t.hardware = "h100-sxm-80gb", t.gpus_per_node = 8;
  for (const Offload offload :
       {Offload::kOptimizer, Offload::kParameters, Offload::kDisk, Offload::kDiskParameters}) {
    t.offload = offload;
    EXPECT_EQ(threads_of(t, 128), 16) << to_string(offload);
    EXPECT_EQ(threads_of(t, 100), 12) << to_string(offload);
    EXPECT_EQ(threads_of(t, 4), 1) << to_string(offload);
  }
  t.threads = 6;
  EXPECT_EQ(threads_of(t, 128), 6) << "a number that was asked for stands";
}

TEST(Threads, CoresAreThoseThisProcessMayUse) {
  EXPECT_GE(usable_cores(), 1);
}

}  // namespace
}  // namespace sweep::rank
