// `plan --suggested`: what a grid leaves unset is taken from the best earlier result, and nothing else changes.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "orchestrator/grid/grid.h"
#include "tests/unit/cli/command_fixture.h"

namespace sweep::cli {
namespace {

using nlohmann::json;

constexpr const char* kModel =
    "model: {family: llama, name: t, layers: 4, hidden_size: 32, heads: 4, kv_heads: 4, intermediate_size: "
    "64, "
    "vocab_size: 64}\n";

class SuggestedTest : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    store_ = open();
  }
  // A sweep whose trials ran, each with the rate that stands in its label `rate`.
  void measured(const std::string& name, const std::string& axes) {
    const auto grid = must(grid::read_text("name: " + name + "\n" + kModel + axes, dir_ / "g.yaml"));
    std::vector<PlanEntry> plan;
    must(grid::expand(grid, [&](PlanEntry&& entry) {
      plan.push_back(std::move(entry));
      return true;
    }));
    store::SweepRow row;
    row.name = name, row.grid_text = grid.text;
    sweep_ = must(store_->ensure_sweep(row)).id;
    must(store_->sync_plan(sweep_, plan, {}));
    ASSERT_FALSE(must(store_->take_lease(sweep_)).has_value());
    allocation_ = must(store_->create_allocation(sweep_, "local", dir_)).id, offset_ = 0;
    for (const PlanEntry& each : plan)
      finish(each, Outcome::kOk, json::parse(each.trial.labels).at("rate").get<double>());
    must(store_->release_lease(sweep_));
    sql("UPDATE result SET tokens_per_s_gpu = tokens_per_s");
  }
  Answer plan(const std::string& axes, std::vector<std::string> more = {"--json"}) {
    std::vector<std::string> words{"plan", file("grid.yaml", "name: g\n" + (kModel + axes)), "--suggested"};
    words.insert(words.end(), more.begin(), more.end());
    return ask(words);
  }
  // The trials that `plan` prints.
  std::vector<json> trials(const std::string& axes) {
    const Answer said = plan(axes);
    EXPECT_EQ(said.code, kAnswered) << said.err;
    std::istringstream lines(said.out);
    std::vector<json> out;
    for (std::string line; std::getline(lines, line);) out.push_back(json::parse(line).at("trial"));
    return out;
  }
};

const std::string kEarlier =
    "base: {hardware: cpu, nodes: 1, gpus_per_node: 4, seq_len: 64}\n"
    "grid: {tp: [1, 2], micro_batch_size: [2, 8], recompute: [full]}\nderive: {rate: 100 * tp + "
    "micro_batch_size}\n";

TEST_F(SuggestedTest, WhatTheGridLeavesUnsetIsTheBestEarlierResults) {
  measured("before", kEarlier);
  const auto all = trials("base: {hardware: cpu, gpus_per_node: 4}\ngrid: {zero: [0, 1]}\n");
  ASSERT_EQ(all.size(), 2u);
  for (const json& t : all) {
    EXPECT_EQ(t.at("tp"), 2);
    EXPECT_EQ(t.at("dp"), 2) << "derived by the grid's own ranks";
    EXPECT_EQ(t.at("micro_batch_size"), 8);
    EXPECT_EQ(t.at("seq_len"), 64);
    EXPECT_EQ(t.at("recompute"), "full");
  }
}

TEST_F(SuggestedTest, WhatTheGridStatesStays) {
  measured("before", kEarlier);
  const auto all = trials(
      "base: {hardware: cpu, gpus_per_node: 4, micro_batch_size: 2}\ngrid: {tp: [1, 4]}\nderive: {seq_len: 8 "
      "* tp}\n");
  ASSERT_EQ(all.size(), 2u);
  for (const json& t : all) {
    EXPECT_EQ(t.at("micro_batch_size"), 2);
    EXPECT_EQ(t.at("seq_len"), 8 * t.value("tp", 1));
    EXPECT_EQ(t.at("recompute"), "full") << "no result has all of it: the best of the others is taken";
  }
  EXPECT_EQ(all[1].at("tp"), 4);
}

TEST_F(SuggestedTest, AResultThatHasWhatTheGridStatesIsPreferred) {
  measured("before", kEarlier);
  EXPECT_EQ(
      trials("base: {hardware: cpu, gpus_per_node: 4, micro_batch_size: 2, tp: 1}\n").at(0).at("seq_len"),
      64);
  measured("longer",
           "base: {hardware: cpu, gpus_per_node: 4, seq_len: 128, grad_accum: 3}\ngrid: {zero: [2]}\nderive: "
           "{rate: 7}\n");
  EXPECT_EQ(trials("base: {hardware: cpu, gpus_per_node: 4, zero: 2}\n").at(0).at("grad_accum"), 3);
}

TEST_F(SuggestedTest, TheNearestNumberOfRanksCounts) {
  measured("few", "base: {hardware: cpu, gpus_per_node: 2, micro_batch_size: 3}\nderive: {rate: 900}\n");
  measured("many", "base: {hardware: cpu, gpus_per_node: 8, micro_batch_size: 5}\nderive: {rate: 1}\n");
  EXPECT_EQ(trials("base: {hardware: cpu, gpus_per_node: 6}\n").at(0).at("micro_batch_size"), 5);
  EXPECT_EQ(trials("base: {hardware: cpu, gpus_per_node: 1}\n").at(0).at("micro_batch_size"), 3);
}

TEST_F(SuggestedTest, TheNearestHardwareCountsAndAProcessorNeverStandsInForAGpu) {
  const std::string asked = "base: {hardware: a100-80gb, gpus_per_node: 8}\n";
  measured("cpu", "base: {hardware: cpu, gpus_per_node: 8, micro_batch_size: 2}\nderive: {rate: 1}\n");
  EXPECT_EQ(plan(asked).code, kBadInput);
  measured("small",
           "base: {hardware: a10g-24gb, gpus_per_node: 8, micro_batch_size: 3}\nderive: {rate: 9}\n");
  measured("large",
           "base: {hardware: h100-sxm-80gb, gpus_per_node: 8, micro_batch_size: 4}\nderive: {rate: 1}\n");
  EXPECT_EQ(trials(asked).at(0).at("micro_batch_size"), 4);
  measured("same", "base: {hardware: a100-80gb, gpus_per_node: 2, micro_batch_size: 5}\nderive: {rate: 1}\n");
  EXPECT_EQ(trials(asked).at(0).at("micro_batch_size"), 5);
}

TEST_F(SuggestedTest, AResultOfAnotherTaskIsNone) {
  measured("adapters", "base: {hardware: cpu, lora_rank: 8, micro_batch_size: 4}\nderive: {rate: 1}\n");
  EXPECT_EQ(plan("base: {hardware: cpu}\n").code, kBadInput);
  EXPECT_EQ(trials("base: {hardware: cpu, lora_rank: 8}\n").at(0).at("micro_batch_size"), 4);
}

TEST_F(SuggestedTest, TheSweepOfThisNameKeepsItsValuesWhenTheDatabaseGrows) {
  measured("before", kEarlier);
  const std::string axes = "base: {hardware: cpu, gpus_per_node: 4}\n";
  store::SweepRow row;
  row.name = "g";
  row.grid_text = must(grid::with_suggested(
      must(grid::read_text("name: g\n" + (kModel + axes), dir_ / "g.yaml")), "micro_batch_size: 6"));
  must(store_->ensure_sweep(row));
  const json now = trials(axes).at(0);
  EXPECT_EQ(now.at("micro_batch_size"), 6);
  EXPECT_EQ(now.value("tp", 1), 1) << "it had no such value";
}

TEST_F(SuggestedTest, AGridWithoutATrialTakesNothing) {
  measured("before", kEarlier);
  EXPECT_EQ(plan("base: {hardware: cpu, gpus_per_node: 4, dp: 3}\ngrid: {tp: [1]}\n").code, kAnswered);
}

TEST_F(SuggestedTest, SeveralModelsOrMachinesAreRefused) {
  measured("before", kEarlier);
  EXPECT_EQ(plan("base: {gpus_per_node: 1}\ngrid: {hardware: [cpu, a100-80gb]}\n").code, kBadInput);
}

TEST_F(SuggestedTest, TheSectionOverridesNothingAndMovesNoLine) {
  for (const std::string& text :
       {"name: g\n" + (kModel + std::string("base: {tp: 2}")),
        std::string(R"({"name": "g", "model": "tiny-llama", "base": {"tp": 2}})"),
        std::string("  name: g\n  model: tiny-llama\n  base: {tp: 2}  # the end\n")}) {
    const auto grid = must(grid::read_text(text, "g.yaml"));
    EXPECT_TRUE(grid::leaves_unset(grid, "zero"));
    EXPECT_FALSE(grid::leaves_unset(grid, "dp")) << "it follows from the ranks";
    const auto again = must(grid::read_text(must(grid::with_suggested(grid, "zero: 1, tp: 4")), "g.yaml"));
    must(grid::expand(again, [&](PlanEntry&& entry) {
      EXPECT_EQ(entry.trial.zero, 1);
      EXPECT_EQ(entry.trial.tp, 2);
      return true;
    }));
    EXPECT_EQ(again.suggested, "zero: 1, tp: 4");
  }
}

}  // namespace
}  // namespace sweep::cli
