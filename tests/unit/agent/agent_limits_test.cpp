// AgentLimits: when an agent leaves without being told to. Times are given; nothing waits.
#include "worker/agent/node/agent_limits.h"

#include <gtest/gtest.h>

#include <fstream>

#include "schema/spool.h"
#include "tests/support/temporary_folder.h"

namespace sweep::agent {
namespace {

class AgentLimitsTest : public ::testing::Test {
 protected:
  AgentLimitsTest() { options_.spool = folder_; }
  const TemporaryFolder folder_;
  Options options_;
};

TEST_F(AgentLimitsTest, WithoutLimitsItNeverLeaves) {
  AgentLimits limits(options_, 100);
  EXPECT_FALSE(limits.exceeded({}, 1e9));
}

TEST_F(AgentLimitsTest, IdlenessCountsFromTheLastWorkOrLine) {
  options_.idle_limit_s = 10;
  AgentLimits limits(options_, 100);
  EXPECT_FALSE(
      limits.exceeded({.busy = true, .out_of_time = false, .last_line_s = {}, .unwritten = false}, 200));
  EXPECT_FALSE(limits.exceeded({}, 210));
  EXPECT_FALSE(
      limits.exceeded({.busy = false, .out_of_time = false, .last_line_s = 205, .unwritten = false}, 215));
  EXPECT_EQ(
      limits.exceeded({.busy = false, .out_of_time = false, .last_line_s = 205, .unwritten = false}, 215.5),
      "idle");
}

TEST_F(AgentLimitsTest, ATouchedContactFileKeepsItAndSilenceEndsIt) {
  options_.contact_limit_s = 10;
  AgentLimits limits(options_, 100);
  EXPECT_FALSE(limits.exceeded({}, 110));
  std::ofstream(spool::contact(options_.spool)) << "x";
  EXPECT_FALSE(limits.exceeded({}, 111));
  EXPECT_FALSE(limits.exceeded({}, 121));
  EXPECT_EQ(limits.exceeded({}, 121.5), "orchestrator silent");
}

TEST_F(AgentLimitsTest, TheEndOfTheAllocationEndsItBusyOrNot) {
  AgentLimits limits(options_, 100);
  EXPECT_EQ(limits.exceeded({.busy = true, .out_of_time = true, .last_line_s = {}, .unwritten = false}, 101),
            "time limit");
}

TEST_F(AgentLimitsTest, AMailboxIsLostOnceAndOnlyAfterManyLooksInARow) {
  AgentLimits limits(options_, 0);
  const auto looks_until_lost = [&] {
    for (int looks = 1; looks <= 1000; ++looks)
      if (limits.mailbox_lost(true)) return looks;
    return 0;
  };
  EXPECT_FALSE(limits.mailbox_lost(true));
  EXPECT_FALSE(limits.mailbox_lost(false)) << "back: it counts from 0 again";
  EXPECT_EQ(looks_until_lost(), 100);
  EXPECT_EQ(looks_until_lost(), 0) << "reported once";
}

TEST_F(AgentLimitsTest, ADiskThatStaysFullEndsAnAgentThatWorks) {
  AgentLimits limits(options_, 100);
  const AgentLimits::Activity full{.busy = true, .out_of_time = false, .last_line_s = {}, .unwritten = true};
  EXPECT_FALSE(limits.exceeded(full, 200));
  EXPECT_FALSE(limits.exceeded(full, 259));
  EXPECT_FALSE(limits.exceeded({}, 259.5)) << "it has room again: it counts from 0";
  EXPECT_FALSE(limits.exceeded(full, 261));
  EXPECT_FALSE(limits.exceeded(full, 320));
  EXPECT_EQ(limits.exceeded(full, 322), "disk full");
}

TEST_F(AgentLimitsTest, AFullDiskIsGivenUpAfterManyTicks) {
  AgentLimits limits(options_, 0);
  int ticks = 1;
  while (!limits.disk_given_up()) ++ticks;
  EXPECT_EQ(ticks, 100);
}

}  // namespace
}  // namespace sweep::agent
