// LocalFixture: a spool in a temporary folder, the real local launcher and agent, fake ranks; collects what
// the outbox says. After every test it asserts that nothing of the allocation is left on the machine.
#pragma once
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files.h"
#include "orchestrator/launch/local/local.h"
#include "runtime/attempt_token.h"
#include "schema/codec.h"
#include "schema/spool.h"
#include "tests/support/temporary_folder.h"

namespace sweep::launch {

class LocalFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(spool_);
    options_.agent = std::filesystem::path(SWEEP_BIN_DIR) / "sweep-agent";
    options_.rank = std::filesystem::path(SWEEP_BIN_DIR) / "fake_rank";
  }
  void TearDown() override {
    launcher_.reset();
    EXPECT_TRUE(nothing_left());
    if (HasFailure())
      std::fprintf(stderr, "agent.log:\n%s\n", files::read(spool::agent_log(spool_)).value_or("").c_str());
  }

  std::string key() const { return allocation_key("local-1", spool_); }
  ::testing::AssertionResult nothing_left() const {
    for (const auto& process : marked_processes(key()))
      return ::testing::AssertionFailure() << "process " << process.pid << " (" << process.command
                                           << ") of attempt " << process.attempt << " is left";
    if (std::filesystem::exists(rendezvous_root(key(), 1)))
      return ::testing::AssertionFailure() << rendezvous_root(key(), 1) << " is left";
    return ::testing::AssertionSuccess();
  }

  void begin(i64 slots = 4) {
    launcher_ = make_local(io_, options_, [this](const Event& event) { on_event(event); });
    AllocationRequest wanted;
    wanted.id = "local-1";
    wanted.spool = spool_;
    wanted.slots = slots;
    const auto requested = launcher_->request(wanted);
    ASSERT_TRUE(requested) << requested.error().message;
  }
  void on_event(const Event& event) {
    EXPECT_FALSE(ended_) << "an event after Ended";
    if (const auto* started = std::get_if<Started>(&event)) agent_pid_ = started->pid;
    if (const auto* ended = std::get_if<Ended>(&event)) ended_ = *ended;
    if (const auto* outbox = std::get_if<Outbox>(&event)) {
      const auto parsed = spool::parse(outbox->bytes);
      EXPECT_TRUE(parsed.damage.empty());
      for (const auto& line : parsed.lines) lines_.push_back(line);
      launcher_->acknowledge("local-1", outbox->offset + parsed.consumed);
    }
  }

  // A trial of dp ranks whose fake ranks follow the script (tests/support/fake_trial.h).
  static Attempt attempt(i64 id, i64 dp, const nlohmann::json& script) {
    Attempt out;
    out.id = id;
    out.trial.dp = dp;
    out.trial.labels = nlohmann::json{{"fake", script}}.dump();
    out.trial_id = trial_id(out.trial);
    out.deadlines = {300, 300, 300, 900, 0.3};  // a test that waits for one of them sets it
    out.measure = {1, 4, 1};
    return out;
  }
  void post(const Attempt& wanted) {
    const auto posted = launcher_->post_attempt("local-1", wanted);
    ASSERT_TRUE(posted) << posted.error().message;
  }
  template <class Done>
  ::testing::AssertionResult run_until(Done&& done, double seconds = 300) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (!done()) {
      if (std::chrono::steady_clock::now() > limit) return ::testing::AssertionFailure() << "waited too long";
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(20));
    }
    return ::testing::AssertionSuccess();
  }
  ::testing::AssertionResult run_until_ended_by(const std::string& reason) {
    if (auto waited = run_until([&] { return ended_.has_value(); }); !waited) return waited;
    if (ended_->reason != reason) return ::testing::AssertionFailure() << "ended as: " << ended_->reason;
    return ::testing::AssertionSuccess();
  }

  std::vector<nlohmann::json> said(std::string_view kind, i64 attempt = 0) const {
    std::vector<nlohmann::json> out;
    for (const auto& line : lines_)
      if (line.kind == kind && (attempt == 0 || line.body["attempt"] == attempt)) out.push_back(line.body);
    return out;
  }
  bool has_ended(i64 attempt) const { return !said(spool::kAttemptEnd, attempt).empty(); }
  bool has_started(i64 attempt) const { return !said(spool::kStarted, attempt).empty(); }
  AttemptEnd end_of(i64 attempt) const {
    const auto ends = said(spool::kAttemptEnd, attempt);
    EXPECT_EQ(ends.size(), 1u);
    return ends.empty() ? AttemptEnd{} : *from_json<AttemptEnd>(ends[0]);
  }
  std::vector<RankExit> exits_of(i64 attempt) const {
    std::vector<RankExit> out;
    for (const auto& body : said(spool::kRankExit, attempt)) out.push_back(*from_json<RankExit>(body));
    return out;
  }
  std::vector<RankRecord> records_of(i64 attempt) const {
    std::vector<RankRecord> out;
    for (const auto& body : said(spool::kRankRecord, attempt)) out.push_back(*from_json<RankRecord>(body));
    return out;
  }
  std::vector<pid_t> pids_of(i64 attempt) const {
    std::vector<pid_t> out;
    for (const auto& process : marked_processes(key()))
      if (process.attempt == attempt) out.push_back(process.pid);
    return out;
  }
  // Posts one attempt, lets the allocation finish and waits for its end.
  void run_one(const Attempt& wanted) {
    begin();
    post(wanted);
    ASSERT_TRUE(launcher_->finish("local-1", false));
    ASSERT_TRUE(run_until_ended_by("finished"));
    ASSERT_FALSE(ended_->lost);
  }

  const TemporaryFolder home_;
  const std::filesystem::path spool_ = home_ / "local-1";
  LocalOptions options_;
  boost::asio::io_context io_;
  std::unique_ptr<Launcher> launcher_;
  std::vector<spool::Line> lines_;
  std::optional<Ended> ended_;
  i64 agent_pid_ = 0;
};

}  // namespace sweep::launch
