#include "worker/command/log_patterns.h"

#include <gtest/gtest.h>

namespace sweep::command {
namespace {

LogPatterns patterns(const std::map<std::string, std::string>& wanted) {
  return std::move(LogPatterns::compile(wanted).value());
}

// The steps of a whole log.
std::vector<TrainerStep> steps_of(LogPatterns patterns, std::string_view log) {
  patterns.feed(log);
  patterns.finish();
  return patterns.take_steps();
}

TEST(LogPatterns, ALineWithATimeIsAStep) {
  const auto found = steps_of(
      patterns({{"step_ms", "elapsed time per iteration \\(ms\\): ([0-9.,]+)"},
                {"step", "iteration +([0-9]+)/"},
                {"loss", "lm loss: ([0-9.E+-]+)"}}),
      " iteration        1/      10 | elapsed time per iteration (ms): 1,250.5 | lm loss: 1.2E+01 |\n"
      "saving\n iteration        2/      10 | elapsed time per iteration (ms): 80.0 |\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].number, 1);
  EXPECT_DOUBLE_EQ(*found[0].ms, 1250.5);
  EXPECT_DOUBLE_EQ(*found[0].loss, 12);
  EXPECT_FALSE(found[1].loss);
}

TEST(LogPatterns, StepsWithoutNumbersAreCounted) {
  auto log = patterns({{"step_s", "([0-9.]+) s/it"}, {"reserved_gib", "reserved ([0-9.]+)"}});
  log.feed("0.5 s/it\nreserved 2.0\n0.25 s/it\nreserved 1.5");
  log.finish();
  const auto found = log.take_steps();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].number, 2);
  EXPECT_DOUBLE_EQ(*found[1].ms, 250);
  EXPECT_EQ(log.peak_reserved_bytes(), i64{2} << 30);
  EXPECT_EQ(log.lines(), 4);
  EXPECT_EQ(log.matches(), (std::map<std::string, i64>{{"reserved_gib", 2}, {"step_s", 2}}));
}

TEST(LogPatterns, StepsMayBeCountedFromZero) {
  const auto found = steps_of(patterns({{"step_ms", "time ([0-9.]+)ms"}, {"step", "iter ([0-9]+)"}}),
                              "iter 0: time 900ms\niter 1: time 30ms\niter 2: time 31ms\n");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].number, 1);
  EXPECT_EQ(found[2].number, 3);
  EXPECT_DOUBLE_EQ(*found[1].ms, 30);
}

TEST(LogPatterns, NumbersThatGoBackwardsAreNoSteps) {
  const auto found =
      steps_of(patterns({{"step_ms", "t=([0-9.]+)"}, {"step", "n=([0-9]+)"}}), "n=2 t=1\nn=1 t=1\nn=3 t=1\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].number, 3);
}

TEST(LogPatterns, WhereStepsHaveNumbersALineWithoutOneIsNoStep) {
  const auto found = steps_of(patterns({{"step_ms", "([0-9.]+) ms"}, {"step", "step ([0-9]+)"}}),
                              "step 1: 30 ms\nevaluation took 900 ms\nstep 2: 31 ms\nstep 9999999: 5 ms\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].number, 2);
  EXPECT_DOUBLE_EQ(*found[1].ms, 31);
}

TEST(LogPatterns, CommasSeparateThousandsOrTheNumberIsNone) {
  const auto first = [](const std::string& number) -> std::optional<double> {
    const auto found = steps_of(patterns({{"step_s", "took ([-+0-9.,]+)"}}), "took " + number + "\n");
    return found.empty() ? std::nullopt : found[0].ms;
  };
  EXPECT_EQ(first("1,250"), 1'250'000);
  EXPECT_EQ(first("12,345,678.5"), 12'345'678'500);
  EXPECT_EQ(first("1,250.25"), 1'250'250);
  for (const char* other :
       {"0,125", "1,25", "1,2500", "12,34,567", "1234,567", ",125", "1,", "1.5,250", "01,250"})
    EXPECT_EQ(first(other), std::nullopt) << other;
}

TEST(LogPatterns, ASearchThatExplodesFindsNothing) {
  const std::string line = std::string(200, 'a') + "!\n";
  EXPECT_TRUE(steps_of(patterns({{"step_ms", "((a+)+)+b([0-9])"}}), line).empty());
}

// tqdm draws its bar over itself; a slow loop shows seconds a step, a fast one steps a second.
TEST(LogPatterns, AProgressBarsStatesAreLines) {
  const auto found = steps_of(
      patterns(
          {{"step", "([0-9]+)/[0-9]+ \\["}, {"steps_per_s", "([0-9.]+)it/s"}, {"step_s", "([0-9.]+)s/it"}}),
      "\r  0%|          | 0/40 [00:00<?, ?it/s]"
      "\r  2%|2         | 1/40 [00:01<00:39,  1.25s/it]"
      "\r 10%|#         | 4/40 [00:02<00:18,  2.00it/s]"
      "\r100%|##########| 40/40 [00:10<00:00,  4.00it/s]"
      "\r100%|##########| 40/40 [00:10<00:00,  3.90it/s]\ndone");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_DOUBLE_EQ(*found[0].ms, 1250);
  EXPECT_EQ(found[1].number, 4);
  EXPECT_DOUBLE_EQ(*found[1].ms, 500);
  EXPECT_EQ(found[2].number, 40);
  EXPECT_DOUBLE_EQ(*found[2].ms, 250);
}

TEST(LogPatterns, ASummaryIsTheLastOne) {
  auto log = patterns({{"mean_step_ms", "\"step_ms\": ([0-9.]+)"}, {"loss", "\"loss\": ([0-9.]+)"}});
  EXPECT_FALSE(log.summary());
  log.feed("{\"step_ms\": 70.0}\n{\"step_ms\": 61.5, \"loss\": 2.5}");
  log.finish();
  ASSERT_TRUE(log.summary());
  EXPECT_DOUBLE_EQ(*log.summary()->ms, 61.5);
  EXPECT_DOUBLE_EQ(*log.summary()->loss, 2.5);
  EXPECT_TRUE(log.take_steps().empty());
  auto rate = patterns({{"mean_steps_per_s", "train_steps_per_second': ([0-9.]+)"}});
  rate.feed("{'train_steps_per_second': 8.0}\n");
  EXPECT_DOUBLE_EQ(*rate.summary()->ms, 125);
}

TEST(LogPatterns, StepsAreFoundWhereverTheBytesAreCut) {
  const std::string log = "took 1 ms\n" + std::string(100'000, 'x') + "\r\ntook 2 ms\ntook 3 ms";
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{9000}}) {
    auto reader = patterns({{"step_ms", "took ([0-9]+)"}});
    std::vector<double> found;
    for (std::size_t at = 0; at < log.size(); at += piece) {
      reader.feed(std::string_view(log).substr(at, piece));
      for (const auto& step : reader.take_steps()) found.push_back(*step.ms);
    }
    reader.finish();
    for (const auto& step : reader.take_steps()) found.push_back(*step.ms);
    EXPECT_EQ(found, (std::vector<double>{1, 2, 3})) << piece;
  }
}

TEST(LogPatterns, ALineWithMissingBytesIsNone) {
  auto log = patterns({{"step_ms", "([0-9]+) ms"}});
  log.feed("1");
  log.gap();
  log.feed("25 ms\n" + std::string(3, '\0') + "26 ms\n27 ms\n");
  const auto found = log.take_steps();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_DOUBLE_EQ(*found[0].ms, 27);
}

TEST(LogPatterns, WhatIsNoPatternIsRefused) {
  EXPECT_FALSE(LogPatterns::compile({{"step_ms", "("}}));
  EXPECT_FALSE(LogPatterns::compile({{"step_ms", "no group"}}));
  EXPECT_FALSE(LogPatterns::compile({{"speed", "([0-9]+)"}}));
}

}  // namespace
}  // namespace sweep::command
