// AllocationState: where events lead.
#include "orchestrator/run/allocation_state.h"

#include <gtest/gtest.h>

#include <set>

#include "orchestrator/run/held_allocation.h"

namespace sweep::run {
namespace {

using S = AllocationState;
using E = AllocationEvent;

TEST(AllocationState, EveryStateIsReachedAndLeftAndAnEndIsFinal) {
  std::set<S> reached{S::kRequested};
  for (int s = 0; s < kAllocationStates; ++s) {
    const S state{s};
    EXPECT_EQ(next(state, E::kEnded), S::kEnded) << name_of(state);
    for (int e = 0; e < kAllocationEvents; ++e) {
      const S to = next(state, E{e});
      reached.insert(to);
      if (state == S::kEnded) {
        EXPECT_EQ(to, S::kEnded) << name_of(E{e});
      }
    }
  }
  EXPECT_EQ(reached.size(), std::size_t{kAllocationStates});
}

TEST(AllocationState, OneAtWorkMayFinishOrBeReturned) {
  for (const S state : {S::kRequested, S::kChecked, S::kChecking, S::kServing}) {
    EXPECT_EQ(next(state, E::kFinish), S::kFinishing) << name_of(state);
    EXPECT_EQ(next(state, E::kReturned), S::kReturning) << name_of(state);
  }
}

// An allocation that was told to finish takes no trials again.
TEST(AllocationState, OneThatFinishesOnlyEnds) {
  for (const S state : {S::kFinishing, S::kReturning})
    for (int e = 0; e < kAllocationEvents; ++e)
      EXPECT_EQ(next(state, E{e}), E{e} == E::kEnded ? S::kEnded : state) << name_of(E{e});
}

TEST(AllocationState, ItWaitsUntilItStartsAndEndsOnceItMayFinishNoMore) {
  for (int s = 0; s < kAllocationStates; ++s) {
    HeldAllocation held;
    held.state = S{s};
    EXPECT_EQ(held.waits_to_start(), next(held.state, E::kStarted) != held.state) << name_of(held.state);
    EXPECT_EQ(held.ends(), next(held.state, E::kFinish) == held.state) << name_of(held.state);
    EXPECT_EQ(held.at_work(), !held.waits_to_start() && !held.ends()) << name_of(held.state);
  }
}

}  // namespace
}  // namespace sweep::run
