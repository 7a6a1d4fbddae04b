// AgentState: every pair of state and event, and the reason that is kept.
#include "worker/agent/node/agent_state.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

namespace sweep::agent {
namespace {

using S = AgentState;
using E = AgentEvent;

constexpr std::array kStates = {S::kJoining, S::kScreening, S::kServing, S::kFinishing,
                                S::kLeaving, S::kFlushing,  S::kLeft};
constexpr std::array kEvents = {E::kScreen, E::kServe, E::kFinish, E::kLeave, E::kByeSent, E::kClose};

// Every move; any other pair changes nothing.
const std::map<std::pair<S, E>, S> kMoves = {
    {{S::kJoining, E::kScreen}, S::kScreening}, {{S::kJoining, E::kServe}, S::kServing},
    {{S::kJoining, E::kLeave}, S::kLeaving},    {{S::kScreening, E::kServe}, S::kServing},
    {{S::kScreening, E::kLeave}, S::kLeaving},  {{S::kServing, E::kFinish}, S::kFinishing},
    {{S::kServing, E::kLeave}, S::kLeaving},    {{S::kFinishing, E::kLeave}, S::kLeaving},
    {{S::kLeaving, E::kByeSent}, S::kFlushing}, {{S::kFlushing, E::kClose}, S::kLeft},
};

TEST(AgentState, EveryPairOfStateAndEvent) {
  int pairs = 0, moves = 0;
  for (const S state : kStates)
    for (const E event : kEvents) {
      const auto move = kMoves.find({state, event});
      const S expected = move == kMoves.end() ? state : move->second;
      EXPECT_EQ(next(state, event), expected)
          << "state " << static_cast<int>(state) << " and event " << static_cast<int>(event);
      ++pairs;
      moves += next(state, event) != state;
    }
  EXPECT_EQ(pairs, 42);
  EXPECT_EQ(moves, 10);
}

TEST(AgentState, WorkIsTakenWhileServingOrFinishingOnly) {
  AgentLife life;
  std::map<S, std::pair<bool, bool>> seen;
  const auto look = [&] { seen[life.state()] = {life.takes_work(), life.leaves()}; };
  look();
  for (const E event : kEvents) {
    EXPECT_TRUE(life.apply(event));
    look();
  }
  const std::map<S, std::pair<bool, bool>> expected = {
      {S::kJoining, {false, false}},  {S::kScreening, {false, false}}, {S::kServing, {true, false}},
      {S::kFinishing, {true, false}}, {S::kLeaving, {false, true}},    {S::kFlushing, {false, true}},
      {S::kLeft, {false, true}}};
  EXPECT_EQ(seen, expected);
}

TEST(AgentState, TheFirstReasonForLeavingStands) {
  AgentLife life;
  life.leave("idle");
  life.leave("time limit");
  EXPECT_EQ(life.reason(), "idle");
  EXPECT_FALSE(life.apply(E::kServe)) << "an agent that leaves while nodes join never serves";
  EXPECT_EQ(life.state(), S::kLeaving);
}

}  // namespace
}  // namespace sweep::agent
