#include <gmock/gmock.h>

#include "tests/unit/store/store_fixture.h"

namespace sweep::store {
namespace {

class ImportRows : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    store_ = open();
    brought_.name = "brought", brought_.grid_path = "f.csv";
  }
  static ImportedRow row(i64 micro_batch_size, Outcome outcome, std::optional<double> tokens = {}) {
    ImportedRow out;
    out.entry = entry(micro_batch_size);
    Result r;
    r.trial_id = out.entry.id, r.outcome = outcome, r.metrics.tokens_per_s_gpu = tokens;
    if (outcome != Outcome::kOk) r.reason = "f.csv says so";
    out.result = r;
    return out;
  }
  ImportCounts bring(const std::vector<ImportedRow>& rows) {
    return must(store_->import_rows(brought_, rows));
  }
  i64 count(const std::string& table) {
    return std::get<i64>(must(store_->query("SELECT count(*) FROM " + table)).rows[0][0]);
  }
  SweepRow brought_;
};

TEST_F(ImportRows, AreAnsweredAsAnyOtherResult) {
  const auto counts =
      bring({row(1, Outcome::kOk, 10), row(2, Outcome::kOk, 30), row(4, Outcome::kFailedUnknown)});
  EXPECT_EQ(std::tuple(counts.trials, counts.added, counts.known), std::tuple(3, 3, 0));
  const i64 sweep = must(store_->find_sweep("brought")).id;
  const auto best = must(store_->best(sweep, "tokens_per_s_gpu", 1));
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best[0].trial.micro_batch_size, 2);
  EXPECT_EQ(must(store_->results(sweep)).back().reason, "f.csv says so");
  EXPECT_EQ(must(store_->pending(sweep, 10)).size(), 0u) << "nothing of it is to be run";
}

TEST_F(ImportRows, AgainTheSameChangesNothing) {
  const std::vector<ImportedRow> rows = {row(1, Outcome::kOk, 10), row(1, Outcome::kOk, 11),
                                         row(2, Outcome::kCrash)};
  EXPECT_EQ(bring(rows).repeated, 1);
  const auto again = bring(rows);
  EXPECT_EQ(std::tuple(again.added, again.known), std::tuple(0, 3));
  EXPECT_EQ(count("attempt"), 3);
  EXPECT_EQ(count("allocation"), 1);
  const auto results = must(store_->results(1));
  EXPECT_EQ(results[0].metrics.tokens_per_s_gpu, 11) << "the last row of a configuration counts";
  EXPECT_EQ(results[1].outcome, Outcome::kCrash) << "an imported crash is not tried again";
}

TEST_F(ImportRows, ACorrectedFileAgainChangesNothing) {
  bring({row(1, Outcome::kOk, 10)});
  EXPECT_EQ(bring({row(1, Outcome::kOk, 11)}).added, 1);
  EXPECT_EQ(bring({row(1, Outcome::kOk, 11)}).added, 0);
  EXPECT_EQ(count("attempt"), 2);
  EXPECT_EQ(bring({row(1, Outcome::kOk, 10)}).added, 1) << "the correction is taken back";
  EXPECT_EQ(must(store_->results(1))[0].metrics.tokens_per_s_gpu, 10);
}

TEST_F(ImportRows, AGrownFileAddsWhatIsNew) {
  bring({row(1, Outcome::kOk, 10)});
  const auto grown = bring({row(1, Outcome::kOk, 10), row(1, Outcome::kOk, 12), row(2, Outcome::kOk, 5)});
  EXPECT_EQ(std::tuple(grown.added, grown.known), std::tuple(2, 1));
  EXPECT_EQ(must(store_->results(1))[0].metrics.tokens_per_s_gpu, 12);
  bring({row(2, Outcome::kOk, 5)});
  EXPECT_EQ(must(store_->results(1)).size(), 2u) << "a part of the file retires nothing";
}

// The same lines, read with a corrected flag, are other configurations.
TEST_F(ImportRows, LinesThatAreReadOtherwiseNowAreRefusedOrReplaced) {
  const auto at = [](i64 line, i64 size, double tokens) {
    ImportedRow out = row(size, Outcome::kOk, tokens);
    out.entry.source = fmt::format("f.csv:{}", line);
    return out;
  };
  bring({at(2, 1, 10), at(3, 2, 99)});
  const std::vector corrected = {at(2, 4, 10), at(3, 8, 9)};
  EXPECT_THAT(error_in(store_->import_rows(brought_, corrected)), IsError(ErrorKind::kConflict, "brought"));
  EXPECT_EQ(must(store_->results(1)).size(), 2u) << "nothing has changed";
  EXPECT_EQ(must(store_->import_rows(brought_, corrected, Earlier::kReplace)).replaced, 2);
  EXPECT_EQ(must(store_->results(1)).size(), 2u);
  EXPECT_EQ(must(store_->best(1, "tokens_per_s_gpu", 1))[0].trial.micro_batch_size, 4);
  EXPECT_EQ(must(store_->import_rows(brought_, std::vector{at(2, 1, 10)}, Earlier::kKeep)).known, 1);
  EXPECT_EQ(must(store_->results(1)).size(), 3u) << "what was retired is taken back";
  bring({at(2, 1, 10), at(3, 4, 10), at(4, 8, 9)});
  EXPECT_EQ(must(store_->results(1)).size(), 3u) << "a line that moved is no other configuration";
}

// The rows of a trial, the last of which was never run.
ImportedRow never_run(ImportedRow row) {
  row.result.reset();
  row.entry.admitted = false, row.entry.reason = "too large";
  return row;
}

TEST_F(ImportRows, ARowThatWasNeverRunTakesThePlaceOfAResultByReplace) {
  const ImportedRow measured = row(1, Outcome::kOk, 10);
  const std::vector pruned = {never_run(measured)};
  bring({measured});
  EXPECT_THAT(error_in(store_->import_rows(brought_, pruned)), IsError(ErrorKind::kConflict, "brought"));
  EXPECT_EQ(must(store_->results(1))[0].outcome, Outcome::kOk) << "nothing has changed";
  EXPECT_EQ(must(store_->import_rows(brought_, pruned, Earlier::kReplace)).replaced, 1);
  EXPECT_EQ(must(store_->results(1))[0].outcome, Outcome::kPruned);
  EXPECT_TRUE(must(store_->best(1, "tokens_per_s_gpu", 1)).empty());
  EXPECT_EQ(bring(pruned).replaced, 0) << "again the same";
  EXPECT_EQ(bring({measured}).known, 1) << "the correction is taken back";
  EXPECT_EQ(must(store_->results(1))[0].outcome, Outcome::kOk);
}

TEST_F(ImportRows, TheLastRowOfATrialCountsAlsoIfItWasNeverRun) {
  const ImportedRow measured = row(1, Outcome::kOk, 10);
  bring({measured, never_run(measured)});
  EXPECT_EQ(must(store_->results(1))[0].outcome, Outcome::kPruned);
  EXPECT_EQ(count("attempt"), 1) << "all are kept";
  EXPECT_EQ(bring({measured, never_run(measured)}).known, 1) << "again the same";
}

TEST_F(ImportRows, AResultWhoseRowHasNoAnswerAnyMoreIsRetiredByReplace) {
  ImportedRow measured = row(1, Outcome::kOk, 10), other = row(2, Outcome::kOk, 20);
  measured.entry.source = "f.csv:2", other.entry.source = "f.csv:3";
  bring({measured, other});
  const std::vector open = {UnansweredRow{measured.entry.id, "f.csv:2"}};
  EXPECT_THAT(error_in(store_->import_rows(brought_, std::vector{other}, Earlier::kRefuse, open)),
              IsError(ErrorKind::kConflict, "brought"));
  EXPECT_EQ(must(store_->import_rows(brought_, std::vector{other}, Earlier::kReplace, open)).replaced, 1);
  const auto results = must(store_->results(1));
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].trial.micro_batch_size, 2);
  EXPECT_EQ(must(store_->import_rows(brought_, std::vector{measured}, Earlier::kRefuse, open)).known, 1)
      << "measured in one row and started again in another";
}

TEST_F(ImportRows, AFileIsComparedWithItsOwnPast) {
  bring({row(1, Outcome::kOk, 10)});
  brought_.grid_path = "g.csv";
  EXPECT_EQ(bring({row(1, Outcome::kOk, 11)}).added, 1);
  brought_.grid_path = "f.csv";
  EXPECT_EQ(bring({row(1, Outcome::kOk, 10)}).known, 1);
  EXPECT_EQ(must(store_->results(1))[0].metrics.tokens_per_s_gpu, 11);
  EXPECT_EQ(count("attempt"), 2);
}

TEST_F(ImportRows, TheSameLineOfAnotherFileIsNoCorrection) {
  ImportedRow first = row(1, Outcome::kOk, 10), second = row(2, Outcome::kOk, 20);
  first.entry.source = "f.csv:2", second.entry.source = "g.csv:2";
  bring({first});
  brought_.grid_path = "g.csv";
  EXPECT_EQ(bring({second}).added, 1);
  EXPECT_EQ(must(store_->results(1)).size(), 2u);
}

TEST_F(ImportRows, PrunedOnesHaveNoAttempt) {
  bring({never_run(row(1, Outcome::kOk))});
  const auto results = must(store_->results(1));
  EXPECT_EQ(results[0].outcome, Outcome::kPruned);
  EXPECT_EQ(results[0].reason, "too large");
  EXPECT_EQ(count("attempt"), 0);
}

TEST_F(ImportRows, ANameOfRehearsalsIsNone) {
  brought_.name = "brought.rehearsal";
  const auto refused = store_->import_rows(brought_, std::vector{row(1, Outcome::kOk, 1)});
  EXPECT_THAT(error_in(refused), IsError(ErrorKind::kInvalidValue, "brought.rehearsal"));
}

TEST_F(ImportRows, ASweepThatWasRunHereTakesNone) {
  store_.reset();
  start(1);
  brought_.name = "s";
  const auto refused = store_->import_rows(brought_, std::vector{row(1, Outcome::kOk, 1)});
  EXPECT_THAT(error_in(refused), IsError(ErrorKind::kRefused, "s"));
  EXPECT_EQ(count("attempt"), 0);
}

TEST_F(ImportRows, AFullDiskLeavesNothingHalfWritten) {
  store_.reset();
  StoreDependencies tight = quick();
  tight.most_pages = 60;
  store_ = open(tight);
  std::vector<ImportedRow> rows;
  for (i64 i = 1; i <= 5000; ++i) rows.push_back(row(i, Outcome::kOk, 1));
  EXPECT_FALSE(store_->import_rows(brought_, rows));
  EXPECT_EQ(count("sweep"), 0);
  EXPECT_EQ(count("trial"), 0);
}

}  // namespace
}  // namespace sweep::store
