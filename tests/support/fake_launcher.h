// FakeLauncher: a Launcher with no process behind it. A script decides, attempt by attempt, what its outbox
// says.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "orchestrator/launch/launcher.h"
#include "schema/codec.h"
#include "schema/spool.h"

namespace sweep::testing {

// What becomes of one attempt.
enum class Fate { kOk, kOom, kCrash, kHold /* says nothing, for good */, kLoseAllocation, kRefusePost };

class FakeLauncher : public launch::Launcher {
 public:
  using Script = std::function<Fate(const Attempt&)>;

  FakeLauncher(boost::asio::io_context& io, Sink sink, Script script, std::size_t chunk = 0)
      : io_(io), sink_(std::move(sink)), script_(std::move(script)), chunk_(chunk) {}

  Expected<void> request(const launch::AllocationRequest& r) override {
    ++allocations;
    id_ = r.id;
    bytes_.clear();
    sent_ = 0;
    seq_ = 0;
    alive_ = true;
    boost::asio::post(io_, [this, id = r.id] { sink_(launch::Started{id, "fake", 1}); });
    return {};
  }
  Expected<i64> post_attempt(const launch::AllocationId&, const Attempt& attempt) override {
    posted.push_back(attempt.trial_id);
    const Fate fate = script_(attempt);
    if (fate == Fate::kRefusePost) return fail("inbox.jsonl: No space left on device");
    boost::asio::post(io_, [this, attempt, fate] { play(attempt, fate); });
    return ++seq_;
  }
  Expected<void> post_cancel(const launch::AllocationId&, i64) override { return {}; }
  Expected<void> finish(const launch::AllocationId& id, bool now) override {
    finished_now = now;
    boost::asio::post(io_, [this, id] { end(id, "finished", false); });
    return {};
  }
  void kill(const launch::AllocationId& id) override {
    boost::asio::post(io_, [this, id] { end(id, "killed", true); });
  }
  void acknowledge(const launch::AllocationId&, std::uint64_t offset) override { acknowledged_ = offset; }

  int allocations = 0;
  bool finished_now = false;
  std::vector<std::string> posted;

 private:
  void play(const Attempt& attempt, Fate fate) {
    if (!alive_ || fate == Fate::kHold) return;
    if (fate == Fate::kLoseAllocation) return end(id_, "the agent was killed by signal 9", true);
    RankRecord record;
    record.attempt = attempt.id;
    record.outcome = fate == Fate::kOk ? Outcome::kOk : fate == Fate::kOom ? Outcome::kOom : Outcome::kCrash;
    if (fate == Fate::kOom) record.oom_kind = OomKind::kDevice;
    record.phase = fate == Fate::kOk ? "done" : "step";
    record.message = fate == Fate::kOk ? "" : "scripted";
    for (i64 step = 0; step < attempt.measure.warmup_steps + attempt.measure.steps; ++step)
      record.samples.push_back({0, step, step < attempt.measure.warmup_steps, 1000000, 400000, 500000, 100000,
                                std::nullopt, 128, 5.0 - 0.1 * static_cast<double>(step), 0});
    RankExit exit;
    exit.attempt = attempt.id;
    exit.exit_code = 0;
    AttemptEnd last;
    last.attempt = attempt.id;
    last.cause = fate == Fate::kOk ? "done" : "rank_failed";
    say(spool::kRankRecord, to_json(record));
    say(spool::kRankExit, to_json(exit));
    say(spool::kAttemptEnd, to_json(last));
    deliver();
  }

  void say(std::string_view kind, const nlohmann::json& body) {
    bytes_ += spool::frame({id_, 1, ++lines_, std::string(kind), body});
  }

  // Hands over what is new since the last delivery, from the acknowledged offset on, in torn pieces if asked.
  void deliver() {
    while (alive_ && sent_ < bytes_.size()) {
      sent_ = chunk_ == 0 ? bytes_.size() : std::min(bytes_.size(), sent_ + chunk_);
      const std::uint64_t from = acknowledged_;
      sink_(launch::Outbox{id_, from, bytes_.substr(from, sent_ - from)});
    }
  }

  void end(const std::string& id, const std::string& reason, bool lost) {
    if (!alive_ || id != id_) return;
    alive_ = false;
    acknowledged_ = 0;
    sink_(launch::Ended{id, reason, lost});
  }

  boost::asio::io_context& io_;
  Sink sink_;
  Script script_;
  std::size_t chunk_;
  std::string id_, bytes_;
  std::size_t sent_ = 0;
  std::uint64_t acknowledged_ = 0;
  i64 seq_ = 0, lines_ = 0;
  bool alive_ = false;
};

}  // namespace sweep::testing
