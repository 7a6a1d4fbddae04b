#include "worker/command/log_patterns.h"

#include <gtest/gtest.h>

namespace sweep::command {
namespace {

LogPatterns patterns(const std::map<std::string, std::string>& wanted) {
  return std::move(LogPatterns::compile(wanted).value());
}

TEST(LogPatterns, ALineWithATimeIsAStep) {
  const auto found =
      patterns({{"step_ms", "elapsed time per iteration \\(ms\\): ([0-9.,]+)"},
                {"step", "iteration +([0-9]+)/"},
                {"loss", "lm loss: ([0-9.E+-]+)"}})
          .read(
              " iteration        1/      10 | elapsed time per iteration (ms): 1,250.5 | lm loss: 1.2E+01 |\n"
              "saving\n iteration        2/      10 | elapsed time per iteration (ms): 80.0 |\n");
  ASSERT_EQ(found.steps.size(), 2u);
  EXPECT_EQ(found.steps[0].number, 1);
  EXPECT_DOUBLE_EQ(*found.steps[0].ms, 1250.5);
  EXPECT_DOUBLE_EQ(*found.steps[0].loss, 12);
  EXPECT_FALSE(found.steps[1].loss);
}

TEST(LogPatterns, StepsWithoutNumbersAreCounted) {
  const auto found = patterns({{"step_s", "([0-9.]+) s/it"}, {"reserved_gib", "reserved ([0-9.]+)"}})
                         .read("0.5 s/it\nreserved 2.0\n0.25 s/it\nreserved 1.5");
  ASSERT_EQ(found.steps.size(), 2u);
  EXPECT_EQ(found.steps[1].number, 2);
  EXPECT_DOUBLE_EQ(*found.steps[1].ms, 250);
  EXPECT_EQ(found.peak_reserved_bytes, i64{2} << 30);
}

TEST(LogPatterns, NumbersThatGoBackwardsAreNoSteps) {
  const auto found =
      patterns({{"step_ms", "t=([0-9.]+)"}, {"step", "n=([0-9]+)"}}).read("n=2 t=1\nn=1 t=1\nn=3 t=1\n");
  ASSERT_EQ(found.steps.size(), 2u);
  EXPECT_EQ(found.steps[1].number, 3);
}

TEST(LogPatterns, ASearchThatExplodesFindsNothing) {
  const std::string line = std::string(4000, 'a') + "!\n";
  EXPECT_TRUE(patterns({{"step_ms", "((a+)+)+b([0-9])"}}).read(line).steps.empty());
}

TEST(LogPatterns, WhatIsNoPatternIsRefused) {
  EXPECT_FALSE(LogPatterns::compile({{"step_ms", "("}}));
  EXPECT_FALSE(LogPatterns::compile({{"step_ms", "no group"}}));
  EXPECT_FALSE(LogPatterns::compile({{"speed", "([0-9]+)"}}));
}

}  // namespace
}  // namespace sweep::command
