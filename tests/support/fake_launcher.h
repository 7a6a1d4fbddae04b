// FakeLauncher: a Launcher with no process behind it. A script decides, attempt by attempt, what its outbox
// says.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/launch/launcher.h"
#include "schema/codec.h"
#include "schema/spool.h"

namespace sweep::testing {

// Hosts given by name, as over ssh; an allocation takes the first free ones, and one with a dead one is lost
// by it.
struct NamedHosts {
  std::vector<std::pair<std::string, std::string>> all;  // name, hardware
  std::set<std::string> dead;
  std::vector<std::vector<std::string>> asked;  // one list for every allocation
  std::map<std::string, NodeFacts> facts{};     // facts that its agent reports; other nodes report nothing
  std::set<std::string> broken{};               // each attempt crashes there before its first step

  NodeFacts facts_of(const std::string& host) const {
    const auto found = facts.find(host);
    return found == facts.end() ? NodeFacts() : found->second;
  }
};

// The fate of one attempt.
enum class FakeOutcome {
  kOk,
  kOom,
  kCrash,
  kUnclean,   // ends badly and leaves a process behind
  kHold,      // never answers
  kGiveBack,  // cancelled by an agent that is leaving
  kLoseAllocation,
  kPreempt,
  kRefusePost
};

class FakeLauncher : public launch::Launcher {
 public:
  using Script = std::function<FakeOutcome(const Attempt&)>;

  FakeLauncher(boost::asio::io_context& io, Sink sink, Script script, std::size_t chunk = 0)
      : io_(io), sink_(std::move(sink)), script_(std::move(script)), chunk_(chunk) {}

  Expected<void> request(const launch::AllocationRequest& r) override {
    if (requests_seen != nullptr) requests_seen->push_back(r);
    begin(r);
    return {};
  }
  std::optional<launch::Room> room(const std::string& hardware,
                                   const std::vector<std::string>& avoid) const override {
    if (named == nullptr) return std::nullopt;
    return launch::Room{static_cast<i64>(free_hosts(hardware, avoid, false).size()),
                        static_cast<i64>(free_hosts(hardware, avoid, true).size())};
  }
  // Takes over what `adoptable` names, as it was asked for then.
  Expected<std::optional<launch::AllocationRequest>> adopt(const launch::AllocationId& id,
                                                           const std::filesystem::path& spool,
                                                           i64 incarnation, std::uint64_t offset) override {
    const auto known = adoptable.find(id);
    if (known == adoptable.end()) return std::optional<launch::AllocationRequest>();
    auto r = known->second;
    r.id = id, r.spool = spool, r.incarnation = incarnation, r.outbox_offset = offset;
    begin(r);
    return std::optional(r);
  }
  Expected<i64> post_attempt(const launch::AllocationId& id, const Attempt& attempt) override {
    if (where_seen != nullptr) (*where_seen)[attempt.trial_id] = id;
    const FakeOutcome planned = script_(attempt);
    if (planned == FakeOutcome::kRefusePost) return fail("inbox.jsonl: No space left on device");
    boost::asio::post(io_, [this, id, attempt, planned] { play(held_[id], attempt, planned); });
    return ++seq_;
  }
  Expected<void> finish(const launch::AllocationId& id, bool now) override {
    if (told_seen != nullptr) told_seen->push_back(now ? "finish now" : "finish");
    if (when_told) when_told();
    if (never_ends || (waits_for_attempts && !now)) return {};
    if (queued_.contains(id)) {
      boost::asio::post(io_, [this, id] { end(held_[id], "CANCELLED", false, true); });
      return {};
    }
    boost::asio::post(io_, [this, id] { end(held_[id], "finished", false, false); });
    return {};
  }
  void kill(const launch::AllocationId& id) override {
    if (told_seen != nullptr) told_seen->push_back("kill");
    if (never_ends) return when_told ? when_told() : void();
    boost::asio::post(io_, [this, id] { end(held_[id], "killed", true, false); });
  }
  void acknowledge(const launch::AllocationId& id, std::uint64_t offset) override {
    held_[id].acknowledged = offset;
  }

  // Records for a test, written as it happens: the launcher does not outlive the run.
  std::vector<launch::AllocationRequest>* requests_seen = nullptr;
  std::map<std::string, launch::AllocationId>* where_seen = nullptr;  // trial -> allocation
  std::vector<std::string>* told_seen = nullptr;                      // allocations that were told to end
  std::map<launch::AllocationId, launch::AllocationRequest> adoptable;
  std::function<void()> when_told;
  std::function<bool(const launch::AllocationRequest&)> stays_queued;  // it never starts
  bool never_ends = false;                                             // whatever an allocation is told
  bool waits_for_attempts = false;  // each allocation waits for its one attempt, even if it is told to end
  NamedHosts* named = nullptr;
  std::optional<double> seconds_left;  // time left of each allocation when it starts

 private:
  struct Held {
    std::string id, bytes;
    std::size_t sent = 0;
    std::uint64_t acknowledged = 0;
    i64 lines = 0;
    bool alive = false;
    std::vector<std::string> hosts{};
  };

  std::vector<std::string> free_hosts(const std::string& hardware, const std::vector<std::string>& avoid,
                                      bool taken_too) const {
    std::vector<std::string> out;
    for (const auto& [name, of] : named->all) {
      bool taken = of != hardware || std::count(avoid.begin(), avoid.end(), name) > 0;
      for (const auto& [id, held] : held_)
        taken =
            taken || (!taken_too && held.alive && std::count(held.hosts.begin(), held.hosts.end(), name) > 0);
      if (!taken) out.push_back(name);
    }
    return out;
  }

  // Every agent says another name of its host than the one it was given by.
  void begin_named(const launch::AllocationRequest& r) {
    auto hosts = free_hosts(r.hardware, r.avoid, false);
    ASSERT_LE(static_cast<std::size_t>(r.nodes), hosts.size()) << "more hosts are asked for than are free";
    hosts.resize(static_cast<std::size_t>(r.nodes));
    named->asked.push_back(hosts);
    held_[r.id] = {r.id, {}, 0, 0, 0, true, hosts};
    for (const auto& host : hosts)
      if (named->dead.count(host) > 0)
        return boost::asio::post(
            io_, [this, id = r.id, host] { end(held_[id], host + ": refused", true, false, host); });
    boost::asio::post(io_, [this, id = r.id, hosts] {
      sink_(launch::Started{id, "fake", 1, std::nullopt, 0, hosts});
      for (std::size_t node = 0; node < hosts.size(); ++node)
        say(held_[id], spool::kNode,
            to_json(NodeRecord{static_cast<i64>(node), "box", named->facts_of(hosts[node])}));
      deliver(held_[id]);
    });
  }

  void begin(const launch::AllocationRequest& r) {
    if (named != nullptr) return begin_named(r);
    held_[r.id] = {r.id, {}, 0, 0, 0, true};
    if (stays_queued && stays_queued(r)) return void(queued_.insert(r.id));
    boost::asio::post(io_, [this, id = r.id] { sink_(launch::Started{id, "fake", 1, seconds_left}); });
  }

  void play(Held& held, const Attempt& attempt, FakeOutcome planned) {
    if (!held.alive || planned == FakeOutcome::kHold) return;
    if (planned == FakeOutcome::kLoseAllocation)
      return end(held, "the agent was killed by signal 9", true, false);
    if (planned == FakeOutcome::kPreempt) return end(held, "PREEMPTED", false, true);
    if (planned == FakeOutcome::kGiveBack) return give_back(held, attempt);
    const bool broken = named != nullptr && !held.hosts.empty() && named->broken.contains(held.hosts.front());
    if (broken) planned = FakeOutcome::kCrash;
    RankRecord record;
    record.attempt = attempt.id;
    record.outcome = planned == FakeOutcome::kOk    ? Outcome::kOk
                     : planned == FakeOutcome::kOom ? Outcome::kOom
                                                    : Outcome::kCrash;
    if (planned == FakeOutcome::kOom) record.oom_kind = OomKind::kDevice;
    record.phase = planned == FakeOutcome::kOk ? Phase::kDone : broken ? Phase::kInit : Phase::kStep;
    record.message = planned == FakeOutcome::kOk ? "" : "scripted";
    for (i64 step = 0; step < attempt.measure.warmup_steps + attempt.measure.steps; ++step)
      record.samples.push_back({.step = step,
                                .warmup = step < attempt.measure.warmup_steps,
                                .step_ns = 1000000,
                                .forward_ns = 400000,
                                .backward_ns = 500000,
                                .optimizer_ns = 100000,
                                .tokens = 128,
                                .loss = 5.0 - 0.1 * static_cast<double>(step)});
    RankExit exit;
    exit.attempt = attempt.id;
    exit.exit_code = 0;
    AttemptEnd last;
    last.attempt = attempt.id;
    last.cause = planned == FakeOutcome::kOk ? EndCause::kDone : EndCause::kRankFailed;
    last.clean = planned != FakeOutcome::kUnclean;
    if (planned == FakeOutcome::kUnclean) last.cleanup_failure = "process 7 survived SIGKILL";
    say(held, spool::kRankRecord, to_json(record));
    for (i64 rank = 0; rank < attempt.trial.world(); ++rank) {
      record.rank = exit.rank = rank;
      if (rank > 0) say(held, spool::kRankRecord, to_json(record));
      say(held, spool::kRankExit, to_json(exit));
    }
    say(held, spool::kAttemptEnd, to_json(last));
    deliver(held);
  }

  void give_back(Held& held, const Attempt& attempt) {
    AttemptEnd end;
    end.attempt = attempt.id;
    end.cause = EndCause::kCancelled;
    end.evidence.why = "it is leaving";
    say(held, spool::kAttemptEnd, to_json(end));
    deliver(held);
  }

  void say(Held& held, std::string_view kind, const nlohmann::json& body) {
    held.bytes += spool::frame({held.id, 1, ++held.lines, std::string(kind), body});
  }

  // Hands over what is new since the last delivery, from the acknowledged offset on, in torn pieces if asked.
  void deliver(Held& held) {
    while (held.alive && held.sent < held.bytes.size()) {
      held.sent = chunk_ == 0 ? held.bytes.size() : std::min(held.bytes.size(), held.sent + chunk_);
      const std::uint64_t from = held.acknowledged;
      sink_(launch::Outbox{held.id, from, held.bytes.substr(from, held.sent - from)});
    }
  }

  void end(Held& held, const std::string& reason, bool lost, bool preempted, const std::string& host = {}) {
    if (!held.alive) return;
    held.alive = false;
    const auto id = held.id;
    sink_(launch::Ended{id, reason, lost, preempted, host});
  }

  boost::asio::io_context& io_;
  Sink sink_;
  Script script_;
  std::size_t chunk_;
  std::map<launch::AllocationId, Held> held_;
  std::set<launch::AllocationId> queued_;
  i64 seq_ = 0;
};

}  // namespace sweep::testing
