#include "orchestrator/answers/statistics/best.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/expected.h"
#include "tests/support/error_matchers.h"
#include "tests/support/must.h"
#include "tests/unit/answers/rows.h"

namespace sweep::answers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Statistics, QuantilesInterpolate) {
  EXPECT_EQ(quantile({}, 0.5), std::nullopt);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(quantile({10, 20, 30, 40, 50}, 0.25), 20);
  EXPECT_EQ(quantile({7}, 1), 7);
}

TEST(Statistics, TheIntervalOfARateIsTheStepTimesTurnedRound) {
  const ResultRow row = ok_row("a", 1, 100, 0.1);
  const auto interval = must(interval_of(row, "tokens_per_s_gpu"));
  EXPECT_NEAR(interval.low, 100 / 1.1, 1e-9);
  EXPECT_NEAR(interval.high, 100 / 0.9, 1e-9);
  EXPECT_FALSE(interval_of(row, "peak_allocated_bytes"));
  EXPECT_FALSE(interval_of(bad_row("b", 1, Outcome::kOom, ""), "step_ms"));
}

TEST(Best, HowManyTieIsAbsentWhereItCannotBeTold) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 100), ok_row("b", 2, 300), ok_row("c", 4, 299)};
  EXPECT_EQ(ties_of(best(rows, {})->front()), Value{i64{1}});
  rows.pop_back();
  EXPECT_EQ(ties_of(best(rows, {})->front()), Value{i64{0}});
  for (ResultRow& row : rows) row.metrics.step_ms_ci_low.reset(), row.metrics.step_ms_ci_high.reset();
  const auto groups = best(rows, {});
  EXPECT_EQ(ties_of(groups->front()), Value{});
  const Table table = best_table(varying(rows), *groups, {});
  const auto column = std::ranges::find(table.columns, "ties") - table.columns.begin();
  EXPECT_EQ(table.rows.front().at(std::size_t(column)), Value{});
  rows.pop_back();
  EXPECT_EQ(ties_of(best(rows, {})->front()), Value{i64{0}}) << "there is nothing else to tie with";
  EXPECT_EQ(ties_of(BestOfGroup()), Value{});
}

TEST(Best, TakesTheHighestRateAndTheLowestTime) {
  const std::vector<ResultRow> rows = {ok_row("a", 1, 100), ok_row("b", 2, 300), ok_row("c", 4, 200),
                                       bad_row("d", 8, Outcome::kOom, "")};
  for (const char* metric : {"tokens_per_s_gpu", "step_ms"}) {
    const auto groups = best(rows, {.metric = metric});
    ASSERT_TRUE(groups && groups->size() == 1);
    EXPECT_EQ(groups->front().winner->trial_id, "b") << metric;
    EXPECT_EQ(groups->front().ranked, 3);
    EXPECT_EQ(groups->front().not_ok, 1);
    EXPECT_EQ(groups->front().runners_up.front(), "c");
    EXPECT_TRUE(groups->front().ties.empty());
  }
}

TEST(Best, OverlappingIntervalsAreTies) {
  const std::vector<ResultRow> rows = {ok_row("a", 1, 100, 0.02), ok_row("b", 2, 101, 0.02),
                                       ok_row("c", 4, 50, 0.02)};
  const auto groups = must(best(rows, {}));
  EXPECT_EQ(groups.front().winner->trial_id, "b");
  ASSERT_EQ(groups.front().ties.size(), 1u);
  EXPECT_EQ(groups.front().ties.front(), "a");
  EXPECT_THAT(best_text(varying(rows), groups, {}, 0),
              HasSubstr("TIED with 1 more (95 % intervals overlap; any of them may be the best): a"));
}

TEST(Best, KnowsWhyTiesAreUnknown) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 100), ok_row("b", 2, 100), ok_row("c", 4, 50)};
  for (ResultRow& row : rows) row.metrics.step_ms_ci_low = row.metrics.step_ms_ci_high = std::nullopt;
  const auto why = [&](const BestOptions& with) { return why_no_interval(best(rows, with)->front(), with); };
  EXPECT_EQ(why({}), NoInterval::kImported);
  for (ResultRow& row : rows) row.metrics.timed_steps = 3, row.metrics.peak_allocated_bytes = 1;
  EXPECT_EQ(why({}), NoInterval::kFewSteps);
  EXPECT_EQ(why({.rehearsed = true}), NoInterval::kModelled);
  EXPECT_EQ(why({.metric = "peak_allocated_bytes"}), NoInterval::kMetric);
}

TEST(Best, GroupsThatThePlanPrunedAreCountedApart) {
  const std::vector<ResultRow> rows = {ok_row("a", 1, 100), bad_row("b", 1, Outcome::kPruned, "where"),
                                       bad_row("c", 2, Outcome::kPruned, "where"),
                                       bad_row("d", 4, Outcome::kPruned, "where"),
                                       bad_row("e", 4, Outcome::kOom, "")};
  const BestOptions options{.group_by = {"tp"}};
  const auto groups = *best(rows, options);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(std::tuple(groups[0].pruned, groups[1].pruned, groups[2].pruned), std::tuple(1, 1, 1));
  EXPECT_EQ(groups[2].not_ok, 1);
  EXPECT_FALSE(is_all_pruned(groups[0]));
  EXPECT_TRUE(is_all_pruned(groups[1]));
  EXPECT_FALSE(is_all_pruned(groups[2]));
}

TEST(Best, EqualValuesAreBrokenByIdSoThatTheAnswerIsStable) {
  const std::vector<ResultRow> rows = {ok_row("z", 1, 100), ok_row("a", 2, 100)};
  EXPECT_EQ(best(rows, {})->front().winner->trial_id, "a");
}

TEST(Best, GroupsInNaturalOrder) {
  std::vector<ResultRow> rows = {ok_row("a", 16, 1), ok_row("b", 2, 2), ok_row("c", 2, 3)};
  const auto groups = best(rows, {.group_by = {"model", "tp"}});
  ASSERT_TRUE(groups && groups->size() == 2);
  EXPECT_EQ(groups->at(0).key[1], Value{i64{2}});
  EXPECT_EQ(groups->at(0).winner->trial_id, "c");
}

TEST(Best, GroupsByALabelOfDerive) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 1), ok_row("b", 2, 2)};
  rows[0].trial.labels = R"({"size":"small"})";
  rows[1].trial.labels = R"({"size":"big"})";
  EXPECT_EQ(best(rows, {.group_by = {"size"}})->size(), 2u);
}

TEST(Best, HeadroomLeavesOutWhatIsTooFull) {
  std::vector<ResultRow> rows = {ok_row("full", 1, 300), ok_row("fits", 2, 200), ok_row("unknown", 4, 400)};
  for (auto& row : rows) row.trial.memory_cap_bytes = 1000;
  rows[0].metrics.peak_allocated_bytes = 951;
  rows[1].metrics.peak_allocated_bytes = 950;
  const BestOptions options{.headroom = 0.05};
  const auto groups = must(best(rows, options));
  EXPECT_EQ(groups.front().winner->trial_id, "fits");
  EXPECT_EQ(groups.front().too_full, 1);
  EXPECT_EQ(groups.front().unknown_headroom, 1);
  rows[1].metrics.peak_allocated_bytes = 990;
  const auto none = best(rows, options);
  EXPECT_FALSE(none->front().winner);
  EXPECT_THAT(none->front().why_none, HasSubstr("2 with less headroom than asked"));
  EXPECT_THAT(best_text(varying(rows), *none, options, 0), HasSubstr("nothing to rank"));
}

TEST(Best, HeadroomUsesTheMemoryOfTheHardware) {
  ResultRow row = ok_row("a", 1, 1);
  row.trial.hardware = "h100-sxm-80gb";
  EXPECT_GT(device_memory(row).value_or(0), i64{70} << 30);
  row.trial.hardware = "no such thing";
  EXPECT_EQ(device_memory(row), std::nullopt);
}

TEST(Best, ReadsHeadroom) {
  EXPECT_EQ(parse_share("5%", "headroom").value(), 0.05);
  EXPECT_EQ(parse_share("0.05", "headroom").value(), 0.05);
  for (const char* wrong : {"", "%", "five", "100%", "-1%", "nan", "5 %"})
    EXPECT_FALSE(parse_share(wrong, "headroom")) << wrong;
}

TEST(Best, UnknownNamesAreRefusedWithTheNearest) {
  const std::vector<ResultRow> rows = {ok_row("a", 1, 1)};
  EXPECT_THAT(best(rows, {.metric = "tokens_per_s_gpus"}).error(),
              AllOf(IsError(ErrorKind::kInvalidValue, "tokens_per_s_gpus"), Suggests("tokens_per_s_gpu")));
  EXPECT_THAT(best(rows, {.group_by = {"node"}}).error(),
              AllOf(IsError(ErrorKind::kUnknownName, "node"), Suggests("nodes")));
  EXPECT_FALSE(best(rows, {.metric = "throttle"}));
}

TEST(Best, PendingRowsAreNotRanked) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 1), ok_row("b", 2, 9)};
  rows[1].state = State::kRunning;
  const auto groups = best(rows, {});
  EXPECT_EQ(groups->front().winner->trial_id, "a");
  EXPECT_EQ(groups->front().not_run, 1);
}

TEST(BestYaml, IsAGridFileWithModelAndBase) {
  ResultRow row = ok_row("00ff", 4, 100);
  row.trial.hardware = "h100-sxm-80gb";
  row.trial.recompute = Recompute::kFull;
  row.trial.packing = true;
  row.trial.memory_cap_bytes = 1 << 20;
  EXPECT_EQ(as_grid_yaml(row), R"(name: best-00ff
model: llama3-8b
base:
  hardware: h100-sxm-80gb
  nodes: 1
  gpus_per_node: 1
  dp: 1
  tp: 4
  micro_batch_size: 1
  grad_accum: 1
  global_batch_size: 1
  seq_len: 1024
  precision: fp32
  recompute: full
  packing: true
  memory_cap_bytes: 1048576
)");
}

// The pasted file measured otherwise, and did not say what was swept at its default.
TEST(BestYaml, KeepsTheMeasuringPlanAndEverySweptAxis) {
  GridForm form{.swept = {"optimizer"},
                .measure = measure_of(
                    "s", *sweep_options_from(R"({"measure":{"warmup_steps":1,"steps":4,"repeats":2}})"))};
  const std::string yaml = as_grid_yaml(ok_row("a", 1, 10), form);
  EXPECT_NE(yaml.find("measure: {warmup_steps: 1, steps: 4, repeats: 2}\n"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("  optimizer: fused\n"), std::string::npos) << yaml;
  EXPECT_FALSE(measure_of("s", SweepOptions()).has_value());
  EXPECT_FALSE(measure_of("s.rehearsal",
                          *sweep_options_from(R"({"measure":{"warmup_steps":2,"steps":2,"repeats":1}})"))
                   .has_value());
}

TEST(Best, ByDefaultGroupsByWhatMakesResultsComparable) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 10), ok_row("b", 2, 20)};
  EXPECT_EQ(comparable_groups(varying(rows)), std::vector<std::string>{"model"});
  rows[0].trial.seq_len = 64, rows[1].trial.hardware = "h100-sxm-80gb";
  EXPECT_EQ(comparable_groups(varying(rows)), (std::vector<std::string>{"model", "hardware", "seq_len"}));
}

TEST(BestYaml, TextThatYamlWouldReadOtherwiseIsQuoted) {
  ResultRow row = ok_row("x", 1, 1);
  row.trial.spec = {};
  for (const char* model : {"yes", "null", "a: b", "#x", "1e3", "quote\"and\nline"}) {
    row.trial.model = model;
    const std::string yaml = as_grid_yaml(row);
    EXPECT_THAT(yaml, HasSubstr("\nmodel: \""));
    EXPECT_EQ(std::count(yaml.begin(), yaml.end(), '\n'), 12) << yaml;
  }
}

TEST(BestYaml, AModelOfNoCatalogueIsWrittenByItsDimensions) {
  ResultRow row = ok_row("x", 1, 1);
  row.trial.model = "mine";
  row.trial.spec.layers = 3;
  EXPECT_THAT(as_grid_yaml(row), HasSubstr("\nmodel: {name: mine, family: llama, layers: 3, "));
  EXPECT_THAT(as_grid_yaml(row), HasSubstr("tie_embeddings: false}"));
}

TEST(BestYaml, LatentAttentionIsWrittenByItsDimensions) {
  ResultRow row = ok_row("x", 1, 1);
  row.trial.model = "mine";
  row.trial.spec = *shape::find_model("tiny-deepseek");
  row.trial.spec.layers = 5;
  EXPECT_THAT(as_grid_yaml(row),
              HasSubstr("experts: 8, experts_per_token: 2, kv_lora_rank: 32, rope_head_dim: 8, "
                        "v_head_dim: 16, shared_experts: 2, dense_layers: 1, "
                        "dense_intermediate_size: 176, tie_embeddings: false}"));
}

TEST(BestYaml, WindowsAreWrittenByTheirDimensions) {
  ResultRow row = ok_row("x", 1, 1);
  row.trial.model = "mine";
  row.trial.spec = *shape::find_model("tiny-gemma3");
  row.trial.spec.layers = 9, row.trial.spec.query_pre_attn_scalar = 24;
  EXPECT_THAT(as_grid_yaml(row), HasSubstr("sliding_window: 16, sliding_window_pattern: 3, "
                                           "query_pre_attn_scalar: 24, tie_embeddings: true}"));
}

TEST(BestJson, SaysWhoWonAndFromHowMany) {
  const std::vector<ResultRow> rows = {ok_row("a", 1, 100), bad_row("b", 2, Outcome::kCrash, "x")};
  const auto json = nlohmann::json::parse(best_json(*best(rows, {}), {}));
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["winner"]["trial"], "a");
  EXPECT_EQ(json[0]["winner"]["configuration"]["tp"], 1);
  EXPECT_EQ(json[0]["group"]["model"], "llama3-8b");
  EXPECT_EQ(json[0]["not_ok"], 1);
  EXPECT_EQ(json[0]["interval"].size(), 2u);
}

}  // namespace
}  // namespace sweep::answers
