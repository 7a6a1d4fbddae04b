#include "orchestrator/plan/memory_pruning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orchestrator/plan/planner.h"
#include "orchestrator/predict/memory.h"

namespace sweep::plan {
namespace {

using ::testing::HasSubstr;

// A trial that needs `share` times what it may use.
PlanEntry with_share(double share, const std::string& id) {
  PlanEntry e;
  e.id = id;
  e.trial.model = "tiny-llama", e.trial.spec = *shape::find_model("tiny-llama");
  e.trial.memory_cap_bytes = static_cast<i64>(predict::estimate_memory(e.trial).total() / share);
  return e;
}

std::vector<PlanEntry> decided(std::vector<PlanEntry> entries) {
  decide(entries, {});
  return entries;
}

TEST(MemoryPruning, WhatLiesBeyondTheMarginDoesNotRun) {
  auto plan = decided({with_share(0.5, "a"), with_share(1.05, "b"), with_share(1.2, "c")});
  prune_memory(plan, {0.1, {}});
  EXPECT_TRUE(plan[0].admitted);
  EXPECT_TRUE(plan[1].admitted) << "nearer than the margin: it runs";
  EXPECT_FALSE(plan[2].admitted);
  EXPECT_EQ(plan[2].rule, "memory");
  EXPECT_EQ(plan[2].order, 2) << "after those that run";
  EXPECT_TRUE(plan[2].predicted.bytes) << "what is pruned keeps its numbers";
  EXPECT_THAT(plan[2].reason, HasSubstr("20.0 % above"));
  auto wide = decided({with_share(1.2, "c")});
  prune_memory(wide, {1, {}});
  EXPECT_TRUE(wide[0].admitted);
}

TEST(MemoryPruning, ADryRunReplacesThePredictionAndHasNoMargin) {
  auto plan = decided({with_share(0.95, "fits"), with_share(1.05, "does not"), with_share(1.05, "does")});
  const auto limit = static_cast<double>(*plan[1].trial.memory_cap_bytes);
  prune_memory(plan, {0, {}});
  EXPECT_EQ(plan[2].rule, "memory");
  prune_memory(plan, {0, {{"does not", {1.01 * limit, {}}}, {"does", {0.99 * limit, {}}}}});
  EXPECT_TRUE(plan[0].admitted);
  EXPECT_FALSE(plan[1].admitted);
  EXPECT_TRUE(plan[2].admitted) << "only its prediction said no";
  EXPECT_EQ(*plan[2].predicted.bytes, static_cast<i64>(0.99 * limit));
}

// A trial on a GPU that has `share` times what it may use.
PlanEntry on_gpu(double share, const std::string& id) {
  PlanEntry e = with_share(share, id);
  e.trial.hardware = "h100-sxm-80gb", e.trial.precision = Precision::kBf16;
  e.trial.memory_cap_bytes = static_cast<i64>(predict::estimate_memory(e.trial).total() / share);
  return e;
}

TEST(MemoryPruning, OnAGpuTheAllocatorDecides) {
  auto plan = decided({on_gpu(0.9, "in pieces"), on_gpu(1.02, "fits")});
  const double bytes = 0.9 * static_cast<double>(*plan[0].trial.memory_cap_bytes);
  const double above = 1.02 * static_cast<double>(*plan[1].trial.memory_cap_bytes);
  prune_memory(plan, {0.1, {{"in pieces", {bytes, "no room"}}, {"fits", {above, {}}}}});
  EXPECT_FALSE(plan[0].admitted);
  EXPECT_EQ(plan[0].rule, "memory");
  EXPECT_EQ(plan[0].reason, "no room");
  EXPECT_EQ(*plan[0].predicted.bytes, static_cast<i64>(bytes));
  EXPECT_TRUE(plan[1].admitted) << "the limit of the plan leaves room for what the allocator has in hand";
}

TEST(MemoryPruning, WhereEnvChangesTheAllocatorBytesAloneDecide) {
  auto plan = decided({on_gpu(0.9, "below"), on_gpu(1.02, "above"), on_gpu(1.02, "another")});
  for (PlanEntry& e : plan) e.trial.env = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
  plan[2].trial.env = "NCCL_ALGO=Ring";
  std::map<std::string, MeasuredMemory> dry_runs;
  for (const PlanEntry& e : plan)
    dry_runs[e.id] = {*share_of_limit(e) * static_cast<double>(*e.trial.memory_cap_bytes), {}};
  prune_memory(plan, {0.1, dry_runs});
  EXPECT_TRUE(plan[0].admitted);
  EXPECT_FALSE(plan[1].admitted);
  EXPECT_TRUE(plan[2].admitted) << "the allocator's model found room";
  EXPECT_TRUE(changes_allocator(plan[0]));
  EXPECT_FALSE(changes_allocator(plan[2]));
}

TEST(MemoryPruning, OnAGpuNearBeginsAFifthBelow) {
  const auto plan = decided({on_gpu(0.75, "a"), on_gpu(0.85, "b"), with_share(0.85, "c")});
  std::vector<std::string> ids;
  for (const PlanEntry* e : near_memory_limit(plan, 0.1)) ids.push_back(e->id);
  EXPECT_THAT(ids, ::testing::ElementsAre("b"));
}

TEST(MemoryPruning, AnAuditedTrialRunsAndKeepsItsRule) {
  auto plan = decided({with_share(1.2, "a")});
  prune_memory(plan, {0.1, {}, 0.999999});
  EXPECT_TRUE(plan[0].admitted);
  EXPECT_EQ(plan[0].rule, "memory");
}

TEST(MemoryPruning, NearIsWithinTheMarginOnEitherSide) {
  const auto plan =
      decided({with_share(0.8, "a"), with_share(0.95, "b"), with_share(1.05, "c"), with_share(1.3, "d")});
  std::vector<std::string> ids;
  for (const PlanEntry* e : near_memory_limit(plan, 0.1)) ids.push_back(e->id);
  EXPECT_THAT(ids, ::testing::ElementsAre("b", "c"));
}

TEST(MemoryPruning, CommandsAndUnknownLimitsAreLeftAlone) {
  auto plan = decided({with_share(1.5, "a"), with_share(0.5, "b")});
  plan[0].trial.workload = Workload::kCommand;
  plan[1].trial.memory_cap_bytes.reset();  // cpu: no limit is known
  prune_memory(plan, {0, {}});
  EXPECT_TRUE(plan[0].admitted);
  EXPECT_FALSE(share_of_limit(plan[1]));
}

TEST(MemoryPruning, WhatIsAskedAfterTheMemoryStillSpeaksAgainstATrialThatComesBack) {
  const auto late = [](double share, const std::string& id) {
    PlanEntry e = on_gpu(share, id);
    e.trial.cuda_graph = true;
    return e;
  };
  const MeasurePlan soon{1, 10, 1};
  std::vector<PlanEntry> plan{late(1.05, "measured"), late(1.05, "audited")};
  for (PlanEntry& e : plan) e.admitted = false, e.verdict = Outcome::kPruned, e.rule = "memory";
  const double half = 0.5 * static_cast<double>(*plan[0].trial.memory_cap_bytes);
  prune_memory(plan, {0.1, {{"measured", {half, {}}}}, 0.999999, soon});
  EXPECT_FALSE(plan[0].admitted);
  EXPECT_EQ(plan[0].rule, "cuda_graph");
  EXPECT_EQ(plan[0].verdict, Outcome::kUnsupported);
  EXPECT_FALSE(plan[1].admitted);
}

}  // namespace
}  // namespace sweep::plan
