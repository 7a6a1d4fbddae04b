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

}  // namespace
}  // namespace sweep
