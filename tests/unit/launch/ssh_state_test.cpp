// Rules that every path of an allocation over ssh keeps to.
#include "orchestrator/launch/ssh/ssh_state.h"

#include <gtest/gtest.h>

#include <set>

namespace sweep::launch {
namespace {

TEST(SshState, HostsOnceFreeStayFree) {
  for (int e = 0; e < kSshEvents; ++e)
    for (const SshState state : {SshState::kEnded, SshState::kAbandoned}) {
      const auto next = next_state(state, static_cast<SshEvent>(e));
      EXPECT_TRUE(!next || has_ended(*next)) << static_cast<int>(state) << " " << e;
    }
}

TEST(SshState, EveryStateIsReachedCanBeStoppedAndAbandoned) {
  std::set<SshState> reached{SshState::kPreparing};
  for (int s = 0; s < kSshStates; ++s) {
    const auto from = static_cast<SshState>(s);
    const auto stopped = next_state(from, SshEvent::kStopped);
    EXPECT_TRUE(stopped && is_over(*stopped)) << static_cast<int>(from);
    EXPECT_EQ(next_state(from, SshEvent::kAbandoned), SshState::kAbandoned) << static_cast<int>(from);
    for (int e = 0; e < kSshEvents; ++e)
      if (const auto next = next_state(from, static_cast<SshEvent>(e))) reached.insert(*next);
  }
  EXPECT_EQ(reached.size(), std::size_t{kSshStates});
}

}  // namespace
}  // namespace sweep::launch
