// Outbox bytes that are torn, damaged, hostile or newer than we are.
#include <gmock/gmock.h>

#include "orchestrator/ingest/ingest.h"
#include "schema/codec.h"
#include "schema/node_part.h"

namespace sweep::ingest {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string line(std::string_view kind, json body, i64 seq = 1) {
  return spool::frame({"a1", 2, seq, std::string(kind), std::move(body)});
}

RankRecord record(i64 rank) {
  RankRecord r;
  r.attempt = 7, r.rank = rank, r.outcome = Outcome::kOk;
  return r;
}

TEST(Read, EveryKindBecomesItsType) {
  AttemptEnd end;
  end.attempt = 7, end.cause = EndCause::kDone;
  RankExit exit;
  exit.attempt = 7;
  const std::string bytes = line(spool::kHello, {{"pid", 4}, {"host", "n1"}, {"version", "1"}}) +
                            line(spool::kNode, to_json(NodeRecord{0, "n1", {}})) +
                            line(spool::kStarted, {{"attempt", 7}, {"pids", {11, 12}}, {"unix_ns", 5}}) +
                            line(spool::kRankRecord, to_json(record(1))) +
                            line(spool::kRankExit, to_json(exit)) + line(spool::kAttemptEnd, to_json(end)) +
                            line(spool::kNodeOut, {{"node", 1}, {"why", "w"}, {"lost", true}}) +
                            line(spool::kBye, {{"reason", "finished"}});
  const Batch batch = read(bytes);
  EXPECT_TRUE(batch.damage.empty());
  EXPECT_EQ(batch.consumed, bytes.size());
  ASSERT_EQ(batch.messages.size(), 8u);
  EXPECT_EQ(std::get<AgentHello>(batch.messages[0]).host, "n1");
  EXPECT_EQ(std::get<NodeRecord>(batch.messages[1]).host, "n1");
  EXPECT_EQ(std::get<AttemptStarted>(batch.messages[2]).pids, (std::vector<i64>{11, 12}));
  EXPECT_EQ(std::get<RankRecord>(batch.messages[3]).rank, 1);
  EXPECT_EQ(std::get<RankExit>(batch.messages[4]).attempt, 7);
  EXPECT_EQ(std::get<AttemptEnd>(batch.messages[5]).cause, EndCause::kDone);
  EXPECT_EQ(std::get<NodeOut>(batch.messages[6]).node, 1);
  EXPECT_EQ(std::get<NodeOut>(batch.messages[6]).why, "w");
  EXPECT_TRUE(std::get<NodeOut>(batch.messages[6]).lost);
  EXPECT_EQ(std::get<Leave>(batch.messages[7]).reason, "finished");
}

TEST(Read, LinesOfOlderReleasesAreRead) {
  const auto older = [](std::string_view kind, const char* body) { return line(kind, json::parse(body)); };
  const Batch batch = read(older("hello", R"({"pid": 4, "host": "n1", "version": "0.1.0"})") +
                           older("started", R"({"attempt": 7, "pids": [11, 12], "unix_ns": 5})") +
                           older("node_out", R"({"node": 1, "why": "w"})") + older("bye", "{}"));
  EXPECT_TRUE(batch.damage.empty());
  ASSERT_EQ(batch.messages.size(), 4u);
  EXPECT_TRUE(std::get<AgentHello>(batch.messages[0]) ==
              (AgentHello{.pid = 4, .host = "n1", .version = "0.1.0"}));
  EXPECT_TRUE(std::get<AttemptStarted>(batch.messages[1]) == (AttemptStarted{7, {11, 12}, 5}));
  EXPECT_TRUE(std::get<NodeOut>(batch.messages[2]) == (NodeOut{1, "w", false}));
  EXPECT_EQ(std::get<Leave>(batch.messages[3]).reason, "");
}

TEST(Read, MoreProcessesThanAnAttemptCanHaveAreDamage) {
  const auto of = [](i64 pids) {
    return read(line(spool::kStarted,
                     to_json(AttemptStarted{7, std::vector<i64>(static_cast<std::size_t>(pids), 1), 5})));
  };
  EXPECT_EQ(of(kMaxRanks).messages.size(), 1u);
  EXPECT_EQ(of(kMaxRanks + 1).damage.size(), 1u);
}

TEST(Read, ATornLastLineWaitsForItsRest) {
  const std::string first = line(spool::kRankRecord, to_json(record(0)));
  const std::string second = line(spool::kRankRecord, to_json(record(1)));
  for (std::size_t cut = 0; cut < second.size(); ++cut) {
    const Batch batch = read(first + second.substr(0, cut));
    EXPECT_EQ(batch.messages.size(), 1u);
    EXPECT_EQ(batch.consumed, first.size());
    EXPECT_TRUE(batch.damage.empty());
  }
}

TEST(Read, DamageIsToldAndTheRestStillCounts) {
  std::string bad = line(spool::kRankRecord, to_json(record(0)));
  bad[20] ^= 1;
  const Batch batch = read(bad + "nonsense\n\n" + line(spool::kRankRecord, to_json(record(1))));
  EXPECT_EQ(batch.messages.size(), 1u);
  EXPECT_EQ(batch.damage.size(), 3u);
}

TEST(Read, WrongTypesAndAbsurdNumbersAreDamage) {
  json wild = to_json(record(0));
  const auto with = [&](const char* key, json value) {
    json j = wild;
    j[key] = std::move(value);
    return line(spool::kRankRecord, j);
  };
  const std::string bytes =
      with("rank", 1e300) + with("rank", 18446744073709551615ull) + with("rank", "0") +
      with("outcome", "splendid") + with("samples", {1, 2}) + line(spool::kRankRecord, json::array()) +
      line(spool::kStarted, {{"attempt", 1.5}}) + line(spool::kStarted, {{"attempt", 1}, {"pids", {"x"}}}) +
      line(spool::kNodeOut, {{"why", "no node"}}) + line(spool::kHello, 3) +
      line("of_the_future", json::object());
  const Batch batch = read(bytes);
  EXPECT_TRUE(batch.messages.empty());
  EXPECT_EQ(batch.damage.size(), 11u);
  EXPECT_THAT(batch.damage.back(), HasSubstr("of_the_future"));
  EXPECT_EQ(batch.consumed, bytes.size());
}

TEST(Read, ALongStretchIsReadWholeHoweverItIsCut) {
  std::string bytes;
  for (i64 i = 0; i < 2000; ++i) {
    RankRecord r = record(i);
    r.message.assign(static_cast<std::size_t>(i % 7) * 40, 'm');
    bytes += line(spool::kRankRecord, to_json(r), i);
  }
  bytes += line(spool::kBye, {{"reason", std::string(200000, 'x')}});
  const std::size_t whole = bytes.size();
  bytes += "0123";
  const Batch batch = read(bytes);
  EXPECT_EQ(batch.messages.size(), 2001u);
  EXPECT_TRUE(batch.damage.empty());
  EXPECT_EQ(batch.consumed, whole);
}

TEST(Read, BytesThatAreNoTextAreDamage) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 197);
  const Batch batch = read(bytes + "\n");
  EXPECT_TRUE(batch.messages.empty());
  EXPECT_FALSE(batch.damage.empty());
  EXPECT_EQ(batch.consumed, bytes.size() + 1);
}

TEST(Read, AFloodOfDamageIsCountedNotKept) {
  const Batch batch = read(std::string(100000, '\n'));
  EXPECT_LE(batch.damage.size(), 101u);
  EXPECT_THAT(batch.damage.back(), HasSubstr("99900 more"));
}

}  // namespace
}  // namespace sweep::ingest
