// AllocationState: every pair of state and event.
#include "orchestrator/run/allocation_state.h"

#include <gtest/gtest.h>

#include <map>

#include "orchestrator/run/held_allocation.h"

namespace sweep::run {
namespace {

using S = AllocationState;
using E = AllocationEvent;

// Every move; any other pair changes nothing.
const std::map<std::pair<S, E>, S> kMoves = {
    {{S::kRequested, E::kStarted}, S::kChecking}, {{S::kRequested, E::kNodesKnown}, S::kChecked},
    {{S::kRequested, E::kFinish}, S::kFinishing}, {{S::kRequested, E::kReturned}, S::kReturning},
    {{S::kRequested, E::kEnded}, S::kEnded},      {{S::kChecked, E::kStarted}, S::kServing},
    {{S::kChecked, E::kFinish}, S::kFinishing},   {{S::kChecked, E::kReturned}, S::kReturning},
    {{S::kChecked, E::kEnded}, S::kEnded},        {{S::kChecking, E::kNodesKnown}, S::kServing},
    {{S::kChecking, E::kFinish}, S::kFinishing},  {{S::kChecking, E::kReturned}, S::kReturning},
    {{S::kChecking, E::kEnded}, S::kEnded},       {{S::kServing, E::kFinish}, S::kFinishing},
    {{S::kServing, E::kReturned}, S::kReturning}, {{S::kServing, E::kEnded}, S::kEnded},
    {{S::kFinishing, E::kEnded}, S::kEnded},      {{S::kReturning, E::kEnded}, S::kEnded},
};

TEST(AllocationState, EveryPairOfStateAndEvent) {
  int moves = 0;
  for (int s = 0; s < kAllocationStates; ++s)
    for (int e = 0; e < kAllocationEvents; ++e) {
      const S state{s};
      const E event{e};
      const auto move = kMoves.find({state, event});
      EXPECT_EQ(next(state, event), move == kMoves.end() ? state : move->second)
          << name_of(state) << " and " << name_of(event);
      moves += next(state, event) != state;
    }
  EXPECT_EQ(moves, static_cast<int>(kMoves.size()));
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
