// AgentState: where events lead, and the reason that is kept.
#include "worker/agent/node/agent_state.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

namespace sweep::agent {
namespace {

using S = AgentState;
using E = AgentEvent;

constexpr std::array kStates = {S::kJoining, S::kScreening, S::kServing, S::kFinishing,
                                S::kLeaving, S::kFlushing,  S::kLeft};
constexpr std::array kEvents = {E::kScreen, E::kServe, E::kFinish, E::kLeave, E::kByeSent, E::kClose};

TEST(AgentState, NoEventLeadsBackAndEveryStateIsReachedAndLeft) {
  std::set<S> reached{S::kJoining};
  for (const S state : kStates) {
    bool left = state == S::kLeft;
    for (const E event : kEvents) {
      EXPECT_GE(next(state, event), state) << "event " << static_cast<int>(event);
      reached.insert(next(state, event));
      left = left || next(state, event) != state;
    }
    EXPECT_TRUE(left) << "state " << static_cast<int>(state);
  }
  EXPECT_EQ(reached.size(), kStates.size());
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
