#include "orchestrator/answers/tables/source_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/count.h"
#include "orchestrator/answers/statistics/batch_curve.h"
#include "orchestrator/answers/tables/tables.h"
#include "tests/unit/answers/rows.h"

namespace sweep::answers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The first table of Lightning's minGPT FSDP benchmark (4 x V100-16): batch, MB, usage and its deviation,
// TFLOP/s, ms.
struct Published {
  i64 batch, megabytes;
  double usage, deviation, tflops, ms;
  i64 retries;
};
constexpr Published kLightning[] = {{1, 9028, 71.9, 22.0, 6.28, 823, 0},
                                    {2, 10510, 70.4, 19.1, 12.68, 754, 0},
                                    {4, 12488, 79.9, 15.6, 24.96, 744, 0},
                                    {7, 14736, 86.2, 9.7, 43.52, 748, 0},
                                    {8, 14992, 88.1, 6.8, 36.8, 1676, 4}};

ResultRow batch_row(i64 batch, Outcome outcome = Outcome::kOk) {
  ResultRow row = ok_row("b" + std::to_string(batch), 1, 10 * double(batch));
  row.trial.micro_batch_size = batch;
  row.outcome = outcome;
  row.metrics.alloc_retries = 0;
  if (outcome != Outcome::kOk) row.metrics = {};
  return row;
}

std::vector<ResultRow> lightning() {
  std::vector<ResultRow> rows;
  for (const Published& p : kLightning) {
    ResultRow& row = rows.emplace_back(batch_row(p.batch));
    row.metrics.peak_reserved_bytes = p.megabytes * 1'000'000;
    row.metrics.util_mean = p.usage, row.metrics.util_sd = p.deviation;
    row.metrics.tflops_gpu = p.tflops, row.metrics.step_ms = p.ms, row.metrics.alloc_retries = p.retries;
  }
  rows.push_back(batch_row(9, Outcome::kOom));
  return rows;
}

TEST(BatchTable, LightningsStarIsTheLargestBatchBeforeRetries) {
  const auto rows = lightning();
  const auto curves = batch_curves(rows, setting_fields(rows));
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_EQ(curves[0].points[*curves[0].star].batch, 7);
  EXPECT_EQ(curves[0].retries_from, 8);
  EXPECT_EQ(curves[0].oom_at, 9);
  const auto answer = source_table(SourceTable::kBatch, rows);
  const std::string text = to_text(for_people(answer.table));
  EXPECT_THAT(text, HasSubstr("7 ★"));
  EXPECT_THAT(text, HasSubstr("86.2 ± 9.7"));
  EXPECT_THAT(text, HasSubstr("cudaMalloc retries"));
  EXPECT_THAT(text, HasSubstr("out of memory"));
}

TEST(BatchTable, NoStarWithoutALimitOrWithoutACount) {
  std::vector<ResultRow> rows = {batch_row(1), batch_row(2)};
  EXPECT_THAT(batch_curves(rows, {})[0].why_no_star, HasSubstr("no limit was reached"));
  rows.push_back(batch_row(4, Outcome::kOom));
  EXPECT_EQ(batch_curves(rows, {})[0].star, 1u);
  rows[1].metrics.alloc_retries.reset();
  EXPECT_THAT(batch_curves(rows, {})[0].why_no_star, HasSubstr("not measured"));
  const std::vector<ResultRow> oom = {batch_row(1, Outcome::kOom), batch_row(2, Outcome::kOom)};
  EXPECT_THAT(batch_curves(oom, {})[0].why_no_star, HasSubstr("no batch ended ok"));
}

TEST(BatchTable, EachSettingHasACurveOfItsOwn) {
  std::vector<ResultRow> rows = lightning();
  rows.push_back(batch_row(64));
  rows.back().trial.recompute = Recompute::kFull;
  EXPECT_EQ(batch_curves(rows, setting_fields(rows)).size(), 2u);
}

TEST(BatchTable, ACommandThatKnowsNoMicroBatchHasNone) {
  ResultRow row = batch_row(1);
  row.trial.workload = Workload::kCommand, row.trial.spec = {};
  row.trial.labels = R"({"@axes":" hardware dp "})";
  const std::vector<ResultRow> rows = {row};
  for (const auto kind : {SourceTable::kBatch, SourceTable::kMaxBatch, SourceTable::kMaxModel}) {
    const auto answer = source_table(kind, rows);
    EXPECT_TRUE(answer.table.rows.empty());
    EXPECT_THAT(answer.notes, ElementsAre(HasSubstr("No trial that ran has a")));
  }
}

ResultRow model_row(i64 layers, i64 nodes, Outcome outcome) {
  ResultRow row = batch_row(16, outcome);
  row.trial.model = "gpt2-layers-" + std::to_string(layers);
  row.trial.spec = *shape::find_model("gpt2");
  row.trial.spec.layers = layers, row.trial.nodes = nodes;
  return row;
}

TEST(MaxModelTable, TheMostParametersThatFitOnEachNodeCount) {
  const std::vector<ResultRow> rows = {model_row(100, 1, Outcome::kOom), model_row(48, 1, Outcome::kOk),
                                       model_row(12, 1, Outcome::kOk), model_row(100, 2, Outcome::kOk),
                                       model_row(12, 4, Outcome::kOom)};
  const auto answer = source_table(SourceTable::kMaxModel, rows);
  const auto cell = [&](std::size_t row, std::string_view column) {
    const auto& names = answer.table.columns;
    return answer.table.rows.at(row).at(std::size_t(std::ranges::find(names, column) - names.begin()));
  };
  ASSERT_EQ(answer.table.rows.size(), 3u);
  EXPECT_EQ(cell(0, "max_model"), Value{std::string("gpt2-layers-48")});
  EXPECT_EQ(cell(0, "parameters"), Value{shape::parameter_count(rows[1].trial.spec)});
  EXPECT_EQ(cell(0, "note"), Value{std::string("out of memory with gpt2-layers-100")});
  EXPECT_EQ(cell(1, "max_model"), Value{std::string("gpt2-layers-100")});
  EXPECT_EQ(cell(2, "max_model"), Value{});
  EXPECT_EQ(cell(2, "parameters"), Value{});
  EXPECT_EQ(cell(2, "step_ms"), Value{});
}

// The chapter's comparison: DDP runs out of memory at batch 1, ZeRO-3 with offloading trains 16.
TEST(MaxBatchTable, DdpAgainstZero) {
  ResultRow ddp = batch_row(1, Outcome::kOom);
  ddp.trial.dp = 2;
  std::vector<ResultRow> rows = {ddp};
  for (const i64 batch : {8, 16, 32}) {
    ResultRow& row = rows.emplace_back(batch_row(batch, batch == 32 ? Outcome::kOom : Outcome::kOk));
    row.trial.dp = 2, row.trial.zero = 3, row.trial.offload = Offload::kOptimizer;
    if (batch < 32) row.metrics.tokens_per_s = 1000.0 * double(batch);
  }
  const auto answer = source_table(SourceTable::kMaxBatch, rows, {.epoch_tokens = 32e6});
  ASSERT_EQ(answer.table.rows.size(), 2u);
  const auto cell = [&](std::size_t row, std::string_view column) {
    const auto& names = answer.table.columns;
    return answer.table.rows[row][std::size_t(std::find(names.begin(), names.end(), column) - names.begin())];
  };
  EXPECT_EQ(cell(0, "method"), Value{std::string("DDP")});
  EXPECT_EQ(cell(0, "max_batch"), Value{});
  EXPECT_EQ(cell(0, "note"), Value{std::string("out of memory already at 1")});
  EXPECT_EQ(cell(1, "method"), Value{std::string("ZeRO-3 + optimizer offload")});
  EXPECT_EQ(cell(1, "max_batch"), Value{i64{16}});
  EXPECT_EQ(cell(1, "epoch_s"), Value{2000.0});
  EXPECT_EQ(cell(1, "note"), Value{std::string("out of memory at 32")});
}

TEST(ScalingTable, EfficiencyIsAgainstTheFewestNodesMeasured) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 100), ok_row("b", 2, 90), ok_row("c", 1, 80),
                                 bad_row("d", 1, Outcome::kOom, "")};
  rows[0].trial.nodes = rows[1].trial.nodes = 2, rows[2].trial.nodes = 8;  // one node: only an OOM
  const auto curves = scaling_curves(rows);
  ASSERT_EQ(curves.size(), 1u);
  ASSERT_EQ(curves[0].points.size(), 3u);
  EXPECT_EQ(curves[0].points[0].best, nullptr);
  EXPECT_EQ(curves[0].points[1].best->trial_id, "a");
  EXPECT_EQ(curves[0].points[1].efficiency, 1.0);
  EXPECT_EQ(curves[0].points[2].efficiency, 0.8);
}

TEST(ScalingTable, OfEqualRatesTheSmallerIdIsTheBest) {
  const std::vector<ResultRow> rows = {ok_row("b", 1, 90), ok_row("a", 2, 90)};
  const auto curves = scaling_curves(rows);
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_EQ(curves[0].points.at(0).best->trial_id, "a");
}

TEST(ScalingTable, ATrialThatWasStoppedEarlyIsNotTheBest) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 95), ok_row("b", 2, 90)};
  rows[0].metrics.steps_saved = 8;
  EXPECT_EQ(scaling_curves(rows).at(0).points.at(0).best->trial_id, "b");
}

TEST(CostTable, ATrialThatWasStoppedEarlyHasNoStar) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 95), ok_row("b", 2, 90)};
  for (ResultRow& row : rows)
    row.metrics.mt_per_hour = *row.metrics.tokens_per_s_gpu,
    row.metrics.cost_per_mt = 1 / *row.metrics.tokens_per_s_gpu;
  rows[0].metrics.steps_saved = 8;
  for (const i64 batch : {1, 2}) {  // in a place of its own, and beside the other
    rows[0].trial.micro_batch_size = batch, rows[1].trial.micro_batch_size = 1;
    const auto table = source_table(SourceTable::kCost, rows).table;
    const auto at = [&](std::string_view name) {
      return std::size_t(std::ranges::find(table.columns, name) - table.columns.begin());
    };
    for (const auto& line : table.rows)
      EXPECT_EQ(line[at("star")] != Value{}, line[at("trial")] == Value{std::string("b")});
  }
}

TEST(CostTable, OfEqualCostsTheSmallerIdHasTheStar) {
  std::vector<ResultRow> rows = {useful_row("b", 100, 1), useful_row("a", 100, 1)};
  rows[1].trial.micro_batch_size = 2;
  const auto table = source_table(SourceTable::kCost, rows).table;
  const auto at = [&](std::string_view name) {
    return std::size_t(std::ranges::find(table.columns, name) - table.columns.begin());
  };
  ASSERT_EQ(table.rows.size(), 2u);
  for (const auto& line : table.rows)
    EXPECT_EQ(line[at("star")] != Value{}, line[at("trial")] == Value{std::string("a")});
}

TEST(CostTable, TheStarIsTheCheapestBatchOfItsContext) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 100), ok_row("b", 1, 100), ok_row("c", 1, 100)};
  const double cost[] = {2.0, 1.0, 3.0};
  for (std::size_t i = 0; i < 3; ++i) {
    rows[i].trial.micro_batch_size = i64(i) + 1;
    rows[i].metrics.mt_per_hour = 10 / cost[i], rows[i].metrics.cost_per_mt = cost[i];
  }
  rows[2].trial.seq_len = 4096;
  const auto answer = source_table(SourceTable::kCost, rows);
  ASSERT_EQ(answer.table.rows.size(), 3u);
  const auto star = std::size_t(std::find(answer.table.columns.begin(), answer.table.columns.end(), "star") -
                                answer.table.columns.begin());
  EXPECT_EQ(answer.table.rows[0][star], Value{});
  EXPECT_NE(answer.table.rows[1][star], Value{});
  EXPECT_NE(answer.table.rows[2][star], Value{});  // alone in its context
}

// The value of a column in the only row of a table.
Value only(const SourceTableAnswer& answer, std::string_view column) {
  EXPECT_EQ(answer.table.rows.size(), 1u);
  const auto at = std::ranges::find(answer.table.columns, column) - answer.table.columns.begin();
  return answer.table.rows.at(0).at(static_cast<std::size_t>(at));
}

TEST(SourceTables, RankByUsefulTokensWhereAResultHasPadding) {
  std::vector<ResultRow> rows = {useful_row("padded", 900, 0.1), useful_row("packed", 500, 1)};
  rows[1].trial.packing = true;
  for (const auto kind : {SourceTable::kCost, SourceTable::kScaling}) {
    const auto answer = source_table(kind, rows);
    EXPECT_EQ(only(answer, "trial"), Value{std::string("packed")});
    EXPECT_EQ(only(answer, "useful_tokens_per_s"), Value{500.0});
  }
  EXPECT_EQ(only(source_table(SourceTable::kCost, rows), "useful_cost_per_mt"),
            Value{*rows[1].metrics.useful_cost_per_mt});
  rows.erase(rows.begin() + 1);
  EXPECT_EQ(only(source_table(SourceTable::kBatch, rows), "useful_tokens_per_s_gpu"), Value{90.0});
  EXPECT_EQ(only(source_table(SourceTable::kMaxBatch, rows, {.epoch_tokens = 180}), "epoch_s"), Value{2.0});
  rows[0] = useful_row("all", 900, 1);
  const auto columns = source_table(SourceTable::kCost, rows).table.columns;
  EXPECT_EQ(std::ranges::count(columns, "useful_tokens_per_s"), 0) << "they are all tokens";
}

TEST(BatchTable, OfEqualBatchesTheOneWithMoreUsefulTokensIsShown) {
  const std::vector<ResultRow> rows = {useful_row("a", 900, 0.1), useful_row("b", 500, 1)};
  EXPECT_EQ(batch_curves(rows, {}).at(0).points.at(0).row->trial_id, "b");
}

TEST(BatchTable, OfEqualBatchesOneThatRanToItsEndIsShown) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 95), ok_row("b", 1, 90)};
  rows[0].metrics.steps_saved = 8;
  EXPECT_EQ(batch_curves(rows, {}).at(0).points.at(0).row->trial_id, "b");
}

TEST(CostTable, TheCostOfARunStandsBesideWhereItIsAnother) {
  std::vector<ResultRow> rows = {useful_row("a", 900, 1)};
  rows[0].metrics.run_cost_per_mt = rows[0].metrics.cost_per_mt;
  EXPECT_EQ(std::ranges::count(source_table(SourceTable::kCost, rows).table.columns, "run_cost_per_mt"), 0);
  rows[0].metrics.run_cost_per_mt = 7.0;
  EXPECT_EQ(only(source_table(SourceTable::kCost, rows), "run_cost_per_mt"), Value{7.0});
  rows[0].metrics.useful_fraction = 0.5, rows[0].metrics.useful_run_cost_per_mt = 14.0;
  EXPECT_EQ(only(source_table(SourceTable::kCost, rows), "useful_run_cost_per_mt"), Value{14.0});
}

// The faster of two batches evaluates longer: its run costs more. Beside it another layout of the same batch.
TEST(CostTable, TheStarGoesByTheCostOfTheRunWhereThatIsShown) {
  std::vector<ResultRow> rows = {useful_row("a", 1000, 1), useful_row("b", 900, 1), useful_row("c", 950, 1)};
  for (std::size_t i = 0; i < 3; ++i) rows[i].trial.micro_batch_size = i == 0 ? 1 : 2;
  const auto starred = [&] {
    std::vector<Value> out;
    const Table table = source_table(SourceTable::kCost, rows).table;
    const auto at = [&](const char* name) {
      return static_cast<std::size_t>(std::ranges::find(table.columns, name) - table.columns.begin());
    };
    for (const auto& line : table.rows)
      if (line[at("star")] != Value{}) out.push_back(line[at("trial")]);
    return out;
  };
  EXPECT_EQ(starred(), std::vector{Value{std::string("a")}}) << "the fastest";
  for (ResultRow& row : rows)
    row.metrics.run_cost_per_mt = *row.metrics.cost_per_mt * (row.trial_id == "b" ? 1.1 : 2);
  EXPECT_EQ(starred(), std::vector{Value{std::string("b")}});
}

TEST(SourceTables, NothingMeasuredIsSaid) {
  const std::vector<ResultRow> none;
  const std::vector<ResultRow> oom = {bad_row("a", 1, Outcome::kOom, "r")};
  for (const auto name : source_table_names()) {
    const auto kind = *source_table_from(name);
    EXPECT_THAT(source_table(kind, none).notes.front(), HasSubstr("Nothing was measured")) << name;
    EXPECT_FALSE(to_text(for_people(source_table(kind, oom).table)).empty()) << name;
  }
  EXPECT_FALSE(source_table_from("prices"));
}

}  // namespace
}  // namespace sweep::answers
