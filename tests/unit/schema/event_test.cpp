#include "schema/event.h"

#include <gtest/gtest.h>

namespace sweep {
namespace {

TEST(EventKinds, EachIsReadBackFromItsOwnWord) {
  for (int i = 0; i < static_cast<int>(EventKind::kOther); ++i) {
    const auto kind = static_cast<EventKind>(i);
    EXPECT_NE(to_string(kind), to_string(EventKind::kOther)) << i;
    EXPECT_EQ(event_kind_from(to_string(kind)), kind) << to_string(kind);
  }
  for (const char* word : {"", "Agent", "quarantine ", "thawed"})
    EXPECT_EQ(event_kind_from(word), EventKind::kOther) << word;
}

// Databases hold these words.
TEST(EventKinds, WordsOfStoredEventsStay) {
  for (const char* word :
       {"agent", "allocation_lost", "allocation_released", "allocation_silent", "hardware", "imported",
        "launcher", "measure_changed", "merged", "node_lost", "pending", "quarantine", "readmitted",
        "requested_again", "reuse", "screen", "strategy", "stray_records", "suggested"}) {
    EXPECT_NE(event_kind_from(word), EventKind::kOther) << word;
    EXPECT_EQ(to_string(event_kind_from(word)), word);
  }
}

}  // namespace
}  // namespace sweep
