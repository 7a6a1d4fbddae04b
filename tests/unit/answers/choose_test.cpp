// The order of machines that cost the same.
#include "orchestrator/answers/tables/choose.h"

#include <gtest/gtest.h>

namespace sweep::answers {
namespace {

TEST(Choose, OfEqualConfigurationsTheSmallerIdComesFirst) {
  std::vector<PlanEntry> entries(2);
  for (PlanEntry& entry : entries) {
    entry.admitted = true, entry.trial.hardware = "h100-sxm-80gb";
    entry.trial.seq_len = 4096, entry.trial.global_batch_size = 1;
    entry.predicted.bytes = 1, entry.predicted.step_ms = 10;
  }
  entries[0].id = "b", entries[1].id = "a";
  std::vector<ChooseRequest> requests(2);
  requests[1].usd = 1e9;
  for (const ChooseRequest& request : requests) {
    const Choices found = choose(entries, request, {{"h100-sxm-80gb", 30}});
    ASSERT_EQ(found.meeting.size(), 2u);
    EXPECT_EQ(found.meeting[0].entry->id, "a");
    ASSERT_TRUE(found.fastest && found.cheapest);
    EXPECT_EQ(found.fastest->entry->id, "a");
    EXPECT_EQ(found.cheapest->entry->id, "a");
  }
}

}  // namespace
}  // namespace sweep::answers
