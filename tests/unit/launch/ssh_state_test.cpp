// Every pair of state and event of an allocation over ssh: where it leads, or that it is illegal.
#include "orchestrator/launch/ssh/ssh_state.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

namespace sweep::launch {
namespace {

// Written as rules, not as the table: from these states, this event leads there.
struct SshRule {
  SshEvent event;
  std::vector<SshState> from;
  SshState to;
};
const std::vector<SshState> kAlive{SshState::kPreparing, SshState::kStarting, SshState::kConnecting,
                                   SshState::kServing, SshState::kCleaningUp};
const std::vector<SshRule> kSshRules{
    {SshEvent::kHostsReady, {SshState::kPreparing}, SshState::kStarting},
    {SshEvent::kHeadStarted, {SshState::kStarting}, SshState::kConnecting},
    {SshEvent::kTakenUp, {SshState::kPreparing}, SshState::kConnecting},
    {SshEvent::kAttached, {SshState::kConnecting, SshState::kServing}, SshState::kServing},
    {SshEvent::kStopped, kAlive, SshState::kCleaningUp},
    {SshEvent::kStopped, {SshState::kEnded}, SshState::kEnded},
    {SshEvent::kStopped, {SshState::kAbandoned}, SshState::kAbandoned},
    {SshEvent::kCleanedUp, {SshState::kCleaningUp}, SshState::kEnded},
    {SshEvent::kCleanedUp, {SshState::kAbandoned}, SshState::kAbandoned},
    {SshEvent::kAbandoned, kAlive, SshState::kAbandoned},
    {SshEvent::kAbandoned, {SshState::kEnded, SshState::kAbandoned}, SshState::kAbandoned},
};

TEST(SshState, EveryPairOfStateAndEvent) {
  std::map<std::pair<SshState, SshEvent>, SshState> legal;
  for (const SshRule& rule : kSshRules)
    for (const SshState from : rule.from)
      EXPECT_TRUE(legal.emplace(std::pair(from, rule.event), rule.to).second)
          << name_of(from) << " " << name_of(rule.event) << " has two rules";
  for (int s = 0; s < kSshStates; ++s)
    for (int e = 0; e < kSshEvents; ++e) {
      const auto state = static_cast<SshState>(s);
      const auto event = static_cast<SshEvent>(e);
      const auto expected = legal.find({state, event});
      const auto next = next_state(state, event);
      ASSERT_EQ(next.has_value(), expected != legal.end()) << name_of(state) << " " << name_of(event);
      if (!next) continue;
      EXPECT_EQ(*next, expected->second) << name_of(state) << " " << name_of(event);
    }
}

TEST(SshState, HostsOnceFreeStayFree) {
  const auto free = [](SshState state) { return state == SshState::kEnded || state == SshState::kAbandoned; };
  for (int e = 0; e < kSshEvents; ++e)
    for (const SshState state : {SshState::kEnded, SshState::kAbandoned}) {
      const auto next = next_state(state, static_cast<SshEvent>(e));
      EXPECT_TRUE(!next || free(*next)) << name_of(state) << " " << name_of(static_cast<SshEvent>(e));
    }
}

}  // namespace
}  // namespace sweep::launch
