#include "orchestrator/run/quarantine.h"

#include <gtest/gtest.h>

namespace sweep::run {
namespace {

using Names = std::vector<std::string>;

AttemptEnd unclean(const std::string& cleanup_failure) {
  AttemptEnd end;
  end.attempt = 7;
  end.clean = false;
  end.cleanup_failure = cleanup_failure;
  return end;
}

TEST(Quarantine, AHostThatCannotBeCleanedIsExcludedAtOnceAndReportedOnce) {
  Quarantine q;
  const auto said = q.unclean({{0, "n1"}}, unclean("survived SIGKILL: a.out (pid 9, state D)"));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("node n1 gets no more work"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("attempt 7 left it unclean: survived SIGKILL"), std::string::npos) << said[0];
  EXPECT_TRUE(q.unclean({{0, "n1"}}, unclean("again")).empty());
  EXPECT_EQ(q.hosts(), Names{"n1"});
}

TEST(Quarantine, OfSeveralHostsThoseWithUncleanNodesAreExcluded) {
  const Hosts hosts = {{0, "n1"}, {1, "n2"}, {11, "n3"}};
  for (const char* text : {"", "node 0 (n1): GPU 0 holds 9 bytes", "host n3 is not clean", "somewhere"}) {
    Quarantine q;
    AttemptEnd end = unclean(text);
    EXPECT_TRUE(q.unclean(hosts, end).empty()) << text;
    end.unclean_nodes = {1, 99};
    EXPECT_EQ(q.unclean(hosts, end).size(), 1u) << text;
    EXPECT_EQ(q.hosts(), Names{"n2"}) << text;
  }
}

TEST(Quarantine, ASecondLossExcludesAHostButNotWhereSeveralMayBeTheCause) {
  Quarantine q;
  EXPECT_TRUE(q.lost({{0, "n1"}, {1, "n2"}}, "gone").empty());
  EXPECT_TRUE(q.lost({{0, "n1"}, {1, "n2"}}, "gone").empty());
  EXPECT_TRUE(q.lost({{0, "n1"}}, "no answer").empty());
  EXPECT_TRUE(q.lost({{0, "n2"}}, "no answer").empty());
  const auto said = q.lost({{0, "n1"}}, "refused");
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("the last one: refused"), std::string::npos) << said[0];
  EXPECT_EQ(q.hosts(), Names{"n1"});
}

TEST(Quarantine, AHostReleasedFromQuarantineReturnsAtItsNextLoss) {
  Quarantine q;
  EXPECT_FALSE(q.release("n1")) << "it is not out";
  EXPECT_TRUE(q.lost({{0, "n1"}}, "no answer").empty());
  EXPECT_EQ(q.times("n1"), 0);
  EXPECT_EQ(q.lost({{0, "n1"}}, "no answer").size(), 1u);
  EXPECT_EQ(q.times("n1"), 1);
  EXPECT_TRUE(q.release("n1"));
  EXPECT_TRUE(q.hosts().empty());
  const auto said = q.lost({{0, "n1"}}, "still none");
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("for now: 3 allocations"), std::string::npos) << said[0];
  EXPECT_EQ(q.times("n1"), 2);
}

TEST(Quarantine, OneThatIsUncleanOrSlowTooStaysOut) {
  for (const bool slow : {false, true}) {
    Quarantine q;
    q.lost({{0, "n1"}}, "no answer"), q.lost({{0, "n1"}}, "no answer");
    slow ? q.slow("n1", "matmul 20 GFLOP/s") : q.unclean({{0, "n1"}}, unclean("survived SIGKILL"));
    EXPECT_FALSE(q.release("n1"));
    EXPECT_EQ(q.hosts(), Names{"n1"});
  }
}

}  // namespace
}  // namespace sweep::run
