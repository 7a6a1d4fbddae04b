#include "orchestrator/answers/progress.h"

#include <gtest/gtest.h>

namespace sweep::answers {
namespace {

TEST(Progress, TrialsThatRunWithoutAHolderAreLeftOver) {
  StatusView view;
  add_holder(view, "");
  EXPECT_TRUE(view.now.empty());
  view.running = 1;
  add_holder(view, "");
  EXPECT_EQ(view.now.size(), 1u);
  add_holder(view, "run by me");
  EXPECT_EQ(view.now.back(), "run by me");
}

}  // namespace
}  // namespace sweep::answers
