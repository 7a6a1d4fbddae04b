// A step over several nodes: what each computes, and which kind of device is the slower one.
#include "orchestrator/answers/statistics/node_times.h"

#include <gtest/gtest.h>

namespace sweep::answers {
namespace {

constexpr i64 kMillisecond = 1'000'000;

Trial over(i64 nodes, i64 ranks, const std::string& hardware) {
  Trial t;
  t.nodes = nodes, t.gpus_per_node = ranks, t.dp = nodes * ranks, t.hardware = hardware;
  return t;
}
RankRecord rank(i64 number, i64 step_ms, std::optional<i64> waited_ms) {
  RankRecord out;
  out.rank = number;
  StepSample warm{};
  warm.warmup = true, warm.step_ns = 999 * kMillisecond, warm.exposed_comm_ns = 0;
  StepSample timed{};
  timed.step = 1, timed.step_ns = step_ms * kMillisecond;
  if (waited_ms) timed.exposed_comm_ns = *waited_ms * kMillisecond;
  out.samples = {warm, timed, timed};
  return out;
}
Environment node(i64 number, const std::string& host, const std::string& gpu) {
  Environment out;
  out.node = number, out.host = host;
  out.facts.gpus = std::vector<GpuFacts>(2);
  for (GpuFacts& each : *out.facts.gpus) each.name = gpu;
  return out;
}

const Trial kMix = over(2, 2, "a100-80gb+h100-sxm-80gb");
store::StoredRecords records() {
  store::StoredRecords out;
  out.records = {rank(0, 100, 20), rank(1, 100, 10), rank(2, 100, 60), rank(3, 100, 55)};
  return out;
}

TEST(NodeTimes, AreOfTheSlowestRankOfEachNode) {
  const std::vector<Environment> nodes{node(0, "one", "A"), node(1, "two", "H")};
  const auto times = node_times(kMix, records(), nodes);
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].rank, 1);
  EXPECT_EQ(times[0].host, "one");
  EXPECT_EQ(times[0].device, "2 x A");
  EXPECT_DOUBLE_EQ(times[0].own_ms, 90);
  EXPECT_DOUBLE_EQ(times[0].waited_ms, 10);
  EXPECT_EQ(times[1].rank, 3);
  EXPECT_DOUBLE_EQ(times[1].own_ms, 45);
  const std::string slower = slower_kind(kMix, times);
  EXPECT_LT(slower.find("2 x A"), slower.find("2 x H")) << slower;
  EXPECT_NE(slower.find("2.00 times"), std::string::npos) << slower;
  EXPECT_EQ(node_lines(times).size(), 2u);
}

TEST(NodeTimes, NodesOfALargerAllocationAreFoundByTheirNames) {
  const std::vector<Environment> nodes{node(0, "one", "A"), node(1, "two", "H"), node(2, "three", "A"),
                                       node(3, "four", "H")};
  auto of = records();
  EXPECT_TRUE(node_times(kMix, of, nodes).at(0).device.empty()) << "nobody says which nodes these were";
  of.end.emplace();
  of.end->load.nodes.resize(2);
  of.end->load.nodes[0].host = "three", of.end->load.nodes[1].host = "two";
  const auto times = node_times(kMix, of, nodes);
  EXPECT_EQ(times[0].device, "2 x A");
  EXPECT_EQ(times[0].host, "three");
  EXPECT_EQ(times[1].host, "two");
}

TEST(NodeTimes, OneKindHasNoSlowerOneAndAMixThatRanOnOneSaysSo) {
  const std::vector<Environment> nodes{node(0, "one", "H"), node(1, "two", "H")};
  const auto times = node_times(kMix, records(), nodes);
  EXPECT_NE(slower_kind(kMix, times), "");
  EXPECT_EQ(slower_kind(over(2, 2, "h100-sxm-80gb"), times), "");
}

TEST(NodeTimes, NothingIsSaidOfWhatWasNotMeasured) {
  EXPECT_TRUE(node_times(over(1, 4, "cpu"), records(), {}).empty());
  auto of = records();
  of.records[2] = rank(2, 100, {});
  EXPECT_TRUE(node_times(kMix, of, {}).empty());
  of.records.pop_back();
  EXPECT_TRUE(node_times(kMix, of, {}).empty());
}

}  // namespace
}  // namespace sweep::answers
