// Ingest counts every record exactly once, whatever comes.
#include <cmath>
#include <nlohmann/json.hpp>

#include "store_fixture.h"

namespace sweep::store {
namespace {

class IngestRowsTest : public StoreTest {
 protected:
  i64 count(const std::string& table) {
    return std::get<i64>(must(store_->query("SELECT count(*) FROM " + table)).rows[0][0]);
  }
};

TEST_F(IngestRowsTest, ABatchAppliedTwiceCountsOnce) {
  start(1);
  const Attempt attempt = begin(plan_[0]);
  IngestBatch batch;
  batch.allocation = allocation_, batch.new_offset = 50;
  batch.rank_records = {record(attempt, 0), record(attempt, 1)};
  must(store_->ingest(batch));
  batch.rank_records[0].samples.clear();
  must(store_->ingest(batch));  // same offset: not looked at
  EXPECT_EQ(count("step_sample"), 4);
  batch.new_offset = 40;
  must(store_->ingest(batch));
  EXPECT_EQ(must(store_->open_allocations(sweep_))[0].offset, 50u);
}

TEST_F(IngestRowsTest, ASecondCopyOfARecordReplacesTheFirst) {
  start(1);
  const Attempt attempt = begin(plan_[0]);
  IngestBatch batch;
  batch.allocation = allocation_, batch.new_offset = 50;
  batch.rank_records = {record(attempt, 0, 5), record(attempt, 0, 2)};
  must(store_->ingest(batch));
  EXPECT_EQ(count("rank_record"), 1);
  EXPECT_EQ(count("step_sample"), 2);
}

TEST_F(IngestRowsTest, RecordsComeBackAsTheyWere) {
  start(1);
  const Attempt attempt = begin(plan_[0]);
  IngestBatch batch;
  batch.allocation = allocation_, batch.new_offset = 50;
  RankRecord told = record(attempt, 1);
  told.samples[1].loss = std::nan("");
  told.samples[0].exposed_comm_ns = 4, told.samples[1].data_ns = 9;
  told.outcome = Outcome::kOom, told.oom_kind = OomKind::kDevice, told.oom_asked_bytes = 512,
  told.message = "caf\xc3\xa9";
  told.sent = {{"dp", 3, 7000}}, told.expert_load = 1.5, told.skipped_steps = 1, told.loss_scale = 32768;
  RankExit exit;
  exit.attempt = attempt.id, exit.rank = 0, exit.signal = 9, exit.killed_by_agent = true,
  exit.log_tail = "last words";
  AttemptEnd end;
  end.attempt = attempt.id, end.cause = EndCause::kRankFailed, end.clean = false,
  end.cleanup_failure = "pid 7", end.util_mean = 50.5;
  batch.rank_records = {told}, batch.rank_exits = {exit}, batch.ends = {end};
  must(store_->ingest(batch));
  store_ = open();
  const StoredRecords got = must(store_->records_of(attempt.id));
  ASSERT_EQ(got.records.size(), 1u);
  EXPECT_EQ(dump(to_json(got.records[0])), dump(to_json(told)));
  ASSERT_EQ(got.exits.size(), 1u);
  EXPECT_EQ(dump(to_json(got.exits[0])), dump(to_json(exit)));
  ASSERT_TRUE(got.end);
  EXPECT_EQ(dump(to_json(*got.end)), dump(to_json(end)));
}

TEST_F(IngestRowsTest, RecordsOfUnknownAttemptsAndRanksAreLeftOutAndNoted) {
  start(1);
  const Attempt attempt = begin(plan_[0]);
  Attempt ghost = attempt;
  ghost.id = 4711;
  IngestBatch batch;
  batch.allocation = allocation_, batch.new_offset = 50;
  batch.rank_records = {record(attempt, 0), record(attempt, 2), record(attempt, -1), record(ghost, 0)};
  batch.results = {verdict(ghost, Outcome::kOk)};
  must(store_->ingest(batch));
  EXPECT_EQ(count("rank_record"), 1);
  EXPECT_EQ(count("result"), 0);
  const auto events = must(store_->events(sweep_, 10));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::kStrayRecords);
}

TEST_F(IngestRowsTest, AnAllocationCannotReportAttemptsOfAnother) {
  start(1);
  const Attempt attempt = begin(plan_[0]);
  const auto other = must(store_->create_allocation(sweep_, "local", dir_));
  IngestBatch batch;
  batch.allocation = other.id, batch.new_offset = 5;
  batch.results = {verdict(attempt, Outcome::kOk)};
  must(store_->ingest(batch));
  EXPECT_EQ(count("result"), 0);
}

TEST_F(IngestRowsTest, AbsurdNumbersAreStoredOrRefusedButNeverWrong) {
  start(1);
  const Attempt attempt = begin(plan_[0]);
  RankRecord wild = record(attempt, 0);
  wild.peak_allocated_bytes = std::numeric_limits<i64>::max();
  wild.ended_unix_ns = std::numeric_limits<i64>::min();
  wild.samples[0].loss = std::numeric_limits<double>::infinity();
  wild.message = std::string("\xff\xfe\0x", 4);
  IngestBatch batch;
  batch.allocation = allocation_, batch.new_offset = std::uint64_t{1} << 63;
  batch.rank_records = {wild};
  EXPECT_FALSE(store_->ingest(batch));
  batch.new_offset = 7;
  must(store_->ingest(batch));
  const auto got = must(store_->records_of(attempt.id)).records.at(0);
  EXPECT_EQ(got.peak_allocated_bytes, wild.peak_allocated_bytes);
  EXPECT_EQ(got.message, wild.message);
  EXPECT_TRUE(std::isnan(got.samples[0].loss));
}

TEST_F(IngestRowsTest, AnUnknownAllocationIsAnError) {
  start(1);
  IngestBatch batch;
  batch.allocation = "nowhere", batch.new_offset = 5;
  EXPECT_THAT(error_in(store_->ingest(batch)), IsError(ErrorKind::kNotFound, "nowhere"));
}

TEST_F(IngestRowsTest, AStartMakesATrialRunning) {
  start(1);
  const Attempt attempt = begin(plan_[0]);
  EXPECT_EQ(must(store_->progress(sweep_)).pending, 1);
  IngestBatch batch;
  batch.allocation = allocation_, batch.new_offset = 5, batch.started = {{attempt.id, 3}};
  NodeRecord node;
  node.host = "n1";
  batch.nodes = {node};
  must(store_->ingest(batch));
  EXPECT_EQ(must(store_->progress(sweep_)).running, 1);
  EXPECT_EQ(must(store_->attempts(sweep_, plan_[0].id)).at(0).state, State::kRunning);
  EXPECT_EQ(count("environment"), 1);
}

}  // namespace
}  // namespace sweep::store
