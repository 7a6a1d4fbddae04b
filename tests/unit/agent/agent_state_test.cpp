// AgentState: where events lead, and the reason that is kept.
#include "worker/agent/node/agent_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

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

TEST(AgentState, WorkIsTakenInOnePieceBeforeItLeaves) {
  enum Stage { kBefore, kTakes, kLeaves };
  AgentLife life;
  std::vector<Stage> stages{kBefore};
  for (const E event : kEvents) {
    EXPECT_TRUE(life.apply(event));
    EXPECT_FALSE(life.takes_work() && life.leaves());
    EXPECT_EQ(life.leaves(), next(life.state(), E::kLeave) == life.state());
    stages.push_back(life.leaves() ? kLeaves : life.takes_work() ? kTakes : kBefore);
  }
  EXPECT_TRUE(std::ranges::is_sorted(stages));
  EXPECT_EQ(std::ranges::count(stages, kTakes), 2) << "serving, and finishing what waits";
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
