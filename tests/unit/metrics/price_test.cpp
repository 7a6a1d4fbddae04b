// The price of a million tokens: whose price, of which day, of how many nodes.
#include <gtest/gtest.h>

#include "tests/unit/metrics/records_by_hand.h"

namespace sweep::metrics {
namespace {

// The LLMForge guide (Anyscale, Jan 2024), one p4de.24xlarge, Llama-2-70B: million tokens per hour and USD
// per million tokens. The guide prints the cost column bottom up; price / throughput shows which row each
// belongs to.
TEST(Price, CostEqualsTheLlmForgeTable) {
  const std::pair<double, double> rows[] = {{11.23, 3.65}, {9.65, 4.25}, {8.58, 4.77}, {13.40, 3.05}};
  for (const auto& [mt_per_hour, usd] : rows) {
    const Trial t = gpu_trial("llama2-70b", "a100-80gb");
    const double tokens = 8 * 4096;
    const Metrics m = derive(t, eight_ranks(tokens * 3600 / 1e6 / mt_per_hour * 1e3), nullptr, 40.97);
    EXPECT_NEAR(*m.mt_per_hour, mt_per_hour, 1e-6);
    EXPECT_NEAR(*m.cost_per_mt, usd, 0.01);
  }
}

TEST(Price, TheSitesPriceWinsOverTheCataloguesAndIsKept) {
  const Trial t = gpu_trial("llama3-8b", "a100-80gb");
  const Metrics catalogue = derive(t, eight_ranks(500), nullptr),
                site = derive(t, eight_ranks(500), nullptr, 10);
  EXPECT_DOUBLE_EQ(*site.usd_per_node_hour, 10);
  EXPECT_DOUBLE_EQ(*site.cost_per_mt / *catalogue.cost_per_mt, 10 / *catalogue.usd_per_node_hour);
  EXPECT_DOUBLE_EQ(*derive(cpu_trial(), eight_ranks(500), nullptr, 1).usd_per_node_hour, 1);
  EXPECT_FALSE(derive(cpu_trial(), eight_ranks(500), nullptr).usd_per_node_hour);
}

TEST(Price, ThePriceHasItsDateWhereItWasPublished) {
  const Trial t = gpu_trial("llama3-8b", "a100-80gb");
  const shape::Price published = *shape::find_hardware("a100-80gb")->price;
  EXPECT_EQ(derive(t, eight_ranks(500), nullptr).price_date, published.date);
  EXPECT_EQ(derive(t, eight_ranks(500), nullptr, published.usd_per_node_hour).price_date, published.date);
  EXPECT_FALSE(derive(t, eight_ranks(500), nullptr, published.usd_per_node_hour + 1).price_date);
  EXPECT_FALSE(derive(cpu_trial(), eight_ranks(500), nullptr, 1).price_date);
  EXPECT_FALSE(derive(t, {}, nullptr).price_date);
}

TEST(Price, CostIsThatOfAllNodes) {
  Trial one = gpu_trial("llama3-8b", "a100-80gb"), two = one;
  two.nodes = 2;
  two.gpus_per_node = 4;  // half of each node is used, all of it is paid
  EXPECT_DOUBLE_EQ(*derive(two, eight_ranks(500), nullptr).cost_per_mt,
                   2 * *derive(one, eight_ranks(500), nullptr).cost_per_mt);
}

}  // namespace
}  // namespace sweep::metrics
