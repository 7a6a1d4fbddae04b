// Plans of grids: what this machine prunes, and one entry for each trial.
#include "orchestrator/driver/planning.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sweep::driver {
namespace {

Planned planned(const std::string& text) {
  auto grid = grid::read_text(text, "g.yaml");
  EXPECT_TRUE(grid) << grid.error().message;
  auto out = plan_of(std::move(*grid));
  EXPECT_TRUE(out) << out.error().message;
  return std::move(*out);
}

// Eight ranks of llama3-8b have 1 TB of fp32 states on their own, and 130 GB where their program shards them in bf16.
TEST(Planning, ThisMachinePrunesACommandOnlyByTheLeastStatesOfItsProgram) {
  const std::string commands =
      "name: t\nmodel: llama3-8b\nworkload: {command: [train, \"{micro_batch_size}\"]}\n"
      "base: {hardware: cpu, nodes: 1, gpus_per_node: 8}\ngrid: {micro_batch_size: [1, 2]}\n";
  const plan::Resources here{8, 0, i64{300'000'000'000}};
  auto open = planned(commands), given = planned(commands + "derive: {zero: 0 * dp}\n");
  prune_beyond(open, here);
  EXPECT_TRUE(std::ranges::all_of(open.entries, &PlanEntry::admitted)) << open.entries[0].reason;
  prune_beyond(given, here);
  EXPECT_TRUE(std::ranges::none_of(given.entries, &PlanEntry::admitted));
  EXPECT_EQ(given.entries[0].rule, "resources");
}

TEST(Planning, ATrialThatOnePointDropsAndAnotherIsTakesThePlaceOfTheDrop) {
  const auto plan = planned(
      "name: t\nmodel: llama3-8b\nbase: {hardware: h100-sxm-80gb, nodes: 1, gpus_per_node: 8}\n"
      "grid: {seq_len: [512, 2048]}\nwhere: [seq_len > 512]\ninclude: [{seq_len: 512}]\n");
  ASSERT_EQ(plan.entries.size(), 2u);
  EXPECT_TRUE(std::ranges::none_of(plan.entries, [](const PlanEntry& e) { return e.rule == "where"; }));
}

TEST(GpuHoursFor, AnAllocationPaysItsWholeNodes) {
  PlanEntry entry;
  entry.trial.hardware = "h100-sxm-80gb", entry.trial.gpus_per_node = 1;
  const std::map<std::string, double> prices{{"h100-sxm-80gb", 40}};
  EXPECT_DOUBLE_EQ(gpu_hours_for(80, {entry}, prices, false).value(), 2)
      << "two hours of a node, of which one GPU counts";
  EXPECT_DOUBLE_EQ(gpu_hours_for(80, {entry}, prices, true).value(), 16)
      << "two hours of a node, of which all eight count";
}

}  // namespace
}  // namespace sweep::driver
