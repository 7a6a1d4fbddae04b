#include "base/text.h"

#include <gtest/gtest.h>

#include "base/expected.h"

namespace sweep {
namespace {

TEST(HumanBytes, UsesTheUnitThatSuitsTheSize) {
  EXPECT_EQ(human_bytes(512), "0.5 KiB");
  EXPECT_EQ(human_bytes(3.5 * 1024 * 1024), "3.5 MiB");
  EXPECT_EQ(human_bytes(80.0 * (1 << 30)), "80.0 GiB");
}

TEST(ShellWord, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(shell_word("--nodes=2"), "--nodes=2");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's $(x)"), "'it'\\''s $(x)'");
  EXPECT_EQ(shell_word("~root"), "'~root'");
}

TEST(LimitSeconds, ReadsTheFormsOfSbatch) {
  EXPECT_EQ(limit_seconds("90"), 90 * 60);
  EXPECT_EQ(limit_seconds("02:30"), 150);
  EXPECT_EQ(limit_seconds("90:00"), 90 * 60);
  EXPECT_EQ(limit_seconds("01:02:30"), 3750);
  EXPECT_EQ(limit_seconds("2-03"), 2 * 86400 + 3 * 3600);
  EXPECT_EQ(limit_seconds("2-03:04"), 2 * 86400 + 3 * 3600 + 4 * 60);
  EXPECT_EQ(limit_seconds("2-03:04:05"), 2 * 86400 + 3 * 3600 + 4 * 60 + 5);
  for (const char* none : {"UNLIMITED", "NOT_SET", "INVALID", "", "1:2:3:4", "-5", "5-", "x", "99:99:99",
                           "00:60:00", "1-24", "10:60", "1:", ":1", "1:+2", "1234567"})
    EXPECT_FALSE(limit_seconds(none)) << none;
}

Expected<int> half(int value) {
  if (value % 2 != 0) return fail("odd");
  return value / 2;
}
Expected<int> quarter(int value) {
  SWEEP_TRY(half(value));
  return half(value / 2);
}

TEST(Try, ReturnsTheErrorOrGoesOn) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(3).error().message, "odd");
  EXPECT_EQ(quarter(6).error().message, "odd");
}

}  // namespace
}  // namespace sweep
