// Slots: what runs beside what, and that nobody overtakes.
#include "worker/agent/queue.h"

#include <gtest/gtest.h>

namespace sweep::agent {
namespace {

Attempt attempt(i64 id, i64 ranks) {
  Attempt out;
  out.id = id;
  out.trial.dp = ranks;
  return out;
}

TEST(Queue, FitsRanksIntoSlots) {
  Queue queue(4);
  for (i64 id = 1; id <= 3; ++id) queue.push(attempt(id, 2));
  const auto first = queue.take(), second = queue.take();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->id, 1);
  EXPECT_EQ(second->id, 2);
  EXPECT_FALSE(queue.take());
  queue.release(*first);
  EXPECT_EQ(queue.take()->id, 3);
}

TEST(Queue, LargerThanAllSlotsRunsAlone) {
  Queue queue(2);
  queue.push(attempt(1, 8));
  queue.push(attempt(2, 1));
  const auto large = queue.take();
  ASSERT_TRUE(large);
  EXPECT_FALSE(queue.take());
  queue.release(*large);
  EXPECT_EQ(queue.take()->id, 2);
}

TEST(Queue, SmallOnesDoNotOvertakeALargeOne) {
  Queue queue(4);
  queue.push(attempt(1, 3));
  queue.push(attempt(2, 4));
  queue.push(attempt(3, 1));
  ASSERT_TRUE(queue.take());
  EXPECT_FALSE(queue.take());
}

TEST(Queue, RemovesOnlyWhatWaits) {
  Queue queue(1);
  queue.push(attempt(1, 1));
  queue.push(attempt(2, 1));
  ASSERT_TRUE(queue.take());
  EXPECT_FALSE(queue.remove(1));
  EXPECT_EQ(queue.remove(2)->id, 2);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace sweep::agent
