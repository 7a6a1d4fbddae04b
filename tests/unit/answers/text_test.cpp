#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "orchestrator/answers/format.h"
#include "orchestrator/answers/statistics/best.h"
#include "orchestrator/answers/tables/explain.h"
#include "orchestrator/answers/tables/source_tables.h"
#include "orchestrator/answers/tables/status.h"
#include "orchestrator/answers/tables/tables.h"
#include "tests/support/filled_records.h"
#include "tests/support/must.h"
#include "tests/unit/answers/rows.h"

namespace sweep::answers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Tables, ShowOnlyWhatVaries) {
  const std::vector<ResultRow> rows = {ok_row("aa", 1, 12345), ok_row("bb", 16, 9876),
                                       bad_row("cc", 2, Outcome::kOom, "rank 3: out of memory")};
  const auto table = must(select(rows));
  EXPECT_EQ(to_text(table),
            "trial  tp  outcome  step [ms]  tokens_per_s_gpu [tokens/s]  reason\n"
            "─────  ──  ───────  ─────────  ───────────────────────────  ─────────────────────\n"
            "aa      1  ok            81.0                        12.3k  -\n"
            "bb     16  ok             101                        9.88k  -\n"
            "cc      2  oom              -                            -  rank 3: out of memory\n");
}

// Three results whose grid has an axis of its own, in ms.
std::vector<ResultRow> with_own_axis() {
  std::vector<ResultRow> rows = {ok_row("aa", 1, 100), ok_row("bb", 1, 300), ok_row("cc", 1, 200)};
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i].trial.labels = fmt::format(R"({{"pause":{},"@units":{{"pause":"ms"}}}})", i + 1);
  return rows;
}

TEST(Tables, AnAxisOfTheGridsOwnShowsItsUnit) {
  const auto rows = with_own_axis();
  EXPECT_THAT(to_text(*select(rows)), HasSubstr("pause [ms]"));
  EXPECT_THAT(to_markdown(*select(rows)), HasSubstr("pause \\[ms]"));
  EXPECT_EQ(setting_text(rows[1], varying(rows)), "pause=2 ms");
  BestOptions options;
  options.group_by = {"pause"};
  EXPECT_THAT(to_text(best_table(varying(rows), *best(rows, options), options)), HasSubstr("pause [ms]"));
  options.group_by = {"tp"};
  EXPECT_THAT(to_text(best_table(varying(rows), *best(rows, options), options)), HasSubstr("pause [ms]"));
  for (const SourceTable kind : {SourceTable::kBatch, SourceTable::kMaxBatch}) {
    const auto text = to_text(for_people(source_table(kind, rows).table));
    EXPECT_TRUE(text.find("pause [ms]") != std::string::npos || text.find("pause=2 ms") != std::string::npos)
        << text;
  }
}

TEST(Tables, NarrowTerminalsCutTextFirstAndNameWhatIsLeftOut) {
  const std::vector<ResultRow> rows = {
      ok_row("aa", 1, 12345), bad_row("cc", 2, Outcome::kOom, "rank 3: out of device memory in backward")};
  const auto table = select(rows);
  for (const std::size_t width : {90, 75, 60, 40}) {
    std::istringstream lines(to_text(*table, width));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_TRUE(line.starts_with("not shown") || display_width(line) <= width) << line;
    }
  }
  EXPECT_THAT(to_text(*table, 90), HasSubstr("…"));
  EXPECT_THAT(to_text(*table, 40), HasSubstr("not shown for want of width: "));
}

TEST(Tables, MarkdownEscapesPipes) {
  const std::vector<ResultRow> rows = {ok_row("aa", 1, 1), bad_row("bb", 2, Outcome::kCrash, "a|b <i>")};
  const std::string text = to_markdown(*select(rows));
  EXPECT_THAT(text, HasSubstr("a\\|b \\<i>"));
  EXPECT_THAT(text, HasSubstr("| ---: |"));
}

TEST(Tables, AnswersToSqlAreShownAsStored) {
  const Table table{{"n", "tokens_per_s_gpu"},
                    {{Value{i64{3}}, Value{12345.678}}, {Value{}, Value{std::string("x\x1b")}}}};
  const std::string text = to_text_raw(table);
  EXPECT_THAT(text, HasSubstr("12345.7"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(Tables, NoRowsAndUnknownColumns) {
  EXPECT_TRUE(select({}));
  EXPECT_FALSE(to_text(*select({})).empty());
  TableOptions options;
  options.metrics = {"stepms"};
  EXPECT_THAT(select({}, options).error().message, HasSubstr("'step_ms'"));
}

StatusView half_way() {
  StatusView view;
  view.sweep = "llama-8b";
  view.total = 50;
  view.pending = 15;
  view.running = 4;
  view.by_outcome = {{Outcome::kOk, 24}, {Outcome::kOom, 2}, {Outcome::kCrash, 1}, {Outcome::kPruned, 4}};
  view.elapsed_s = 100;
  view.left_s = 200;
  view.best = StatusView::Best{"tokens_per_s_gpu", 12345, "DP8 TP2", "00ff"};
  return view;
}

TEST(Status, Bar) {
  EXPECT_EQ(status_bar(half_way(), 0),
            "[###########---------]  58 %  27/46  24 ok  2 oom  1 failed  4 running  about 3 min "
            "20 s left  "
            "best 12.3k tokens/s per rank (DP8 TP2)");
  EXPECT_EQ(status_bar(half_way(), 40), "[###---]  58 %  27/46  24 ok  2 oom  1 …");
}

// Pruned trials were never to run: nothing is done of a sweep that has not begun.
TEST(Status, PrunedTrialsAreNoneToRun) {
  StatusView view;
  view.sweep = "q", view.total = 64, view.pending = 28, view.left_s = 0.9;
  view.by_outcome = {{Outcome::kPruned, 36}};
  EXPECT_EQ(status_line(view), "q: 0/28 done (36 pruned): less than 1 s left\n");
  EXPECT_EQ(status_bar(view, 0).substr(0, 34), "[--------------------]   0 %  0/28");
}

// A program that says that it cannot run a configuration did run.
TEST(Status, WhatEndedUnsupportedWasNotPruned) {
  StatusView view;
  view.sweep = "q", view.total = 4;
  view.by_outcome = {{Outcome::kOk, 1}, {Outcome::kUnsupported, 3}};
  view.ran_unsupported = 2;
  const StatusCounts of = counts(view);
  EXPECT_EQ(of.done(), 3);
  EXPECT_EQ(of.unsupported, 2);
  EXPECT_EQ(of.pruned, 1);
  EXPECT_EQ(of.failed, 0);
}

TEST(Status, CountsAreShortenedBeforeTheBestConfiguration) {
  const std::string bar = status_bar(half_way(), 99);
  EXPECT_THAT(bar, HasSubstr("(DP8 TP2)"));
  EXPECT_LE(bar.size(), 99u);
}

TEST(Status, PlainLine) {
  EXPECT_EQ(status_line(half_way()),
            "llama-8b: 27/46 done (4 pruned): 24 ok, 2 oom, 1 failed, 4 running, about 3 min 20 s left, best "
            "12.3k tokens/s per rank "
            "(DP8 TP2)\n");
}

TEST(Status, Block) {
  StatusView view = half_way();
  view.now = {"a90d TP8 step 3", "b1 TP2 build"};
  view.held = {"a0001-0f3c local, 1 node (n1), 12 results"};
  view.events = {"2026-11-21T10:00:00Z  agent: a word\x1b[2J"};
  EXPECT_EQ(status_block(view, 60),
            "sweep    llama-8b\n"
            "done     [#################-------------] 58 %  27 of 46\n"
            "outcomes 24 ok, 2 oom, 1 crash, 4 pruned\n"
            "to do    15 pending, 4 running\n"
            "elapsed  1 min 40 s\n"
            "left     about 3 min 20 s\n"
            "best     12.3k tokens/s per rank (DP8 TP2)  trial 00ff\n"
            "now      a90d TP8 step 3\n"
            "         b1 TP2 build\n"
            "held     a0001-0f3c local, 1 node (n1), 12 results\n"
            "events   2026-11-21T10:00:00Z  agent: a word [2J\n");
}

TEST(Status, HundredPercentOnlyWhenAllIsDone) {
  StatusView view = half_way();
  view.total = 1000;
  view.by_outcome = {{Outcome::kOk, 999}};
  EXPECT_THAT(status_bar(view, 0), HasSubstr(" 99 %"));
  view.by_outcome = {{Outcome::kOk, 1000}};
  EXPECT_THAT(status_bar(view, 0), HasSubstr("[####################] 100 %"));
  EXPECT_THAT(status_bar(view, 0), HasSubstr("took 1 min 40 s"));
  EXPECT_THAT(status_bar(StatusView{}, 0), HasSubstr("0/0"));
}

TEST(Explain, APrunedTrialSaysWhyAndWithWhichNumbers) {
  ExplainView view;
  view.entry.id = "7c1e";
  view.entry.source = "sweeps/tp_pp_8gpu.yaml:14";
  view.entry.trial.model = "llama3-8b";
  view.entry.trial.tp = 8;
  view.entry.admitted = false;
  view.entry.rule = "memory";
  view.entry.reason = "needs 93.4 GiB per rank, budget 76.0 GiB";
  view.entry.predicted.bytes = i64{100} << 30;
  EXPECT_EQ(explain(view),
            "trial      7c1e  from sweeps/tp_pp_8gpu.yaml:14\n"
            "           model=llama3-8b tp=8\n"
            "plan       pruned by memory: needs 93.4 GiB per rank, budget 76.0 GiB\n"
            "predicted  100 GiB on the fullest rank\n");
}

TEST(Explain, EventsThatConcernATrialStandAtItsEnd) {
  ExplainView view;
  view.entry.id = "a90d";
  view.entry.trial.model = "m";
  view.events = {"noon  node n2 gets no more work", "one  trials stay pending"};
  const std::string text = explain(view);
  EXPECT_NE(text.find("result     not run yet\n"
                      "events     noon  node n2 gets no more work\n"
                      "           one  trials stay pending\n"),
            std::string::npos)
      << text;
}

TEST(BestText, TiesAreKnownOrUnknownAndNeverBoth) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 100), ok_row("b", 2, 100), ok_row("c", 4, 50)};
  for (ResultRow& row : rows) row.metrics.step_ms_ci_low = row.metrics.step_ms_ci_high = std::nullopt;
  const std::string text = best_text(varying(rows), *best(rows, {}), {}, 0);
  EXPECT_THAT(text, HasSubstr("TIED with 1 more (the same value"));
  EXPECT_THAT(text, HasSubstr("# other ties unknown"));
  EXPECT_THAT(text, Not(HasSubstr("# ties unknown")));
}

TEST(BestText, GroupsThatThePlanPrunedShareOneLine) {
  const std::vector<ResultRow> rows = {ok_row("a", 1, 100), bad_row("c", 2, Outcome::kPruned, "where")};
  const BestOptions options{.group_by = {"tp"}};
  const std::string text = best_text(varying(rows), *best(rows, options), options, 0);
  EXPECT_THAT(text, HasSubstr("No result for 1 group"));
  EXPECT_THAT(text, Not(HasSubstr("tp=2: nothing to rank")));
}

TEST(BestText, GroupsThatDidNotRunShareOneLine) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 100)};
  for (int i = 0; i < 20; ++i) {
    rows.push_back(ok_row("p" + std::to_string(i), 2 + i, 100));
    rows.back().state = State::kPending;
  }
  const BestOptions options{.group_by = {"tp"}};
  const std::string text = best_text(varying(rows), *best(rows, options), options, 0);
  const auto first = text.find("nothing to rank");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("nothing to rank", first + 1), std::string::npos) << text;
}

TEST(Explain, AnAttemptShowsItsCauseAndEvidence) {
  ExplainView view;
  view.entry.id = "a90d";
  view.entry.trial.model = "m";
  Result result;
  result.outcome = Outcome::kOom;
  result.oom_kind = OomKind::kDevice;
  result.rank = 5;
  result.phase = Phase::kWarmup;
  result.reason = "rank 5 on n1, earliest of 8 records";
  result.evidence.log_tail = "line one\nline \x1b[31mtwo", result.evidence.steps_are_of = "1 of 8 ranks";
  view.attempts = {{1, State::kFinished, "spool/a90d/1", result}, {2, State::kRunning, "", std::nullopt}};
  view.final_attempt = 1;
  EXPECT_EQ(explain(view),
            "trial      a90d\n"
            "           model=m\n"
            "plan       admitted, number 1 in the run order\n"
            "attempt    1: oom (device), first at rank 5, in warmup (final)  spool/a90d/1\n"
            "           rank 5 on n1, earliest of 8 records\n"
            "evidence   the log of a rank ends:\n"
            "             line one\n"
            "             line  [31mtwo\n"
            "           steps_are_of: 1 of 8 ranks\n"
            "           0 of 1 ranks left a record, 0 an exit status\n"
            "attempt    2: running\n");
}

TEST(Explain, AnOkTrialSaysWhatItsFiguresLack) {
  ExplainView view;
  view.entry.id = "a90d";
  Result result;
  result.outcome = Outcome::kOk;
  result.evidence.no_timings = "no step was timed", result.evidence.steps_are_of = "1 of 8 ranks";
  view.attempts = {{1, State::kFinished, "spool/a90d/1", result}};
  view.final_attempt = 1;
  EXPECT_THAT(explain(view), HasSubstr("no_timings: no step was timed\n"));
  EXPECT_THAT(explain(view), HasSubstr("steps_are_of: 1 of 8 ranks\n"));
}

TEST(Explain, AHangShowsWhereEachRankWasAndAnOkTrialWhatARankSends) {
  ExplainView view;
  view.entry.id = "a90d";
  view.entry.trial.model = "m";
  Result hang;
  hang.outcome = Outcome::kHang;
  hang.evidence = sweep::filled::read_text<Evidence>(
      R"({"hang":{"ranks":[{"rank":0,"phase":"step","part":"backward","step":4,"alive":true,"collectives_done":6,
      "collectives_entered":7,"last_collective":"all_reduce 7 of tp","waits_for":"all_reduce 7 of tp"},{"rank":1,"alive":false}],
      "why":"too long"}})");
  Result ok;
  ok.outcome = Outcome::kOk;
  ok.metrics.sent_bytes_tp = 3 << 20, ok.metrics.calls_tp = 12;
  view.attempts = {{1, State::kFinished, "", hang}, {2, State::kFinished, "", ok}};
  const std::string text = explain(view);
  EXPECT_THAT(text,
              HasSubstr("ranks      rank 0: phase step, part backward, step 4, 6 of 7 collectives done, last "
                        "all_reduce 7 of tp, waits for all_reduce 7 of tp\n"
                        "           rank 1: phase "));
  EXPECT_THAT(text, HasSubstr("; process gone\n"));
  EXPECT_THAT(text, HasSubstr(R"(hang: {"why":"too long"})"));
  EXPECT_THAT(text, HasSubstr("a rank sends in a step: tp 3.00 MiB in 12 calls"));
}

TEST(Explain, OfACancelledAttemptNoHangIsShown) {
  ExplainView view;
  view.entry.id = "a90d";
  view.entry.trial.model = "m";
  Result cancelled;
  cancelled.outcome = Outcome::kCancelled, cancelled.reason = "the agent was stopping";
  cancelled.evidence.cause = EndCause::kCancelled;
  cancelled.evidence.hang = AgentEvidence{.why = "the agent was stopping"};
  view.attempts = {{1, State::kFinished, "", cancelled}};
  EXPECT_THAT(explain(view), Not(HasSubstr("hang")));
}

TEST(Explain, LongReasonsAreWrappedNeverCut) {
  ExplainView view;
  view.entry.id = "a";
  view.entry.admitted = false;
  view.entry.rule = "memory";
  for (int i = 0; i < 60; ++i) view.entry.reason += "word" + std::to_string(i) + " ";
  const std::string text = explain(view, 60);
  EXPECT_THAT(text, HasSubstr("word59"));
  EXPECT_THAT(text, Not(HasSubstr("…")));
}

}  // namespace
}  // namespace sweep::answers
