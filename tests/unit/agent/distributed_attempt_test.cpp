// DistributedAttempt: one attempt of several parts: what is passed on, who is told of trouble, and one end of
// all.
#include "worker/agent/node/distributed_attempt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>

#include "schema/codec.h"
#include "schema/spool.h"
#include "tests/support/filled_records.h"

namespace sweep::agent {
namespace {

using nlohmann::json;

class DistributedAttemptTest : public ::testing::Test {
 protected:
  struct Nodes final : AttemptNodes {
    void send(i64 node, const AgentMessage& message) override { sent.emplace_back(node, message); }
    i64 clock_offset_ns(i64 node) const override { return node * 1000; }
    std::string name(i64 node) const override { return "node " + std::to_string(node); }
    std::vector<std::pair<i64, AgentMessage>> sent;
  };
  struct Outbox final : RecordSink {
    void send(std::string_view kind, json body) override { written.emplace_back(kind, std::move(body)); }
    std::vector<std::pair<std::string, json>> written;
  };
  DistributedAttemptTest() {
    Placement::Placed placed;
    placed.attempt.id = 7;
    placed.attempt.trial.dp = 4;
    placed.attempt.trial.nodes = 2;
    placed.nodes = {1, 3};
    placed.slots = {{0, 1}, {0, 1}};
    attempt_ = std::make_unique<DistributedAttempt>(nodes_, outbox_, std::move(placed),
                                                    [this](DistributedAttempt&) { ++finished_; });
    attempt_->start();
  }
  void say(i64 node, const AgentMessage& message) { attempt_->receive(node, message); }
  // Trust in the nodes after three attempts, each ended by a crash on node 3 in this phase.
  NodeTrust<i64> after_crashes_of_node_3(Phase phase) {
    RankRecord crash;
    crash.attempt = 7, crash.rank = 2, crash.outcome = Outcome::kCrash, crash.phase = phase;
    say(3, crash);
    end_part(3, EndCause::kRankFailed);
    end_part(1, EndCause::kRankFailed);
    NodeTrust<i64> trust;
    for (int i = 0; i < 3; ++i) attempt_->tell(trust);
    return trust;
  }
  void end_part(i64 node, EndCause cause, const json& evidence = nullptr, bool clean = true) {
    AttemptEnd end;
    end.attempt = 7;
    end.cause = cause;
    if (!evidence.is_null()) end.evidence = *from_json<AgentEvidence>(evidence);
    end.clean = clean;
    end.cleanup_failure = clean ? "" : "a survivor";
    end.ended_unix_ns = 50'000 + node;
    say(node, end);
  }
  static RankExit exit_of(i64 rank) {
    RankExit out;
    out.attempt = 7, out.rank = rank, out.ended_unix_ns = 9'000;
    return out;
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
    for (const auto& [node, message] : nodes_.sent) out.emplace_back(node, kind_of(message));
    return out;
  }

  Nodes nodes_;
  Outbox outbox_;
  std::unique_ptr<DistributedAttempt> attempt_;
  int finished_ = 0;
};

TEST_F(DistributedAttemptTest, EveryNodeHearsThatAllHaveStarted) {
  const auto before = told().size();
  say(1, AttemptStarted{7, {11, 12}, 5});
  EXPECT_EQ(told().size(), before) << "one of two";
  say(3, AttemptStarted{7, {31, 32}, 6});
  const auto all = told();
  ASSERT_EQ(all.size(), before + 2);
  EXPECT_EQ(all[before], (std::pair<i64, std::string>(1, "all_started")));
  EXPECT_EQ(all[before + 1], (std::pair<i64, std::string>(3, "all_started")));
}

TEST_F(DistributedAttemptTest, EachNodeGetsItsRanksAndAllHaveToStart) {
  ASSERT_EQ(nodes_.sent.size(), 2u);
  const auto *first = std::get_if<NodePart>(&nodes_.sent[0].second),
             *second = std::get_if<NodePart>(&nodes_.sent[1].second);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->first_rank, 0);
  EXPECT_EQ(second->first_rank, 2);
  EXPECT_FALSE(first->whole);
  say(3, AttemptStarted{7, {30, 31}, 13'000});
  EXPECT_TRUE(written(spool::kStarted).empty());
  say(1, AttemptStarted{7, {10, 11}, 12'000});
  ASSERT_EQ(written(spool::kStarted).size(), 1u);
  EXPECT_EQ(written(spool::kStarted)[0]["pids"], json({10, 11, 30, 31}));
  EXPECT_EQ(written(spool::kStarted)[0]["unix_ns"], 10'000);  // node 3's stamp by the head's clock
}

TEST_F(DistributedAttemptTest, RecordsArePassedOnByTheHeadsClockAndOnlyOfOnesOwnRanks) {
  say(3, exit_of(2));
  say(3, exit_of(1));  // node 1's
  say(2, exit_of(2));  // takes no part
  ASSERT_EQ(written(spool::kRankExit).size(), 1u);
  EXPECT_EQ(written(spool::kRankExit)[0]["ended_unix_ns"], 6'000);
}

TEST_F(DistributedAttemptTest, TroubleOfOneEndsTheOthersAndItsCauseIsTheAttempts) {
  say(3, PartTrouble{7, EndCause::kHang});
  EXPECT_EQ(told().back(), std::pair(i64{1}, std::string("peer_ended")));
  end_part(1, EndCause::kHang, {{"why", "a peer"}, {"ranks", {{{"rank", 0}}}}});
  EXPECT_EQ(finished_, 0);
  end_part(3, EndCause::kHang, {{"why", "rank 3 made no progress"}, {"ranks", {{{"rank", 3}}}}});
  EXPECT_EQ(finished_, 1);
  EXPECT_EQ(closing().cause, EndCause::kHang);
  EXPECT_EQ(closing().evidence.why, "rank 3 made no progress");
  EXPECT_EQ(closing().evidence.ranks.size(), 2u);
}

TEST_F(DistributedAttemptTest, OneThatHasEndedIsNoNeighbour) {
  Placement::Placed other;
  other.nodes = {1}, other.slots = {{0}};
  DistributedAttempt next(nodes_, outbox_, std::move(other), [](DistributedAttempt&) {});
  end_part(1, EndCause::kDone);
  EXPECT_TRUE(attempt_->meet(next)) << "node 3 still runs its part";
  end_part(3, EndCause::kDone);
  EXPECT_FALSE(next.meet(*attempt_));
  EXPECT_EQ(closing().neighbours, 1);
}

TEST_F(DistributedAttemptTest, NoFieldOfThePartsEndsIsLostInTheWholes) {
  Placement::Placed other;
  other.nodes = {1}, other.slots = {{0}};
  DistributedAttempt beside(nodes_, outbox_, std::move(other), [](DistributedAttempt&) {});
  attempt_->meet(beside);
  for (const i64 node : {1, 3}) {
    auto end = sweep::filled::Filler().filled<AttemptEnd>();
    end.attempt = 7, end.evidence.oom_kills = node;
    end.started_unix_ns = end.ended_unix_ns = 90'000 + node;
    say(node, end);
  }
  const auto has_all = [](const auto& record, const json& none) {
    const json whole = to_json(record);
    for_each_field(record, [&](const auto& field, const auto&) {
      ASSERT_TRUE(whole.contains(field.key)) << field.key;
      EXPECT_NE(whole[field.key], none.value(field.key, json())) << field.key;
    });
  };
  has_all(closing(), to_json(AttemptEnd()));
  has_all(closing().evidence, to_json(AgentEvidence()));
  EXPECT_EQ(closing().evidence.oom_kills, 4) << "of both nodes";
  EXPECT_EQ(closing().evidence.unreadable_records.size(), 4u);
}

TEST_F(DistributedAttemptTest, MeasurementsOfTheNodesAreJoinedByTheRuleOfEach) {
  AttemptEnd end;
  end.attempt = 7;
  end.util_mean = 80, end.util_sd = 3, end.power_mean_w = 300, end.throttle = "sw_power_cap+hw_slowdown";
  say(1, end);
  end.util_mean = 90, end.util_sd = 4, end.power_mean_w.reset(),
  end.throttle = "hw_slowdown+sw_thermal_slowdown";
  say(3, end);
  EXPECT_EQ(closing().util_mean, 85);
  EXPECT_DOUBLE_EQ(*closing().util_sd, std::sqrt(12.5));
  EXPECT_EQ(closing().power_mean_w, 300);
  EXPECT_FALSE(closing().sm_clock_mhz);
  EXPECT_EQ(closing().throttle, "sw_power_cap+hw_slowdown+sw_thermal_slowdown");
}

TEST_F(DistributedAttemptTest, GpuErrorsOfEveryNodeAreReportedWithItsName) {
  for (const i64 node : {1, 3}) {
    AttemptEnd end;
    end.attempt = 7, end.cause = EndCause::kDone, end.ended_unix_ns = 50'000;
    end.gpu_errors = {{"as the node says", "GPU-aa", node, 79}};
    say(node, end);
  }
  const auto errors = closing().gpu_errors;
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0], (GpuError{"node 1", "GPU-aa", 1, 79}));
  EXPECT_EQ(errors[1], (GpuError{"node 3", "GPU-aa", 3, 79}));
}

TEST_F(DistributedAttemptTest, TheLoadOfEveryNodeIsReportedWithItsName) {
  for (const i64 node : {1, 3}) {
    AttemptEnd end;
    end.attempt = 7, end.cause = EndCause::kDone, end.ended_unix_ns = 50'000;
    end.load.nodes = {{"", {1, 2}, {90.0 + double(node), 80}, {}, {}}};
    say(node, end);
  }
  const auto nodes = closing().load.nodes;
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0], (NodeLoad{"node 1", {1, 2}, {91, 80}, {}, {}}));
  EXPECT_EQ(nodes[1], (NodeLoad{"node 3", {1, 2}, {93, 80}, {}, {}}));
}

TEST_F(DistributedAttemptTest, ALostNodeIsWaitedForUntilItsRanksAreDeadForSure) {
  attempt_->node_lost(3, "nothing was heard");
  end_part(1, EndCause::kNodeLost);
  EXPECT_EQ(finished_, 0);  // its ranks may still run
  attempt_->part_is_dead(3);
  EXPECT_EQ(finished_, 1);
  EXPECT_EQ(closing().cause, EndCause::kNodeLost);
  EXPECT_EQ(closing().evidence.why, "node 3 was lost: nothing was heard");
}

TEST_F(DistributedAttemptTest, AHangThatFollowedFromALostNodeIsNoHang) {
  end_part(1, EndCause::kHang);
  attempt_->node_lost(3, "nothing was heard");
  attempt_->part_is_dead(3);
  EXPECT_EQ(closing().cause, EndCause::kNodeLost);
  EXPECT_EQ(closing().evidence.why, "node 3 was lost: nothing was heard");
}

TEST_F(DistributedAttemptTest, ANodeLostWhileAnAttemptIsCancelledChangesNothing) {
  attempt_->end(EndCause::kCancelled, false);
  end_part(1, EndCause::kCancelled);
  attempt_->node_lost(3, "nothing was heard");
  attempt_->part_is_dead(3);
  EXPECT_EQ(closing().cause, EndCause::kCancelled);
}

TEST_F(DistributedAttemptTest, AnUncleanNodeOfAnAttemptOfOneIsNamedToo) {
  Placement::Placed placed;
  placed.attempt.id = 7;
  placed.nodes = {3};
  placed.slots = {{0}};
  attempt_ = std::make_unique<DistributedAttempt>(nodes_, outbox_, std::move(placed),
                                                  [this](DistributedAttempt&) { ++finished_; });
  attempt_->start();
  end_part(3, EndCause::kDone, nullptr, false);
  EXPECT_EQ(closing().unclean_nodes, std::vector<i64>{3});
}

TEST_F(DistributedAttemptTest, AnUncleanNodeIsNamed) {
  end_part(1, EndCause::kDone);
  end_part(3, EndCause::kDone, nullptr, false);
  EXPECT_EQ(closing().cause, EndCause::kDone);
  EXPECT_FALSE(closing().clean);
  EXPECT_EQ(closing().cleanup_failure, "node 3: a survivor");
  EXPECT_EQ(closing().unclean_nodes, std::vector<i64>{3});
  EXPECT_EQ(attempt_->unclean_nodes(), std::vector<i64>{3});
}

TEST_F(DistributedAttemptTest, ANodeThatCannotWorkIsNamedAndTheTrialHasNotFailedThere) {
  end_part(3, EndCause::kAgentStopping, {{"why", "its disk is full"}});
  end_part(1, EndCause::kAgentStopping);
  EXPECT_EQ(attempt_->unfit_node(), 3);
  EXPECT_EQ(attempt_->why_unfit(), "its disk is full");
  EXPECT_EQ(closing().evidence.node, 3);
  EXPECT_EQ(closing().evidence.why, "its disk is full");
  NodeTrust<i64> trust;
  attempt_->tell(trust);
  EXPECT_FALSE(trust.failed_on("", 3));
}

TEST_F(DistributedAttemptTest, AnOrderedEndIsNoNodesFault) {
  attempt_->end(EndCause::kAgentStopping, false);
  for (const i64 node : {1, 3}) end_part(node, EndCause::kAgentStopping);
  EXPECT_FALSE(attempt_->unfit_node());
  EXPECT_FALSE(closing().evidence.node);
}

TEST_F(DistributedAttemptTest, ItsEndTellsWhereItFailedAndWhetherThatWasEarly) {
  NodeTrust<i64> trust = after_crashes_of_node_3(Phase::kInit);
  EXPECT_TRUE(trust.failed_on("", 3));
  EXPECT_FALSE(trust.failed_on("", 1));
  trust.ok(0);
  EXPECT_EQ(trust.bad_node(), 3);
}

TEST_F(DistributedAttemptTest, AFailureAfterTheFirstStepIsNotEarly) {
  NodeTrust<i64> trust = after_crashes_of_node_3(Phase::kStep);
  trust.ok(0);
  EXPECT_FALSE(trust.bad_node());
}

TEST_F(DistributedAttemptTest, AGoodEndProvesItsNodes) {
  for (const i64 node : {1, 3}) end_part(node, EndCause::kDone);
  NodeTrust<i64> trust;
  attempt_->tell(trust);
  EXPECT_TRUE(trust.proven(1) && trust.proven(3));
  EXPECT_FALSE(trust.proven(0));
}

TEST_F(DistributedAttemptTest, UnexpectedMessagesAreIgnored) {
  say(1, RankRecord{.attempt = 7, .rank = -1});
  say(1, Leave{"why"});
  say(1, StoreMessage{{7, i64{1} << 40}, {json::object(), ""}});
  EXPECT_TRUE(outbox_.written.empty());
  EXPECT_EQ(finished_, 0);
}

}  // namespace
}  // namespace sweep::agent
