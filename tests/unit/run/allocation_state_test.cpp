// AllocationState: where events lead.
#include "orchestrator/run/allocation_state.h"

#include <gtest/gtest.h>

#include <map>
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

TEST(AllocationState, WhatTheRunLoopReadsFromIt) {
  struct Seen {
    bool at_work, waits, ends;
    bool operator==(const Seen&) const = default;
  };
  const std::map<S, Seen> expected = {
      {S::kRequested, {false, true, false}}, {S::kChecked, {false, true, false}},
      {S::kChecking, {true, false, false}},  {S::kServing, {true, false, false}},
      {S::kFinishing, {false, false, true}}, {S::kReturning, {false, false, true}},
      {S::kEnded, {false, false, true}}};
  for (const auto& [state, seen] : expected) {
    HeldAllocation held;
    held.state = state;
    EXPECT_TRUE((Seen{held.at_work(), held.waits_to_start(), held.ends()} == seen)) << name_of(state);
  }
}

}  // namespace
}  // namespace sweep::run
