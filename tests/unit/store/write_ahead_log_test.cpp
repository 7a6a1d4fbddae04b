// One file means one file: a copy of it alone holds every result, whoever else has it open.
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/store/opening.h"
#include "store_fixture.h"

namespace sweep::store {
namespace {

class LogTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    log_ = path_.string() + "-wal";
  }
  StoreDependencies telling() {
    StoreDependencies dependencies = quick();
    dependencies.warn = [this](const std::string& sentence) { warnings_.push_back(sentence); };
    return dependencies;
  }
  // The number of results in a copy of the file alone.
  i64 results_in_a_copy() {
    const fs::path copy = dir_ / "copy.db";
    fs::copy_file(path_, copy, fs::copy_options::overwrite_existing);
    auto store = must(Store::open(copy, Mode::kReadOnly, quick()));
    return std::get<i64>(must(store->query("SELECT count(*) FROM results WHERE outcome = 'ok'")).rows[0][0]);
  }
  // A file whose five results are in its log, and no process that has it open.
  void leave_by_a_kill() {
    start(5);
    must(store_->release_lease(sweep_));
    store_.reset();
    const pid_t child = ::fork();
    if (child == 0) {
      store_ = open();
      if (must(store_->take_lease(sweep_))) ::_exit(1);
      for (const auto& each : plan_) finish(each, Outcome::kOk, 100);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
    ASSERT_GT(fs::file_size(log_), 0u);
  }
  fs::path log_;
  std::vector<std::string> warnings_;
};

TEST_F(LogTest, ACopyHoldsEveryResultWhileAReaderIsAttached) {
  start(3);
  auto reader = open(quick(), Mode::kReadOnly);
  must(reader->progress(sweep_));
  must(reader->query("SELECT count(*) FROM results"));  // its second connection
  for (const auto& each : plan_) finish(each, Outcome::kOk, 100);
  EXPECT_EQ(must(reader->progress(sweep_)).by_outcome.size(), 1u);
  must(store_->release_lease(sweep_));
  store_.reset();
  EXPECT_EQ(results_in_a_copy(), 3);
  EXPECT_EQ(fs::file_size(log_), 0u);
  reader.reset();
  EXPECT_FALSE(fs::exists(log_)) << "the last one to leave removes it";
}

TEST_F(LogTest, AReaderInTheMiddleOfItsAnswerIsNamedAndTheLastReaderFoldsTheLog) {
  start(3);
  store_.reset();
  sql("DELETE FROM lease");
  auto reader = must(Db::open(path_.string(), SQLITE_OPEN_READONLY, 1000, path_));
  must(reader->execute("BEGIN; SELECT count(*) FROM trial"));
  store_ = open(telling());
  ASSERT_FALSE(must(store_->take_lease(sweep_)));
  for (const auto& each : plan_) finish(each, Outcome::kOk, 100);
  store_.reset();
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find(log_.string()), std::string::npos) << warnings_[0];
  EXPECT_LT(results_in_a_copy(), 3);
  must(reader->execute("COMMIT"));
  reader.reset();
  open(quick(), Mode::kReadOnly);
  EXPECT_EQ(results_in_a_copy(), 3);
}

TEST_F(LogTest, AReaderFoldsWhatAKilledRunLeft) {
  leave_by_a_kill();
  open(quick(), Mode::kReadOnly);
  EXPECT_FALSE(fs::exists(log_));
  EXPECT_EQ(results_in_a_copy(), 5);
}

TEST_F(LogTest, AReaderThatLeavesDoesNotDisturbAWriter) {
  start(2);
  finish(plan_[0], Outcome::kOk, 100);
  open(quick(), Mode::kReadOnly);
  EXPECT_TRUE(fs::exists(log_));
  finish(plan_[1], Outcome::kOk, 100);
  store_.reset();
  EXPECT_EQ(results_in_a_copy(), 2);
}

TEST_F(LogTest, WhoMayNotWriteReadsAndLeavesTheLogAlone) {
  leave_by_a_kill();
  ASSERT_EQ(::chmod(path_.c_str(), 0444), 0);
  const auto before = fs::file_size(log_);
  ::chmod((path_.string() + "-shm").c_str(), 0666), ::chmod(dir_.c_str(), 0755);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::setgid(65534) || ::setuid(65534))) ::_exit(3);
    const bool read = must(open(quick(), Mode::kReadOnly)->progress(sweep_)).pending == 0;
    ::_exit(read ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(fs::file_size(log_), before);
}

}  // namespace
}  // namespace sweep::store
