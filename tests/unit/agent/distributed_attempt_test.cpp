// Spread: one attempt of several parts: what is passed on, who is told of trouble, and one closing word of all.
#include "worker/agent/node/distributed_attempt.h"

#include <gtest/gtest.h>

#include "schema/spool.h"

namespace sweep::agent {
namespace {

using nlohmann::json;

class SpreadTest : public ::testing::Test {
 protected:
  struct Nodes final : AttemptNodes {
    void send(i64 node, const Frame& frame) override { sent.emplace_back(node, frame.head); }
    i64 clock_offset_ns(i64 node) const override { return node * 1000; }
    std::string name(i64 node) const override { return "node " + std::to_string(node); }
    std::vector<std::pair<i64, json>> sent;
  };
  struct Outbox final : RecordSink {
    void send(std::string_view kind, json body) override { written.emplace_back(kind, std::move(body)); }
    std::vector<std::pair<std::string, json>> written;
  };
  SpreadTest() {
    Placement::Placed placed;
    placed.attempt.id = 7;
    placed.attempt.trial.dp = 4;
    placed.attempt.trial.nodes = 2;
    placed.nodes = {1, 3};
    placed.slots = {{0, 1}, {0, 1}};
    spread_ = std::make_unique<DistributedAttempt>(nodes_, outbox_, std::move(placed),
                                                   [this](DistributedAttempt&) { ++finished_; });
    spread_->start();
  }
  void say(i64 node, std::string_view kind, json body) {
    body["attempt"] = 7;
    spread_->hear(node, {{{"kind", kind}, {"body", std::move(body)}}, ""});
  }
  void end_part(i64 node, EndCause cause, const json& evidence = nullptr, bool clean = true) {
    AttemptEnd end;
    end.attempt = 7;
    end.cause = cause;
    if (!evidence.is_null()) end.evidence = evidence.dump();
    end.clean = clean;
    end.cleanup_failure = clean ? "" : "a survivor";
    end.ended_unix_ns = 50'000 + node;
    say(node, spool::kAttemptEnd, sweep::to_json(end));
  }
  std::vector<json> written(std::string_view kind) const {
    std::vector<json> out;
    for (const auto& [each, body] : outbox_.written)
      if (each == kind) out.push_back(body);
    return out;
  }
  AttemptEnd closing() const {
    const auto ends = written(spool::kAttemptEnd);
    EXPECT_EQ(ends.size(), 1u);
    return ends.empty() ? AttemptEnd{} : *from_json<AttemptEnd>(ends[0]);
  }
  std::vector<std::pair<i64, std::string>> told() const {
    std::vector<std::pair<i64, std::string>> out;
    for (const auto& [node, head] : nodes_.sent) out.emplace_back(node, text_of(head, "kind"));
    return out;
  }

  Nodes nodes_;
  Outbox outbox_;
  std::unique_ptr<DistributedAttempt> spread_;
  int finished_ = 0;
};

TEST_F(SpreadTest, EveryNodeHearsThatAllHaveStarted) {
  const auto before = told().size();
  say(1, spool::kStarted, {{"pids", {11, 12}}, {"unix_ns", 5}});
  EXPECT_EQ(told().size(), before) << "one of two";
  say(3, spool::kStarted, {{"pids", {31, 32}}, {"unix_ns", 6}});
  const auto all = told();
  ASSERT_EQ(all.size(), before + 2);
  EXPECT_EQ(all[before], (std::pair<i64, std::string>(1, kAllStarted)));
  EXPECT_EQ(all[before + 1], (std::pair<i64, std::string>(3, kAllStarted)));
}

TEST_F(SpreadTest, EachNodeGetsItsRanksAndAllHaveToStart) {
  ASSERT_EQ(nodes_.sent.size(), 2u);
  const auto first = part_from(nodes_.sent[0].second["body"]),
             second = part_from(nodes_.sent[1].second["body"]);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->first_rank, 0);
  EXPECT_EQ(second->first_rank, 2);
  EXPECT_FALSE(first->whole);
  say(3, spool::kStarted, {{"pids", {30, 31}}, {"unix_ns", 13'000}});
  EXPECT_TRUE(written(spool::kStarted).empty());
  say(1, spool::kStarted, {{"pids", {10, 11}}, {"unix_ns", 12'000}});
  ASSERT_EQ(written(spool::kStarted).size(), 1u);
  EXPECT_EQ(written(spool::kStarted)[0]["pids"], json({10, 11, 30, 31}));
  EXPECT_EQ(written(spool::kStarted)[0]["unix_ns"], 10'000);  // node 3's stamp by the head's clock
}

TEST_F(SpreadTest, RecordsArePassedOnByTheHeadsClockAndOnlyOfOnesOwnRanks) {
  say(3, spool::kRankExit, {{"rank", 2}, {"ended_unix_ns", 9'000}});
  say(3, spool::kRankExit, {{"rank", 1}, {"ended_unix_ns", 9'000}});  // node 1's
  say(2, spool::kRankExit, {{"rank", 2}, {"ended_unix_ns", 9'000}});  // takes no part
  ASSERT_EQ(written(spool::kRankExit).size(), 1u);
  EXPECT_EQ(written(spool::kRankExit)[0]["ended_unix_ns"], 6'000);
}

TEST_F(SpreadTest, TroubleOfOneEndsTheOthersAndItsCauseIsTheAttempts) {
  say(3, kTrouble, {{"cause", "hang"}});
  EXPECT_EQ(told().back(), std::pair(i64{1}, std::string(kPeerEnded)));
  end_part(1, EndCause::kHang, {{"why", "a peer"}, {"ranks", {{{"rank", 0}}}}});
  EXPECT_EQ(finished_, 0);
  end_part(3, EndCause::kHang, {{"why", "rank 3 made no progress"}, {"ranks", {{{"rank", 3}}}}});
  EXPECT_EQ(finished_, 1);
  EXPECT_EQ(closing().cause, EndCause::kHang);
  const auto evidence = json::parse(closing().evidence);
  EXPECT_EQ(evidence["why"], "rank 3 made no progress");
  EXPECT_EQ(evidence["ranks"].size(), 2u);
}

TEST_F(SpreadTest, GpuErrorsOfEveryNodeAreToldWithItsName) {
  for (const i64 node : {1, 3}) {
    AttemptEnd end;
    end.attempt = 7, end.cause = EndCause::kDone, end.ended_unix_ns = 50'000;
    end.gpu_errors = {{"as the node says", "GPU-aa", node, 79}};
    say(node, spool::kAttemptEnd, sweep::to_json(end));
  }
  const auto errors = closing().gpu_errors;
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0], (GpuError{"node 1", "GPU-aa", 1, 79}));
  EXPECT_EQ(errors[1], (GpuError{"node 3", "GPU-aa", 3, 79}));
}

TEST_F(SpreadTest, ALostNodeIsWaitedForUntilItsRanksAreDeadForSure) {
  spread_->node_lost(3, "nothing was heard");
  end_part(1, EndCause::kNodeLost);
  EXPECT_EQ(finished_, 0);  // its ranks may still run
  spread_->part_is_dead(3);
  EXPECT_EQ(finished_, 1);
  EXPECT_EQ(closing().cause, EndCause::kNodeLost);
  EXPECT_EQ(json::parse(closing().evidence)["why"], "node 3 was lost: nothing was heard");
}

TEST_F(SpreadTest, AHangThatFollowedFromALostNodeIsNoHang) {
  end_part(1, EndCause::kHang);
  spread_->node_lost(3, "nothing was heard");
  spread_->part_is_dead(3);
  EXPECT_EQ(closing().cause, EndCause::kNodeLost);
  EXPECT_EQ(json::parse(closing().evidence)["why"], "node 3 was lost: nothing was heard");
}

TEST_F(SpreadTest, ANodeLostWhileAnAttemptIsCancelledChangesNothing) {
  spread_->end(EndCause::kCancelled, false);
  end_part(1, EndCause::kCancelled);
  spread_->node_lost(3, "nothing was heard");
  spread_->part_is_dead(3);
  EXPECT_EQ(closing().cause, EndCause::kCancelled);
}

TEST_F(SpreadTest, AnUncleanNodeOfAnAttemptOfOneIsNamedToo) {
  Placement::Placed placed;
  placed.attempt.id = 7;
  placed.nodes = {3};
  placed.slots = {{0}};
  spread_ = std::make_unique<DistributedAttempt>(nodes_, outbox_, std::move(placed),
                                                 [this](DistributedAttempt&) { ++finished_; });
  spread_->start();
  end_part(3, EndCause::kDone, nullptr, false);
  EXPECT_EQ(closing().unclean_nodes, std::vector<i64>{3});
}

TEST_F(SpreadTest, AnUncleanNodeIsNamed) {
  end_part(1, EndCause::kDone);
  end_part(3, EndCause::kDone, nullptr, false);
  EXPECT_EQ(closing().cause, EndCause::kDone);
  EXPECT_FALSE(closing().clean);
  EXPECT_EQ(closing().cleanup_failure, "node 3: a survivor");
  EXPECT_EQ(closing().unclean_nodes, std::vector<i64>{3});
  EXPECT_EQ(spread_->unclean_nodes(), std::vector<i64>{3});
}

TEST_F(SpreadTest, MeaninglessWordsChangeNothing) {
  for (const json& body : {json(1), json("x"), json::array(), json{{"rank", "zero"}}})
    spread_->hear(1, {{{"kind", spool::kRankRecord}, {"body", body}}, ""});
  spread_->hear(1, {{{"kind", 5}, {"body", nullptr}}, ""});
  say(1, kStore, {{"client", -1}, {"message", json::object()}});
  EXPECT_TRUE(outbox_.written.empty() || written(spool::kAttemptEnd).empty());
  EXPECT_EQ(finished_, 0);
}

}  // namespace
}  // namespace sweep::agent
