// PyTorch's flight recorder as LibTorch 2.11 writes it (JSON), shortened from a rank of two.
#include "worker/agent/evidence/flight_trace.h"

#include <gtest/gtest.h>

namespace sweep::agent {
namespace {

constexpr const char* kRecorded = R"({"version": "2.10", "nccl_version": "2.28.9",
 "pg_config": {"world_0": {"name": "world_0", "desc": "", "ranks": "[0, 1, 2, 3]"},
               "pipeline_1": {"name": "pipeline_1", "desc": "pp", "ranks": "[1, 3]"}},
 "pg_status": {},
 "entries": [
  {"process_group": ["world_0", "world"], "collective_seq_id": 46, "p2p_seq_id": 0, "op_id": 46,
   "profiling_name": "nccl:all_reduce", "state": "completed", "is_p2p": false},
  {"process_group": ["world_0", "world"], "collective_seq_id": 47, "p2p_seq_id": 0, "op_id": 47,
   "profiling_name": "nccl:_all_gather_base", "state": "scheduled", "is_p2p": false},
  {"process_group": ["world_0", "world"], "collective_seq_id": 48, "p2p_seq_id": 0, "op_id": 48,
   "profiling_name": "nccl:all_reduce", "state": "scheduled", "is_p2p": false},
  {"process_group": ["pipeline_1", "pp"], "collective_seq_id": 0, "p2p_seq_id": 3, "op_id": 5,
   "profiling_name": "nccl:recv 0<-1", "state": "scheduled", "is_p2p": true}]})";

TEST(FlightTrace, SaysWhatARankBeganFinishedAndWaitsIn) {
  const FlightTrace trace = read_flight_trace(kRecorded);
  const auto& world = trace.groups.at("world_0");
  EXPECT_EQ(world.label, "world");
  EXPECT_EQ(world.begun, 48);
  EXPECT_EQ(world.done, 46);
  EXPECT_EQ(world.last, "all_reduce");
  ASSERT_TRUE(world.waits);
  EXPECT_EQ(world.waits->number, 47);
  EXPECT_EQ(world.waits->operation, "all_gather");
}

TEST(FlightTrace, AMessageNamesTheOtherRankAsTheWorldCounts) {
  const auto trace = read_flight_trace(kRecorded);
  const auto& pipeline = trace.groups.at("pipeline_1");
  ASSERT_TRUE(pipeline.waits);
  EXPECT_EQ(pipeline.waits->operation, "recv");
  EXPECT_EQ(pipeline.waits->peer, 3);
}

TEST(FlightTrace, NumbersThatNoRankHasAreLeftOut) {
  const auto trace = read_flight_trace(
      R"({"pg_config": {"tp": {"name": "tp", "desc": "tp", "ranks": "[0, 6666666666666666660, -7066666666666666666, 3]"}},
          "entries": []})");
  ASSERT_TRUE(trace.groups.contains("tp"));
  EXPECT_EQ(trace.groups.at("tp").ranks, (std::vector<i64>{0, 3}));
}

TEST(FlightTrace, IsToldInFewWords) {
  const auto told = groups_of(read_flight_trace(kRecorded));
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].ranks, "1-3/2");
  EXPECT_EQ(told[0].peer, 3);
  EXPECT_EQ(told[1].ranks, "0-3");
  EXPECT_EQ(told[1].number, 47);
}

// The text is PyTorch 2.11's: its group has no name, and no operation has a state.
TEST(FlightTrace, OfGlooWhatIsNotOverIsWaitedFor) {
  const auto trace =
      read_flight_trace(R"({"pg_config": {"": {"desc": "", "name": "", "ranks": "[0, 1]"}}, "entries": [
    {"process_group": ["0", "default_pg"], "collective_seq_id": 2, "profiling_name": "gloo:all_reduce",
     "is_p2p": false, "retired": true, "state": "scheduled"},
    {"process_group": ["0", "default_pg"], "collective_seq_id": 3, "profiling_name": "gloo:all_reduce",
     "is_p2p": false, "retired": false, "state": "scheduled"}]})");
  ASSERT_EQ(trace.groups.size(), 1u);
  const auto& group = trace.groups.at("0");
  EXPECT_EQ(group.label, "default_pg");
  EXPECT_EQ(group.ranks, (std::vector<i64>{0, 1}));
  EXPECT_EQ(group.done, 2);
  ASSERT_TRUE(group.waits);
  EXPECT_EQ(group.waits->number, 3);
  EXPECT_EQ(group.waits->operation, "all_reduce");
}

TEST(FlightTrace, OfSeveralGroupsOfGlooTheMembersAreUnknown) {
  const auto trace = read_flight_trace(R"({"pg_config": {"": {"name": "", "ranks": "[0, 1]"}}, "entries": [
    {"process_group": ["0", "dp"], "collective_seq_id": 1, "retired": true},
    {"process_group": ["1", "tp"], "collective_seq_id": 4, "retired": false}]})");
  ASSERT_EQ(trace.groups.size(), 2u);
  for (const auto& [name, group] : trace.groups) EXPECT_TRUE(group.ranks.empty()) << name;
  EXPECT_TRUE(trace.groups.at("1").waits);
}

TEST(FlightTrace, OfAnythingElseNothingIsRead) {
  for (const char* bytes : {"", "null", "[1]", R"({"entries": 3, "pg_config": []})",
                            R"({"pg_config": {"a": {"name": 7}}, "entries": [{"process_group": [1]}, 4]})"})
    EXPECT_NO_THROW(read_flight_trace(bytes)) << bytes;
  EXPECT_TRUE(read_flight_trace(R"({"entries": [{}]})").empty());
}

}  // namespace
}  // namespace sweep::agent
