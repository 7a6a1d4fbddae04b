// The page of a trial: parts of its time, and no text of a cluster as markup.
#include "orchestrator/answers/pages/trial_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orchestrator/answers/pages/vega_charts.h"
#include "orchestrator/answers/statistics/time_parts.h"
#include "tests/support/must.h"
#include "tests/unit/answers/rows.h"

namespace sweep::answers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr i64 kMs = 1'000'000;
constexpr const char* kMarkup = "\"'></script><!--<script>pwned()</script>";

RankRecord timed(i64 rank) {
  RankRecord out;
  out.rank = rank, out.outcome = Outcome::kOk, out.message = kMarkup;
  out.effective.backend = kMarkup;
  StepSample warm{.repeat = 0,
                  .step = 0,
                  .warmup = true,
                  .step_ns = 900 * kMs,
                  .forward_ns = 500 * kMs,
                  .backward_ns = 300 * kMs,
                  .optimizer_ns = 50 * kMs,
                  .exposed_comm_ns = {},
                  .tokens = 8,
                  .loss = 3,
                  .alloc_retries = 0};
  StepSample step = warm;
  step.step = 1, step.warmup = false, step.step_ns = 100 * kMs, step.forward_ns = 20 * kMs;
  step.backward_ns = 50 * kMs, step.optimizer_ns = 10 * kMs, step.exposed_comm_ns = 25 * kMs;
  out.samples = {warm, step};
  return out;
}

TEST(TimeParts, WhatARankWaitedForAtOtherStagesIsTheBubbleAndNotCommunicationToo) {
  const auto parts = must(time_parts(rank_times(timed(0), /*pipeline=*/true), Trial{}));
  // The rank waited 25 ms; 20 of them are outside of forward, backward and update: the bubble. The other 5 are a part of
  // backward.
  EXPECT_THAT(parts, ElementsAre(20, 45, 5, 10, 20, 0));
}

TEST(TimeParts, AWaitForDataIsOutsideOfThePassesAndTheirBubble) {
  RankRecord record = timed(0);
  record.samples.back().step_ns = 200 * kMs, record.samples.back().data_ns = 100 * kMs;
  const Metrics times = rank_times(record, /*pipeline=*/true);
  EXPECT_DOUBLE_EQ(*times.bubble, 20.0 / 90);  // of 200 ms without 100 of data and 10 of the update
  EXPECT_DOUBLE_EQ(*times.data_ms, 100);
  EXPECT_THAT(*time_parts(times, Trial{}),
              ElementsAre(20, 45, 5, 10, ::testing::DoubleNear(20, 1e-9), ::testing::DoubleNear(100, 1e-9)));
}

TEST(TimeParts, WithoutAPipelineTheRestIsOtherAndWarmUpCountsNowhere) {
  const auto parts = must(time_parts(rank_times(timed(0), /*pipeline=*/false), Trial{}));
  EXPECT_THAT(parts, ElementsAre(20, 25, 25, 10, 0, 20));
  EXPECT_FALSE(time_parts(rank_times(RankRecord{}, false), Trial{})) << "nothing was timed";
}

TEST(TimeParts, GathersAreWaitedForInForwardAndBackwardAlike) {
  Metrics m;
  m.step_ms = 100, m.forward_ms = 30, m.backward_ms = 60, m.optimizer_ms = 10, m.exposed_comm_ms = 75;
  Trial t;
  EXPECT_THAT(*time_parts(m, t), ElementsAre(15, 0, 75, 10, 0, 0)) << "gradients: backward first";
  t.zero = 3;
  EXPECT_THAT(*time_parts(m, t), ElementsAre(5, 10, 75, 10, 0, 0));
  m.exposed_comm_ms = 95;
  EXPECT_THAT(*time_parts(m, t), ElementsAre(0, 0, 95, 5, 0, 0));
}

TEST(VegaCharts, NoTextOfAChartEndsItsScript) {
  SpanChart chart{.title = kMarkup, .x = kMarkup, .rows = {kMarkup}, .kinds = {kMarkup, kMarkup}};
  EXPECT_EQ(figure(chart), "") << "nothing to draw";
  chart.spans = {{0, 0, 0, 1, kMarkup}, {0, 1, 1, 2, kMarkup}};
  const std::string html = figure(chart);
  EXPECT_EQ(html.find("<script>pwned"), std::string::npos);
  EXPECT_EQ(html.find("<!--"), std::string::npos);
  EXPECT_EQ(html.find("</script>"), html.rfind("</script>")) << "the figure's own end";
  EXPECT_THAT(html, HasSubstr("\\u003c/script\\u003e"));
}

TEST(TrialPage, TextOfAClusterNeverBecomesMarkup) {
  TrialPage page;
  page.sweep = page.question = page.db = page.made = page.options.launcher = kMarkup;
  page.view.entry.id = "abc", page.view.entry.trial.model = kMarkup, page.view.entry.source = kMarkup;
  page.view.events = {kMarkup}, page.view.command = kMarkup;
  page.view.attempts = {{7, State::kFinished, kMarkup, Result{}}};
  page.view.attempts[0].result->reason = kMarkup, page.view.attempts[0].result->evidence.log_tail = kMarkup;
  page.view.final_attempt = page.attempt = 7;
  page.row = ok_row("abc", 1, 100);
  page.row->reason = kMarkup;
  page.records.records = {timed(0), timed(1)};
  page.records.exits = {RankExit{}};
  page.records.exits[0].log_tail = kMarkup;
  page.records.end = AttemptEnd{};
  page.records.end->load.nodes = {{kMarkup, {1, 2}, {10, 20}, {}, {}}};
  const std::string html = trial_html(page);
  EXPECT_THAT(html, Not(HasSubstr("<script>pwned")));
  EXPECT_THAT(html, Not(HasSubstr("<!--")));
  for (const char* section : {"time", "steps", "load", "ranks", "effective", "attempts", "log", "events"})
    EXPECT_THAT(html, HasSubstr(std::string("<section id=\"") + section + "\">"));
  EXPECT_THAT(html, Not(HasSubstr("<section id=\"schedule\">"))) << "it has no pipeline";
}

TEST(TrialPage, RanksThatDifferByTheirDeviceAloneHaveOneTableOfSettings) {
  TrialPage page;
  page.view.entry.id = "abc";
  page.records.records = {timed(0), timed(1)};
  for (i64 rank : {0, 1})
    page.records.records[std::size_t(rank)].effective.device = "cuda:" + std::to_string(rank);
  EXPECT_THAT(trial_html(page), HasSubstr("All 2 ranks"));
}

}  // namespace
}  // namespace sweep::answers
