// Which nodes stand out, from what their ranks measured.
#include "worker/agent/node/screening.h"

#include <gtest/gtest.h>

#include <limits>

#include "schema/codec.h"

namespace sweep::agent {
namespace {

RankRecord said(double factor, Links links = {}) {
  RankRecord record;
  record.effective.screen = {100 * factor, 10 * factor, std::move(links)};
  return record;
}

TEST(Screening, FindsTheSlowNodeAndNoOther) {
  const auto all =
      judge_screen({{0, said(1)}, {1, said(0.9)}, {2, said(0.3)}, {3, said(1.05)}}, {0, 1, 2, 3}, {});
  ASSERT_EQ(all.size(), 4u);
  EXPECT_NE(all.at(2).slow.find("matmul 30 GFLOP/s where the median node has 100"), std::string::npos)
      << all.at(2).slow;
  EXPECT_NE(all.at(2).slow.find("memory"), std::string::npos);
  for (const i64 node : {0, 1, 3}) EXPECT_EQ(all.at(node).slow, "");
}

TEST(Screening, OfTwoNodesTheFasterSetsTheMeasure) {
  const auto all = judge_screen({{0, said(0.4)}, {1, said(1)}}, {0, 1}, {});
  EXPECT_NE(all.at(0).slow, "");
  EXPECT_EQ(all.at(1).slow, "");
}

TEST(Screening, ASlowGpuMakesItsNodeSlow) {
  const auto all = judge_screen(
      {{0, said(1)}, {1, said(1)}, {2, said(1)}, {3, said(0.2)}, {4, said(1)}, {5, said(1)}}, {0, 4, 7}, {});
  EXPECT_NE(all.at(4).slow, "");  // ranks 2 and 3
  EXPECT_EQ(all.at(0).slow, "");
  EXPECT_EQ(all.at(7).slow, "");
}

TEST(Screening, ASlowLinkCountsForBothEndsSoOnlyItsNodeStandsOut) {
  std::map<i64, RankRecord> records;
  for (i64 rank = 0; rank < 4; ++rank) {
    Links links;
    for (i64 peer = 0; peer < 4; ++peer)
      if (peer != rank) links.emplace_back(peer, rank == 1 || peer == 1 ? 0.2 : 2.0);
    records[rank] = said(1, links);
  }
  const auto all = judge_screen(records, {0, 1, 2, 3}, {});
  EXPECT_NE(all.at(1).slow.find("transport"), std::string::npos) << all.at(1).slow;
  for (const i64 node : {0, 2, 3}) EXPECT_EQ(all.at(node).slow, "");
}

TEST(Screening, ASpeedThatIsNoNumberDoesNotCount) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const auto all = judge_screen({{0, said(1, {{1, none}, {1, 2.0}})}, {1, said(1, {{0, none}})}}, {0, 1}, {});
  EXPECT_EQ(all.at(0).links, (Links{{1, 2.0}}));
  EXPECT_TRUE(all.at(1).links.empty());
}

TEST(Screening, MemoryErrorsAndXidsAreNoSpeed) {
  std::map<i64, NodeFacts> facts;
  facts[0].gpus = {GpuFacts{.ecc_uncorrected = 3}}, facts[1].xids = 2;
  const auto all = judge_screen({{0, said(1)}, {1, said(1)}}, {0, 1}, facts);
  EXPECT_NE(all.at(0).slow.find("3 uncorrected memory errors on GPU 0"), std::string::npos);
  EXPECT_NE(all.at(1).slow.find("2 Xid errors"), std::string::npos);
}

TEST(Screening, NonsenseIsNoAnswer) {
  RankRecord silent, odd;
  odd.effective.screen = {0, 0, {{9, 1}, {-1, 1}}};
  EXPECT_TRUE(judge_screen({{0, silent}}, {0, 1}, {}).empty());
  EXPECT_EQ(judge_screen({{0, odd}}, {0}, {}).at(0).slow, "");
  EXPECT_TRUE(judge_screen({}, {}, {}).empty());
}

}  // namespace
}  // namespace sweep::agent
