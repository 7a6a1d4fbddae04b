// Placement: what runs beside what on which nodes, and that the order of arrival is kept.
#include "worker/agent/node/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_matchers.h"

namespace sweep::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Attempt attempt(i64 id, i64 ranks, i64 nodes = 1) {
  Attempt out;
  out.id = id;
  out.trial.dp = ranks;
  out.trial.nodes = nodes;
  return out;
}

TEST(Placement, FitsRanksIntoSlots) {
  Placement placement(1, 4);
  for (i64 id = 1; id <= 3; ++id) placement.push(attempt(id, 2));
  const auto first = placement.take(), second = placement.take();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->attempt.id, 1);
  EXPECT_EQ(second->attempt.id, 2);
  EXPECT_FALSE(placement.take());
  placement.release(*first);
  EXPECT_EQ(placement.take()->attempt.id, 3);
}

TEST(Placement, NoSlotIsHeldTwice) {
  Placement placement(1, 4);
  for (const auto& [id, ranks] : {std::pair<i64, i64>{1, 1}, {2, 2}, {3, 1}, {4, 2}})
    placement.push(attempt(id, ranks));
  const auto first = placement.take(), second = placement.take(), third = placement.take();
  ASSERT_TRUE(first && second && third);
  EXPECT_THAT(first->slots, ElementsAre(ElementsAre(0)));
  EXPECT_THAT(second->slots, ElementsAre(ElementsAre(1, 2)));
  EXPECT_THAT(third->slots, ElementsAre(ElementsAre(3)));
  EXPECT_TRUE(first->beside);
  placement.release(*first);
  placement.release(*third);
  EXPECT_THAT(placement.take()->slots, ElementsAre(ElementsAre(0, 3)));
}

TEST(Placement, AnExclusiveAttemptRunsAloneOnItsNode) {
  Placement shared(2, 4), whole(1, 1);
  shared.push(attempt(1, 4));
  shared.push(attempt(2, 4, 2));
  whole.push(attempt(3, 1));
  const auto first = shared.take();
  EXPECT_FALSE(first->beside);
  shared.release(*first);
  const auto second = shared.take();
  EXPECT_FALSE(second->beside);
  EXPECT_THAT(second->slots, ElementsAre(ElementsAre(0, 1), ElementsAre(0, 1)));
  EXPECT_FALSE(whole.take()->beside);
}

TEST(Placement, LargerThanAllSlotsRunsAlone) {
  Placement placement(1, 2);
  placement.push(attempt(1, 8));
  placement.push(attempt(2, 1));
  const auto large = must(placement.take());
  EXPECT_FALSE(placement.take());
  placement.release(large);
  EXPECT_EQ(placement.take()->attempt.id, 2);
}

TEST(Placement, SmallOnesDoNotOvertakeALargeOne) {
  Placement placement(1, 4);
  placement.push(attempt(1, 3));
  placement.push(attempt(2, 4));
  placement.push(attempt(3, 1));
  ASSERT_TRUE(placement.take());
  EXPECT_FALSE(placement.take());
}

TEST(Placement, DropsTheFirstThatWaits) {
  Placement placement(1, 1);
  placement.push(attempt(1, 1));
  placement.push(attempt(2, 1));
  ASSERT_TRUE(placement.take());
  EXPECT_EQ(placement.next()->id, 2);
  EXPECT_EQ(placement.drop_next().id, 2);
  EXPECT_TRUE(placement.empty());
}

TEST(Placement, TrialsOfFewerNodesRunSideBySideOnDisjointOnes) {
  Placement placement(4, 1);
  placement.push(attempt(1, 16, 2));
  placement.push(attempt(2, 1));
  placement.push(attempt(3, 8));
  placement.push(attempt(4, 1));
  const auto two = placement.take(), one = placement.take(), other = placement.take();
  ASSERT_TRUE(two && one && other);
  EXPECT_THAT(two->nodes, ElementsAre(0, 1));
  EXPECT_THAT(one->nodes, ElementsAre(2));
  EXPECT_THAT(other->nodes, ElementsAre(3));
  EXPECT_FALSE(placement.take());  // nodes are handed out whole
  placement.release(*one);
  EXPECT_THAT(placement.take()->nodes, ElementsAre(2));
}

TEST(Placement, AnAttemptOfSeveralNodesSharesNoneOfThem) {
  Placement placement(2, 8);
  placement.push(attempt(1, 2, 2));
  placement.push(attempt(2, 1));
  const auto wide = must(placement.take());
  EXPECT_FALSE(placement.take());
  placement.release(wide);
  EXPECT_TRUE(placement.take());
}

TEST(Placement, LostNodesGetNoWork) {
  Placement placement(2, 1);
  placement.give_up(0);
  EXPECT_FALSE(placement.stuck());
  placement.push(attempt(1, 1));
  EXPECT_THAT(placement.take()->nodes, ElementsAre(1));
  placement.push(attempt(2, 2, 2));
  EXPECT_TRUE(placement.stuck());  // it waits for a node that does not come back
  placement.give_up(1);
  EXPECT_EQ(placement.usable_count(), 0);
  EXPECT_TRUE(placement.stuck());
}

Attempt try_of(const char* trial, i64 id) {
  Attempt out = attempt(id, 1);
  out.trial_id = trial;
  return out;
}

TEST(Placement, ARetryGoesToANodeWhereItsTrialHasNotFailed) {
  Placement placement(3, 1);
  placement.trust().failed("a", 0, true);
  placement.push(try_of("a", 1));
  placement.push(try_of("b", 2));
  EXPECT_THAT(placement.take()->nodes, ElementsAre(1));
  EXPECT_THAT(placement.take()->nodes, ElementsAre(0)) << "it is no worse for other trials";
}

TEST(Placement, ARetryWaitsForAnotherNodeThanOneWhereNothingEndedWell) {
  Placement placement(2, 1);
  placement.push(try_of("first", 1));
  placement.push(try_of("second", 2));
  const auto bad = placement.take(), good = placement.take();
  ASSERT_TRUE(bad && good);
  placement.trust().failed("first", 0, true);
  placement.release(*bad);
  placement.push(try_of("first", 3));
  EXPECT_FALSE(placement.take()) << "node 0 is free";
  placement.release(*good);
  EXPECT_THAT(placement.take()->nodes, ElementsAre(1));
}

TEST(Placement, ARetryTakesTheNodeWhereItFailedIfThatOneIsProvenOrTheOnlyOne) {
  Placement placement(2, 1);
  placement.push(try_of("other", 1));
  ASSERT_TRUE(placement.take());  // node 0 is taken
  placement.trust().ok(1);
  placement.trust().failed("a", 1, true);
  placement.push(try_of("a", 2));
  const auto again = must(placement.take());
  EXPECT_THAT(again.nodes, ElementsAre(1));
  placement.release(again);
  placement.give_up(0);
  placement.trust().failed("b", 1, true);
  placement.push(try_of("b", 3));
  EXPECT_THAT(placement.take()->nodes, ElementsAre(1));
}

TEST(Placement, SaysWhatCanNeverRun) {
  EXPECT_EQ(unplaceable(attempt(1, 8, 4), 4), "");
  EXPECT_THAT(unplaceable(attempt(1, 8, 4), 2), HasSubstr("needs 4 nodes, this allocation has 2"));
  EXPECT_THAT(unplaceable(attempt(1, 7, 2), 2), HasSubstr("do not divide"));
}

TEST(Placement, ARehearsalTakesOneNodeAndItsProcesses) {
  Placement placement(1, 4);
  Attempt rehearsed = attempt(1, 64, 8);
  rehearsed.rehearsed_ranks = {0, 32};
  EXPECT_EQ(unplaceable(rehearsed, 1), "");
  placement.push(rehearsed);
  EXPECT_THAT(placement.take()->slots, ElementsAre(ElementsAre(0, 1)));
}

}  // namespace
}  // namespace sweep::agent
