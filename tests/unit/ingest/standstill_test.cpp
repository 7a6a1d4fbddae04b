// Hangs whose ranks said by their flight recorders who waits for whom.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "orchestrator/ingest/ingest.h"
#include "tests/support/filled_records.h"

namespace sweep::ingest {
namespace {

using ::testing::HasSubstr;

class Standstill : public ::testing::Test {
 protected:
  Standstill() { attempt_.id = 7, attempt_.trial.dp = 4; }
  void end(EndCause cause, const std::string& evidence) {
    AttemptEnd e;
    e.attempt = 7, e.cause = cause, e.evidence = sweep::filled::read_text<AgentEvidence>(evidence),
    e.ended_unix_ns = 1000;
    t_.end = e;
  }
  Result verdict() const { return judge(attempt_, t_); }

  Attempt attempt_;
  AttemptReports t_;
};

// Ranks 0 to 2 wait in an all-reduce that rank 3 has not begun; the agent, which sees hosts run ahead, named
// rank 0.
TEST_F(Standstill, OfAHangTheRankThatDidNotComeIsNamed) {
  nlohmann::json ranks = nlohmann::json::array();
  for (i64 rank = 0; rank < 4; ++rank) {
    nlohmann::json group{
        {"name", "data_0"}, {"group", "dp"}, {"ranks", "0-3"}, {"begun", 47}, {"last", "all_reduce"}};
    if (rank < 3) group["waits_in"] = "all_reduce", group["number"] = 47;
    if (rank == 3) group["begun"] = 46;
    ranks.push_back({{"rank", rank}, {"phase", "step"}, {"flight", nlohmann::json::array({group})}});
  }
  end(EndCause::kHang,
      nlohmann::json{{"why", "rank 0 made no progress"}, {"rank", 0}, {"ranks", ranks}}.dump());
  const Result r = verdict();
  EXPECT_EQ(r.outcome, Outcome::kHang);
  EXPECT_EQ(r.rank, 3);
  EXPECT_THAT(r.reason, HasSubstr("ranks 0-2 wait in all_reduce 47 of group dp; rank 3 has not entered it"));
}

// DeepSpeed's own group under Gloo, whose members the recorder does not tell: rank 1 slept, and rank 0 was blamed.
TEST_F(Standstill, WhereTheMembersAreUnknownThoseThatUsedTheGroupAreLookedAt) {
  nlohmann::json ranks = nlohmann::json::array();
  for (i64 rank = 0; rank < 2; ++rank) {
    nlohmann::json group{
        {"name", "1"}, {"group", "1"}, {"ranks", ""}, {"begun", 13 - rank}, {"last", "all_reduce"}};
    if (rank == 0) group["waits_in"] = "all_reduce", group["number"] = 13;
    ranks.push_back({{"rank", rank}, {"flight", nlohmann::json::array({group})}});
  }
  const auto said = [&] { end(EndCause::kHang, nlohmann::json{{"why", "w"}, {"ranks", ranks}}.dump()); };
  said();
  EXPECT_EQ(verdict().rank, 1);
  ranks[1]["flight"] = nullptr;
  said();
  EXPECT_EQ(verdict().rank, 1) << "it did not answer";
  ranks.erase(1);
  said();
  EXPECT_FALSE(verdict().rank) << "nothing is known of another rank";
}

// A host that hangs inside the call: its event was never recorded, which LibTorch takes for a finished one.
TEST_F(Standstill, ARankThatLeftTheOperationEarlyIsNamed) {
  nlohmann::json ranks = nlohmann::json::array();
  for (i64 rank = 0; rank < 3; ++rank) {
    nlohmann::json group{{"name", "a"}, {"group", "dp"}, {"ranks", "0-2"},
                         {"begun", 12}, {"done", 11},    {"last", "all_reduce"}};
    if (rank != 1) group["waits_in"] = "all_reduce", group["number"] = 12;
    if (rank == 1) group["done"] = 12;
    ranks.push_back({{"rank", rank}, {"flight", nlohmann::json::array({group})}});
  }
  end(EndCause::kHang, nlohmann::json{{"why", "w"}, {"rank", 0}, {"ranks", ranks}}.dump());
  EXPECT_EQ(verdict().rank, 1);
  EXPECT_THAT(verdict().reason, HasSubstr("ranks 0, 2 wait in all_reduce 12 of group dp; rank 1 called it"));
}

TEST_F(Standstill, ARankThatDoesNotAnswerIsTheCauseOfTheWait) {
  const auto group = [](i64 begun, const char* name, const char* ranks, bool waits) {
    nlohmann::json out{
        {"name", name}, {"group", name}, {"ranks", ranks}, {"begun", begun}, {"last", "all_gather"}};
    if (waits) out["waits_in"] = "all_gather", out["number"] = begun;
    return out;
  };
  using List = nlohmann::json;
  nlohmann::json ranks = List::array(
      {{{"rank", 0},
        {"phase", "step"},
        {"flight", List::array({group(4, "tp", "0-1", false), group(9, "dp", "0-2/2", true)})}},
       {{"rank", 1}, {"phase", "step"}, {"flight", nullptr}, {"last_collective", "all_reduce 3 of tp"}},
       {{"rank", 2},
        {"phase", "step"},
        {"flight", List::array({group(8, "dp", "0-2/2", false), group(5, "cp", "1-2", true)})}}});
  end(EndCause::kHang, nlohmann::json{{"why", "w"}, {"rank", 0}, {"ranks", ranks}}.dump());
  EXPECT_EQ(verdict().rank, 1) << "rank 0 waits for 2, which itself waits for 1";
}

TEST_F(Standstill, WhereAllHaveComeNoRankIsBlamedForIt) {
  nlohmann::json group{
      {"name", "a"}, {"group", "dp"}, {"ranks", "0-1"}, {"begun", 2}, {"waits_in", "all_reduce"},
      {"number", 2}};
  nlohmann::json ranks = nlohmann::json::array();
  for (i64 rank = 0; rank < 2; ++rank)
    ranks.push_back({{"rank", rank}, {"flight", nlohmann::json::array({group})}});
  end(EndCause::kHang, nlohmann::json{{"why", "w"}, {"ranks", ranks}}.dump());
  EXPECT_FALSE(verdict().rank);
  EXPECT_THAT(verdict().reason, HasSubstr("every rank of the group has entered it"));
}

// A kernel of rank 3 or 2 hangs; ranks 0 and 1 only wait for the stages behind them.
TEST_F(Standstill, AMessageThatBothEndsEnteredNamesNoRank) {
  const auto waits = [](i64 rank, const char* operation, i64 number, i64 peer) {
    return nlohmann::json{{"rank", rank},
                          {"phase", "step"},
                          {"flight",
                           {{{"name", "w"},
                             {"group", "pp"},
                             {"ranks", "0-3"},
                             {"begun", 0},
                             {"waits_in", operation},
                             {"number", number},
                             {"peer", peer}}}}};
  };
  const nlohmann::json ranks{waits(0, "recv", 14, 1), waits(1, "recv", 26, 2), waits(2, "recv", 24, 3),
                             waits(3, "send", 12, 2)};
  end(EndCause::kHang, nlohmann::json{{"why", "w"}, {"rank", 0}, {"ranks", ranks}}.dump());
  EXPECT_FALSE(verdict().rank);
  EXPECT_THAT(verdict().reason,
              HasSubstr("rank 3 waits in send 12 of group pp, rank 2 in recv 24; both have entered it"));
}

TEST_F(Standstill, AnyFlightRecorderIsReadWithoutAFault) {
  for (const char* ranks :
       {R"([{"rank": 0, "flight": [{"ranks": "9-1/0,-3,,x", "waits_in": "x"}]}])",
        R"([{"rank": 0, "flight": [{"ranks": "0-99999999999999", "waits_in": "x", "number": 1}]}])"}) {
    end(EndCause::kHang, R"({"why": "w", "ranks": )" + std::string(ranks) + "}");
    EXPECT_EQ(verdict().outcome, Outcome::kHang) << ranks;
  }
}

}  // namespace
}  // namespace sweep::ingest
