// Grids, imports, the plan and the ranks answer alike, because they ask one rank algebra
// (bench_kernels/shape/rank_algebra.h).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bench_kernels/shape/parallel_dims.h"
#include "orchestrator/grid/grid.h"
#include "orchestrator/import/import.h"
#include "orchestrator/plan/rules.h"

namespace sweep::plan {
namespace {

std::vector<PlanEntry> expanded(const std::string& yaml) {
  std::vector<PlanEntry> out;
  const auto grid = grid::read_text(yaml, "g.yaml");
  EXPECT_TRUE(grid) << (grid ? "" : grid.error().message);
  if (!grid) return out;
  EXPECT_TRUE(grid::expand(*grid, [&](PlanEntry&& entry) { return out.push_back(std::move(entry)), true; }));
  return out;
}

bool is_of_the_algebra(const std::optional<Objection>& objection) {
  return objection &&
         (objection->rule == "rank_algebra" || objection->reason.starts_with("dp x micro_batch_size"));
}

// The trial of the grid, imported from a row of a file.
Expected<imports::Imported> imported(const Trial& t) {
  return imports::read(
      fmt::format("model,nodes,tp,pp,cp,micro_batch_size,global_batch_size,tokens_per_s_gpu\n"
                  "llama3-8b,{},{},{},{},{},{},5\n",
                  t.nodes, t.tp, t.pp, t.cp, t.micro_batch_size, t.global_batch_size),
      {.shown_as = "f.csv",
       .map = {},
       .set = {"hardware=h100-sxm-80gb", "seq_len=4096", "precision=bf16"},
       .models = {},
       .leave_rest = false});
}

TEST(RankAlgebraOfAllUsers, GridImportPlanAndRanksAgree) {
  const auto entries = expanded(
      "name: t\nmodel: llama3-8b\n"
      "base: {hardware: h100-sxm-80gb, seq_len: 4096, precision: bf16}\n"
      "grid: {nodes: [1, 2, 3], tp: [1, 2, 3, 4], pp: [1, 2, 3], cp: [1, 2], micro_batch_size: [1, 2, 3], "
      "global_batch_size: [8, 48]}\n");
  i64 fine = 0;
  for (const PlanEntry& entry : entries) {
    const Trial& t = entry.trial;
    const auto read = imported(t);
    ASSERT_EQ(read.has_value(), entry.admitted) << entry.reason << (read ? "" : read.error().message);
    if (!entry.admitted) {
      EXPECT_NE(read.error().message.find(entry.reason), std::string::npos) << read.error().message;
      continue;
    }
    ++fine;
    const Trial& same = read->rows.at(0).entry.trial;
    EXPECT_EQ(std::tuple(same.dp, same.gpus_per_node, same.grad_accum),
              std::tuple(t.dp, t.gpus_per_node, t.grad_accum));
    EXPECT_TRUE(shape::ParallelDims::make(t));
    EXPECT_FALSE(is_of_the_algebra(first_objection(t)));
  }
  EXPECT_GT(fine, 50);
  EXPECT_LT(fine, static_cast<i64>(entries.size()) - 50);
}

TEST(RankAlgebraOfAllUsers, WhatTheGridRefusesThePlanAndTheRanksRefuseAlike) {
  const auto entries = expanded(
      "name: t\nmodel: llama3-8b\nbase: {hardware: h100-sxm-80gb, gpus_per_node: 4}\n"
      "grid: {nodes: [1, 2], dp: [1, 2, 4], tp: [1, 2, 3], ep: [1, 2, 3], grad_accum: [1, 2], "
      "global_batch_size: [4, 8]}\n");
  i64 refused = 0;
  for (const PlanEntry& entry : entries) {
    const auto objection = first_objection(entry.trial);
    EXPECT_EQ(is_of_the_algebra(objection), !entry.admitted) << entry.reason;
    if (entry.admitted) continue;
    ++refused;
    EXPECT_EQ(objection->rule, entry.rule);
    EXPECT_EQ(objection->reason, entry.reason);
    EXPECT_EQ(shape::ParallelDims::make(entry.trial).has_value(), entry.rule == "divisibility");
  }
  EXPECT_GT(refused, 100);
  EXPECT_LT(refused, static_cast<i64>(entries.size()));
}

// The limits of derived sizes are those of the axes: nothing is derived that the plan's rule `range` then
// refuses.
TEST(RankAlgebraOfAllUsers, DerivedSizesKeepTheRangesOfTheirAxes) {
  const auto entries =
      expanded("name: t\nmodel: gpt2\ngrid: {nodes: [1, 2000, 100000], gpus_per_node: [1, 1024]}\n");
  ASSERT_EQ(entries.size(), 6u);
  for (const PlanEntry& entry : entries) {
    EXPECT_EQ(entry.admitted, entry.trial.nodes * entry.trial.gpus_per_node <= 1'000'000) << entry.reason;
    const auto objection = first_objection(entry.trial);
    EXPECT_NE(objection ? objection->rule : "", "range");
  }
}

}  // namespace
}  // namespace sweep::plan
