// A sweep that is deleted, and a copy of the file.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "store_fixture.h"

namespace sweep::store {
namespace {

using ::testing::ElementsAre;

class Removal : public StoreTest {
 protected:
  i64 count(const std::string& table) {
    const auto rows = must(store_->query("SELECT count(*) FROM " + table, {}));
    return std::get<i64>(rows.rows.at(0).at(0));
  }
  SweepRow row() { return must(store_->find_sweep("s")); }
  void end_run() {
    must(store_->end_allocation(allocation_, "done"));
    must(store_->release_lease(sweep_));
  }
};

TEST_F(Removal, TakesEveryRowOfTheSweepAndLeavesTheOthers) {
  start(3);
  finish(plan_[0], Outcome::kOk, 10);
  finish(plan_[1], Outcome::kOom);
  end_run();
  SweepRow other;
  other.name = "other";
  const i64 kept = must(store_->ensure_sweep(other)).id;
  must(store_->sync_plan(kept, std::vector<PlanEntry>{plan_[0], entry(9)}, {}));
  const auto removed = must(store_->remove_sweep(row()));
  EXPECT_EQ(removed.trials, 3);
  EXPECT_EQ(removed.attempts, 2);
  EXPECT_EQ(removed.spools.size(), 1u);
  for (const char* table : {"attempt", "result", "rank_record", "step_sample", "allocation", "packed"})
    EXPECT_EQ(count(table), 0) << table;
  EXPECT_EQ(count("plan_entry"), 2);
  EXPECT_EQ(count("trial"), 2) << "one that the other sweep shares, and its own";
  EXPECT_THAT(message_of(store_->find_sweep("s")), ::testing::HasSubstr("other"));
  EXPECT_EQ(count("sqlite_master WHERE name = 'loose_entry_gone'"), 1);
}

TEST_F(Removal, IsRefusedWhileSomebodyRunsItOrAllocationsAreOpen) {
  start(1);
  EXPECT_THAT(error_in(store_->remove_sweep(row())), IsError(ErrorKind::kBusy, "s"));
  must(store_->release_lease(sweep_));
  EXPECT_THAT(error_in(store_->remove_sweep(row())), IsError(ErrorKind::kRefused, "s"));
  EXPECT_EQ(count("plan_entry"), 1);
}

TEST_F(Removal, IsRefusedWhileAnotherSweepHasItsAnswers) {
  start(1);
  finish(plan_[0], Outcome::kOk, 10);
  end_run();
  SweepRow other;
  other.name = "other";
  const i64 taker = must(store_->ensure_sweep(other)).id;
  must(store_->sync_plan(taker, plan_, {}));
  sql(
      fmt::format("UPDATE plan_entry SET state = {}, outcome = {}, final_attempt = "
                  "(SELECT final_attempt FROM plan_entry WHERE sweep <> {}) WHERE sweep = {}",
                  static_cast<int>(State::kFinished), static_cast<int>(Outcome::kOk), taker, taker));
  EXPECT_THAT(error_in(store_->remove_sweep(row())), IsError(ErrorKind::kRefused, "s"));
  EXPECT_EQ(count("attempt"), 1);
}

TEST_F(Removal, TheSameGridCanRunAgain) {
  start(2);
  finish(plan_[0], Outcome::kOk, 10);
  end_run();
  must(store_->remove_sweep(row()));
  store_.reset();
  start(2);
  finish(plan_[0], Outcome::kOk, 20);
  EXPECT_THAT(column("tokens_per_s"), ElementsAre(Value(20.0), Value(std::monostate())));
}

TEST_F(Removal, ABackupIsOneFileWithWhatIsCommitted) {
  start(2);
  finish(plan_[0], Outcome::kOk, 10);
  const fs::path copy = dir_ / "copy.db";
  must(must(Store::open(path_, Mode::kReadOnly, quick()))->back_up(copy));
  finish(plan_[1], Outcome::kOk, 20);  // the run goes on
  std::vector<std::string> files;
  for (const auto& file : fs::directory_iterator(dir_))
    if (file.path().filename().string().starts_with("copy")) files.push_back(file.path().filename());
  EXPECT_THAT(files, ElementsAre("copy.db"));
  auto read = must(Store::open(copy, Mode::kReadOnly, quick()));
  const auto rows = must(read->query("SELECT tokens_per_s FROM results WHERE outcome = 'ok'", {}));
  ASSERT_EQ(rows.rows.size(), 1u);
  EXPECT_EQ(std::get<double>(rows.rows[0][0]), 10.0);
  EXPECT_THAT(error_in(store_->back_up(copy)), IsError(ErrorKind::kConflict, copy.string()));
  const fs::path nowhere = dir_ / "nowhere" / "copy.db";
  EXPECT_THAT(error_in(store_->back_up(nowhere)), IsError(ErrorKind::kUnwritable, nowhere.string()));
}

TEST_F(Removal, ADamagedFileHasNoBackup) {
  start(2);
  finish(plan_[0], Outcome::kOk, 10);
  end_run();
  store_.reset();
  damage(path_);
  const fs::path copy = dir_ / "copy.db";
  const auto store = must(Store::open(path_, Mode::kReadOnly, quick()));
  EXPECT_THAT(error_in(store->back_up(copy)), IsError(ErrorKind::kUnreadable, path_.string()));
  EXPECT_FALSE(fs::exists(copy)) << "a backup that is older and whole may have this name in a script";
}

}  // namespace
}  // namespace sweep::store
