// The finished trials of a sweep as trackers take them, and as files for `wandb sync`.
#include "orchestrator/export/send.h"

#include <gtest/gtest.h>

#include "tests/support/error_matchers.h"
#include "tests/support/must.h"
#include "tests/support/temporary_folder.h"

namespace sweep::exports {
namespace {

ResultRow trial_row(const std::string& trial, State state = State::kFinished, Outcome outcome = Outcome::kOk,
                    i64 finished_s = 10) {
  ResultRow row;
  row.sweep = "s", row.trial_id = trial, row.state = state, row.outcome = outcome;
  row.trial.model = "m";
  row.finished_unix_ns = finished_s * 1'000'000'000;
  return row;
}

class Send : public ::testing::Test {
 protected:
  static std::vector<ResultRow> rows() {
    return {trial_row("aa"), trial_row("bb", State::kFinished, Outcome::kOom, 20),
            trial_row("cc", State::kPending), trial_row("dd", State::kFinished, Outcome::kPruned)};
  }
  FinishedTrials trials(const std::vector<ResultRow>& of = rows()) {
    return {{"s", "why?", "grid", 5'000'000'000},
            of,
            std::vector<std::string>(of.size(), "m"),
            [this](const ResultRow& row) -> Expected<std::vector<StepValues>> {
              if (row.trial_id == damaged_) return fail("damaged");
              return std::vector<StepValues>{{1'000'000, {{"steps/loss", 2.5}}}};
            }};
  }
  Listener listener() {
    return {[](const std::string&) {}, [this](i64 done, i64 of) { heard_.emplace_back(done, of); }};
  }

  std::string damaged_;
  std::vector<std::pair<i64, i64>> heard_;
  TemporaryFolder dir_;
};

TEST_F(Send, TrialsWithoutAResultAreLeftOutAndCounted) {
  const auto finished = trials();
  EXPECT_EQ(finished.size(), 2);
  EXPECT_EQ(finished.left_out(), 2);
  const auto run = must(finished.run(1));
  EXPECT_EQ(run.trial, "bb");
  EXPECT_EQ(run.name, "m bb") << "two trials have one name";
  EXPECT_EQ(run.question, "why?");
  EXPECT_EQ(run.history.size(), 1u);
}

TEST_F(Send, TheSweepAsAWholeEndsWithItsLastTrialAndHasAnIdOfItsOwn) {
  const auto whole = must(trials().as_whole());
  EXPECT_EQ(whole.created_unix_s, 5);
  EXPECT_EQ(whole.ended_unix_s, 20);
  EXPECT_EQ(whole.id.size(), 16u);
  EXPECT_NE(whole.id, trials().run(0)->id);
  EXPECT_EQ(std::ranges::count(whole.results_csv, '\n'), 3) << "a heading and two trials";
  EXPECT_EQ(trials({}).as_whole()->ended_unix_s, 5) << "nothing has ended";
}

TEST_F(Send, FilesAreWrittenOnceAndATrialThatCannotBeReadStopsNoOther) {
  const WandbOffline writer(dir_, "", "p");
  damaged_ = "aa";
  const auto first = write_offline(trials(), writer, listener());
  EXPECT_EQ(first.sent, 1);
  EXPECT_EQ(first.refused.size(), 1u);
  EXPECT_FALSE(first.complete());
  EXPECT_EQ(heard_, (std::vector<std::pair<i64, i64>>{{1, 2}, {2, 2}}));
  damaged_.clear();
  const auto second = write_offline(trials(), writer, listener());
  EXPECT_EQ(second.sent, 1);
  EXPECT_EQ(second.unchanged, 1);
  EXPECT_TRUE(second.complete());
  const auto line = sent_line({second, "there"}, trials());
  EXPECT_THAT(line, ::testing::HasSubstr("there: 2 of 2 "));
  EXPECT_THAT(line, ::testing::HasSubstr("2 pruned"));
}

}  // namespace
}  // namespace sweep::exports
