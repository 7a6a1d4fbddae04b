// An orchestrator whose allocations are the next one's: it tells them nothing and stores nothing more.
#include <sqlite3.h>

#include <csignal>

#include "sweep_runner_fixture.h"

namespace sweep::run {
namespace {

class LeavingTest : public SweepRunnerTest {
 protected:
  // Takes the lease like another process.
  void rob() {
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open((dir_ / "r.db").c_str(), &other), SQLITE_OK);
    sqlite3_busy_timeout(other, 5000);
    EXPECT_EQ(sqlite3_exec(other, "UPDATE lease SET token = 'theirs'", nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(other);
  }
  i64 verdicts() {
    const auto table = store_->query("SELECT count(*) FROM result");
    EXPECT_TRUE(table);
    return std::get<i64>(table->rows[0][0]);
  }
};

TEST_F(LeavingTest, ASignalEndsAnOrchestratorThatIsAJobAndNothingElse) {
  plan(4);
  settings_.leave_on_signal = true;
  int handed_out = 0;
  const auto end = run_with([&](const Attempt&) {
    if (++handed_out == 2) ::raise(SIGTERM);
    return handed_out == 1 ? FakeOutcome::kOk : FakeOutcome::kHold;
  });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kLeft);
  EXPECT_TRUE(told_.empty()) << told_.front();
  EXPECT_LE(verdicts(), 1);
  EXPECT_EQ(store_->open_allocations(sweep_)->size(), 1u);
  EXPECT_TRUE(store_->beat(sweep_)) << "the lease is left as it is";
}

TEST_F(LeavingTest, WhoWasReplacedTellsNoAllocationToEnd) {
  plan(4);
  int handed_out = 0;
  const auto end = run_with([&](const Attempt&) {
    if (++handed_out == 2) rob();
    return FakeOutcome::kOk;
  });
  ASSERT_FALSE(end);
  EXPECT_TRUE(store_->lease_lost(sweep_));
  EXPECT_TRUE(told_.empty()) << told_.front();
  EXPECT_EQ(verdicts(), 0);
}

// The new holder runs them: ending what they left behind would end its processes.
TEST_F(LeavingTest, WhoWasReplacedClosesNoAllocation) {
  plan(1);
  const auto end = run_with([&](const Attempt&) {
    rob();
    return FakeOutcome::kLoseAllocation;
  });
  ASSERT_FALSE(end);
  EXPECT_TRUE(store_->lease_lost(sweep_));
  EXPECT_EQ(store_->open_allocations(sweep_)->size(), 1u);
  EXPECT_TRUE(observer_.notes.empty()) << observer_.notes.front();
}

}  // namespace
}  // namespace sweep::run
