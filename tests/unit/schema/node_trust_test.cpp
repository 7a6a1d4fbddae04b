// NodeTrust: which nodes get no more work, and where a retry does not go.
#include "schema/node_trust.h"

#include <gtest/gtest.h>

namespace sweep {
namespace {

constexpr bool kEarly = true;

TEST(NodeTrust, ANodeWhereAllFailsAtOnceIsNamedOnceOthersHaveResults) {
  NodeTrust<i64> trust;
  for (const char* trial : {"a", "b", "c", "d"}) trust.failed(trial, 0, kEarly);
  EXPECT_FALSE(trust.bad_node()) << "the trials may be the cause";
  trust.ok(1);
  EXPECT_EQ(trust.bad_node(), 0);
  EXPECT_FALSE(trust.bad_node()) << "once";
}

TEST(NodeTrust, WhereEveryNodeFailsNoneIsNamed) {
  NodeTrust<i64> trust;
  for (const char* trial : {"a", "b", "c", "d"})
    for (const i64 node : {0, 1}) trust.failed(trial, node, kEarly);
  EXPECT_FALSE(trust.bad_node());
}

TEST(NodeTrust, AResultOrAFailureAfterTheFirstStepShowsThatProgramsStartThere) {
  NodeTrust<i64> trust;
  trust.ok(2);
  trust.ok(0);
  for (const char* trial : {"a", "b", "c", "d"}) trust.failed(trial, 0, kEarly);
  for (const char* trial : {"a", "b"}) trust.failed(trial, 1, kEarly);
  trust.failed("c", 1, !kEarly);
  trust.failed("d", 1, kEarly);
  EXPECT_FALSE(trust.bad_node());
}

TEST(NodeTrust, ItKnowsWhereATrialFailed) {
  NodeTrust<i64> trust;
  trust.failed("a", 1, !kEarly);
  EXPECT_TRUE(trust.failed_on("a", 1));
  EXPECT_FALSE(trust.failed_on("a", 0));
  EXPECT_FALSE(trust.failed_on("b", 1));
  EXPECT_FALSE(trust.proven(1));
  trust.ok(1);
  EXPECT_TRUE(trust.proven(1));
}

}  // namespace
}  // namespace sweep
