// Every pair of state and event of a batch job: where it leads, or that it is illegal.
#include "orchestrator/launch/batch/batch_state.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sweep::launch {
namespace {

using State = BatchJobState;
using On = BatchJobEvent;

const std::vector<State> kAll{State::kSubmitting, State::kInDoubt, State::kWaitingForRoom,
                              State::kQueued,     State::kRunning, State::kCancelling,
                              State::kLastWords,  State::kLeaving, State::kClosed};

// Written as rules, not as the table: from these states, this event leads there.
struct Rule {
  On event;
  std::vector<State> from;
  State to;
};
const std::vector<Rule> kRules{
    {On::kAccepted, {State::kSubmitting, State::kInDoubt}, State::kQueued},
    {On::kAccepted, {State::kCancelling}, State::kCancelling},
    {On::kAccepted, {State::kLeaving}, State::kLeaving},
    {On::kUnanswered, {State::kSubmitting}, State::kInDoubt},
    {On::kNoRoom, {State::kSubmitting}, State::kWaitingForRoom},
    {On::kRefused, {State::kSubmitting}, State::kClosed},
    {On::kSubmittedAgain, {State::kInDoubt, State::kWaitingForRoom}, State::kSubmitting},
    {On::kWithdrawn, {State::kInDoubt, State::kWaitingForRoom}, State::kClosed},
    {On::kSeenQueued, {State::kQueued, State::kRunning, State::kLastWords}, State::kQueued},
    {On::kSeenRunning, {State::kQueued, State::kRunning, State::kLastWords}, State::kRunning},
    {On::kSeenQueued, {State::kCancelling}, State::kCancelling},
    {On::kSeenRunning, {State::kCancelling}, State::kCancelling},
    {On::kSeenQueued, {State::kLeaving}, State::kLeaving},
    {On::kSeenRunning, {State::kLeaving}, State::kLeaving},
    {On::kSeenOver, {State::kQueued, State::kRunning, State::kLastWords}, State::kLastWords},
    {On::kSeenOver, {State::kCancelling, State::kLeaving}, State::kClosed},
    {On::kDenied,
     {State::kQueued, State::kRunning, State::kCancelling, State::kLastWords, State::kLeaving},
     State::kClosed},
    {On::kLastWordsOver, {State::kLastWords}, State::kClosed},
    {On::kGivenUp, {State::kInDoubt, State::kQueued, State::kRunning, State::kLastWords}, State::kCancelling},
    {On::kGivenUp, {State::kWaitingForRoom}, State::kClosed},
    {On::kBye,
     {State::kInDoubt, State::kQueued, State::kRunning, State::kCancelling, State::kLastWords},
     State::kLeaving},
    {On::kBye, {State::kWaitingForRoom}, State::kClosed},
    {On::kStepOver,
     {State::kQueued, State::kRunning, State::kCancelling, State::kLastWords, State::kLeaving},
     State::kClosed},
    {On::kAbandoned, kAll, State::kClosed},
    // Answers that come late change nothing.
    {On::kAccepted, {State::kClosed}, State::kClosed},
    {On::kUnanswered, {State::kClosed}, State::kClosed},
    {On::kNoRoom, {State::kClosed}, State::kClosed},
    {On::kRefused, {State::kClosed}, State::kClosed},
    {On::kStepOver, {State::kClosed}, State::kClosed},
};

TEST(BatchState, EveryPairOfStateAndEvent) {
  std::map<std::pair<State, On>, State> legal;
  for (const Rule& rule : kRules)
    for (const State from : rule.from)
      EXPECT_TRUE(legal.emplace(std::pair(from, rule.event), rule.to).second)
          << name_of(from) << " " << name_of(rule.event) << " has two rules";
  for (int s = 0; s < kBatchJobStates; ++s)
    for (int e = 0; e < kBatchJobEvents; ++e) {
      const auto state = static_cast<State>(s);
      const auto event = static_cast<On>(e);
      const auto expected = legal.find({state, event});
      const auto next = next_state(state, event);
      ASSERT_EQ(next.has_value(), expected != legal.end()) << name_of(state) << " " << name_of(event);
      if (!next) continue;
      EXPECT_EQ(*next, expected->second) << name_of(state) << " " << name_of(event);
    }
}

TEST(BatchState, AnEndThatWasToldIsNeverTakenBack) {
  for (int e = 0; e < kBatchJobEvents; ++e)
    for (const State state : {State::kLeaving, State::kClosed}) {
      const auto next = next_state(state, static_cast<On>(e));
      EXPECT_TRUE(!next || has_ended(*next)) << name_of(state) << " " << name_of(static_cast<On>(e));
    }
}

TEST(BatchState, OnlyWhatMayBeAbsentIsSubmittedAgain) {
  for (const State state : kAll) {
    const bool may_be_absent = state == State::kInDoubt || state == State::kWaitingForRoom;
    EXPECT_EQ(next_state(state, On::kSubmittedAgain).has_value(), may_be_absent) << name_of(state);
  }
}

TEST(BatchState, EveryStateIsReachedAndCanBeLeft) {
  std::set<State> reached{State::kSubmitting};
  for (const State from : kAll) {
    bool left = from == State::kClosed;
    for (int e = 0; e < kBatchJobEvents; ++e)
      if (const auto next = next_state(from, static_cast<On>(e)); next && *next != from)
        reached.insert(*next), left = true;
    EXPECT_TRUE(left) << name_of(from);
  }
  EXPECT_EQ(reached.size(), kAll.size());
}

}  // namespace
}  // namespace sweep::launch
