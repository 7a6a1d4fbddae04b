#include "orchestrator/run/quarantine.h"

#include <gtest/gtest.h>

namespace sweep::run {
namespace {

using Hosts = std::vector<std::string>;

AttemptEnd dirty(const std::string& dirt) {
  AttemptEnd end;
  end.attempt = 7;
  end.clean = false;
  end.dirt = dirt;
  return end;
}

TEST(Quarantine, AHostThatCannotBeCleanedIsOutAtOnceAndSaidOnce) {
  Quarantine q;
  const auto said = q.unclean({"n1"}, dirty("survived SIGKILL: a.out (pid 9, state D)"));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("node n1 gets no more work"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("attempt 7 left it unclean: survived SIGKILL"), std::string::npos) << said[0];
  EXPECT_TRUE(q.unclean({"n1"}, dirty("again")).empty());
  EXPECT_EQ(q.hosts(), Hosts{"n1"});
}

TEST(Quarantine, OfSeveralHostsTheOneThatTheDirtNames) {
  Quarantine q;
  EXPECT_EQ(q.unclean({"n1", "n2", "n3"}, dirty("node 1 (n2): GPU 0 holds 9 bytes")).size(), 1u);
  EXPECT_EQ(q.hosts(), Hosts{"n2"});
  EXPECT_TRUE(q.unclean({"n1", "n3"}, dirty("somewhere")).empty());
}

TEST(Quarantine, AllocationsLostOnAHostCountAtTheSecondAndNobodyIsGuessedAmongSeveral) {
  Quarantine q;
  EXPECT_TRUE(q.lost({"n1", "n2"}, "gone").empty());
  EXPECT_TRUE(q.lost({"n1", "n2"}, "gone").empty());
  EXPECT_TRUE(q.lost({"n1"}, "no answer").empty());
  EXPECT_TRUE(q.lost({"n2"}, "no answer").empty());
  const auto said = q.lost({"n1"}, "refused");
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("the last one: refused"), std::string::npos) << said[0];
  EXPECT_EQ(q.hosts(), Hosts{"n1"});
}

}  // namespace
}  // namespace sweep::run
