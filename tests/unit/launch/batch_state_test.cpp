// Rules that every path of a batch job keeps to.
#include "orchestrator/launch/batch/batch_state.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace sweep::launch {
namespace {

using State = BatchJobState;
using On = BatchJobEvent;

const std::vector<State> kAll{State::kSubmitting, State::kInDoubt, State::kWaitingForRoom,
                              State::kQueued,     State::kRunning, State::kCancelling,
                              State::kLastWords,  State::kLeaving, State::kClosed};

TEST(BatchState, AnEndThatWasToldIsNeverTakenBack) {
  for (int e = 0; e < kBatchJobEvents; ++e)
    for (const State state : {State::kLeaving, State::kClosed}) {
      const auto next = next_state(state, static_cast<On>(e));
      EXPECT_TRUE(!next || has_ended(*next)) << static_cast<int>(state) << " " << e;
    }
}

TEST(BatchState, OnlyWhatMayBeAbsentIsSubmittedAgain) {
  for (const State state : kAll) {
    const bool may_be_absent = state == State::kInDoubt || state == State::kWaitingForRoom;
    EXPECT_EQ(next_state(state, On::kSubmittedAgain).has_value(), may_be_absent) << static_cast<int>(state);
  }
}

TEST(BatchState, OneThatTheSchedulerMayHaveIsCancelledOrLeft) {
  for (const State state : {State::kInDoubt, State::kQueued, State::kRunning, State::kLastWords}) {
    EXPECT_EQ(next_state(state, On::kGivenUp), State::kCancelling) << static_cast<int>(state);
    EXPECT_EQ(next_state(state, On::kBye), State::kLeaving) << static_cast<int>(state);
  }
  EXPECT_EQ(next_state(State::kCancelling, On::kBye), State::kLeaving);
  for (const On event : {On::kGivenUp, On::kBye})
    EXPECT_EQ(next_state(State::kWaitingForRoom, event), State::kClosed) << "nothing was submitted";
}

TEST(BatchState, AnAbandonedJobIsClosed) {
  for (const State state : kAll)
    EXPECT_EQ(next_state(state, On::kAbandoned), State::kClosed) << static_cast<int>(state);
}

TEST(BatchState, EveryStateIsReachedAndCanBeLeft) {
  std::set<State> reached{State::kSubmitting};
  for (const State from : kAll) {
    bool left = from == State::kClosed;
    for (int e = 0; e < kBatchJobEvents; ++e)
      if (const auto next = next_state(from, static_cast<On>(e)); next && *next != from)
        reached.insert(*next), left = true;
    EXPECT_TRUE(left) << static_cast<int>(from);
  }
  EXPECT_EQ(reached.size(), kAll.size());
}

}  // namespace
}  // namespace sweep::launch
