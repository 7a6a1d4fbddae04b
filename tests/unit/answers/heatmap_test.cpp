#include "orchestrator/answers/charts/heatmap.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "orchestrator/answers/statistics/best.h"
#include "tests/support/must.h"
#include "tests/unit/answers/rows.h"

namespace sweep::answers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ResultRow with_zero(ResultRow row, i64 zero) {
  row.trial.zero = zero;
  return row;
}

Heatmap tp_by_zero(std::span<const ResultRow> rows, std::string value = "tokens_per_s_gpu") {
  return heatmap(rows, {.rows = "tp",
                        .cols = "zero",
                        .value = std::move(value),
                        .objective = "",
                        .title = "",
                        .question = ""})
      .value();
}

TEST(Heatmap, AnAxisOfTheGridsOwnShowsItsUnit) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 10), ok_row("b", 2, 20)};
  rows[0].trial.labels = R"({"pause":1,"@units":{"pause":"ms"}})";
  rows[1].trial.labels = R"({"pause":2,"@units":{"pause":"ms"}})";
  const auto map = must(heatmap(rows, {.rows = "tp",
                                       .cols = "pause",
                                       .value = "tokens_per_s_gpu",
                                       .objective = "",
                                       .title = "",
                                       .question = ""}));
  EXPECT_THAT(to_svg(map), HasSubstr("pause [ms]"));
  const auto differ = varying(rows);
  ASSERT_EQ(differ.size(), 2u) << "the units are no label";
  EXPECT_EQ(differ[1].name(), "pause");
}

TEST(Heatmap, TellsEveryStateApart) {
  ResultRow pending = ok_row("p", 32, 1), unmeasured = ok_row("u", 64, 1);
  pending.state = State::kPending;
  unmeasured.metrics = {};
  const std::vector<ResultRow> rows = {with_zero(ok_row("a", 1, 10), 1),
                                       bad_row("b", 2, Outcome::kOom, ""),
                                       bad_row("c", 4, Outcome::kPruned, ""),
                                       bad_row("c2", 4, Outcome::kUnsupported, ""),
                                       bad_row("d", 8, Outcome::kHang, ""),
                                       bad_row("e", 16, Outcome::kOom, ""),
                                       bad_row("f", 16, Outcome::kCrash, ""),
                                       pending,
                                       unmeasured};
  const Heatmap map = tp_by_zero(rows);
  ASSERT_EQ(map.row_keys.size(), 7u);
  const std::vector<CellState> expected = {CellState::kEmpty,      CellState::kOom,   CellState::kPruned,
                                           CellState::kFailed,     CellState::kMixed, CellState::kPending,
                                           CellState::kNotMeasured};
  for (std::size_t r = 0; r < expected.size(); ++r) EXPECT_EQ(map.at(r, 0).state, expected[r]) << r;
  EXPECT_EQ(map.at(0, 1).state, CellState::kMeasured);
  EXPECT_EQ(map.at(4, 0).total(), 2);
}

TEST(Heatmap, AFailedNeighbourDoesNotHideAMeasuredOne) {
  const std::vector<ResultRow> rows = {bad_row("a", 1, Outcome::kOom, ""), ok_row("b", 1, 5),
                                       ok_row("c", 1, 7)};
  const Heatmap map = tp_by_zero(rows);
  EXPECT_EQ(map.at(0, 0).best->trial_id, "c");
  EXPECT_EQ(map.at(0, 0).count[0], 2);
  EXPECT_EQ(map.at(0, 0).total(), 3);
}

TEST(Heatmap, LowerIsBetterForTimes) {
  const std::vector<ResultRow> rows = {ok_row("slow", 1, 5), ok_row("fast", 1, 7)};
  EXPECT_EQ(tp_by_zero(rows, "step_ms").at(0, 0).best->trial_id, "fast");
}

TEST(Heatmap, TheObjectiveMayDifferFromTheValueShown) {
  std::vector<ResultRow> rows = {ok_row("slow", 1, 5), ok_row("fast", 1, 7)};
  rows[0].metrics.mfu = 0.5;
  rows[1].metrics.mfu = 0.25;
  const auto map = heatmap(rows, {.rows = "tp",
                                  .cols = "zero",
                                  .value = "mfu",
                                  .objective = "tokens_per_s_gpu",
                                  .title = "",
                                  .question = ""});
  EXPECT_EQ(map->at(0, 0).value, 0.25);
}

// A cell held the best over two models without a word.
TEST(Heatmap, ACellComparesOneModelUnlessSeveralAreAskedFor) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 10), ok_row("b", 2, 20), ok_row("c", 2, 30),
                                 ok_row("other", 1, 99)};
  rows[3].trial.model = "tiny";
  const Heatmap map = tp_by_zero(rows);
  ASSERT_EQ(map.slices.size(), 1u);
  EXPECT_EQ(map.slices[0].axis.name(), "model");
  EXPECT_EQ(map.slices[0].values[map.slices[0].kept], Value{std::string("llama3-8b")});
  EXPECT_EQ(map.at(0, 0).best->trial_id, "a");
  EXPECT_EQ(map.count[0], 3);
  const auto mixed = heatmap(rows, {.rows = "tp", .cols = "zero", .chosen = {"model"}});
  EXPECT_TRUE(mixed->slices.empty());
  EXPECT_EQ(mixed->at(0, 0).best->trial_id, "other");
  EXPECT_FALSE(mix_warning(*mixed).empty());
  EXPECT_EQ(cell_text(*mixed->at(0, 0).best, cell_lines(*mixed)).front(), "tiny")
      << "the cell names its model";
  const auto by_model = heatmap(rows, {.rows = "model", .cols = "tp"});
  EXPECT_TRUE(by_model->slices.empty()) << "rows keep them apart already";
  EXPECT_TRUE(mix_warning(*by_model).empty());
}

TEST(Heatmap, SaysOverWhatACellIsTheBest) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 10), ok_row("b", 1, 20), ok_row("c", 2, 30)};
  rows[1].trial.nodes = 4;
  const Heatmap map = tp_by_zero(rows);
  ASSERT_EQ(map.hidden.size(), 1u);
  EXPECT_EQ(map.hidden[0].axis.name(), "nodes");
  EXPECT_EQ(map.hidden[0].values, 2u);
}

TEST(Heatmap, MarksTheBestOfAllOfEachRowAndOfEachColumn) {
  const std::vector<ResultRow> rows = {ok_row("a", 1, 10), with_zero(ok_row("b", 1, 20), 1),
                                       ok_row("c", 2, 30), with_zero(bad_row("d", 2, Outcome::kOom, ""), 1)};
  const Heatmap map = tp_by_zero(rows);
  EXPECT_EQ(map.best, 2u);
  EXPECT_EQ(map.best_of_row, (std::vector<std::optional<std::size_t>>{1, 2}));
  EXPECT_EQ(map.best_of_col, (std::vector<std::optional<std::size_t>>{2, 1}));
}

TEST(Heatmap, ACellThatWaitsIsNotOneThatFailed) {
  ResultRow pending = ok_row("p", 1, 1);
  pending.state = State::kPending;
  const std::vector<ResultRow> rows = {bad_row("a", 1, Outcome::kPruned, ""), pending};
  EXPECT_EQ(tp_by_zero(rows).at(0, 0).state, CellState::kPending);
}

TEST(Heatmap, AnAxisThatWasNeverResolvedStandsLast) {
  std::vector<ResultRow> rows = {bad_row("a", 1, Outcome::kPruned, ""), ok_row("b", 1, 20)};
  rows[0].trial.dp = 0;
  const auto map = heatmap(rows, {.rows = "dp", .cols = "tp"});
  EXPECT_EQ(map->row_keys, (std::vector<Value>{Value{i64{1}}, Value{}}));
  EXPECT_EQ(cells_table(*map).rows[1][0], Value{});
}

TEST(Heatmap, AxisValuesAreInTheOrderOfNumbers) {
  const std::vector<ResultRow> rows = {ok_row("a", 16, 1), ok_row("b", 2, 1), ok_row("c", 128, 1)};
  const Heatmap map = tp_by_zero(rows);
  EXPECT_EQ(map.row_keys, (std::vector<Value>{Value{i64{2}}, Value{i64{16}}, Value{i64{128}}}));
}

TEST(Heatmap, ByDefaultTheAxesWithMostValuesAreTaken) {
  std::vector<ResultRow> rows;
  for (i64 i = 0; i < 6; ++i) {
    rows.push_back(with_zero(ok_row(std::to_string(i), i, 1), i % 3));
    rows.back().trial.micro_batch_size = i % 2;
  }
  const auto map = heatmap(rows, {});
  EXPECT_EQ(map->rows.name(), "tp");
  EXPECT_EQ(map->cols.name(), "zero");
  EXPECT_TRUE(heatmap({}, {})) << "no results are an empty picture, not an error";
}

TEST(Heatmap, RefusesWhatMakesNoPicture) {
  const std::vector<ResultRow> rows = {ok_row("a", 1, 1)};
  const auto with = [&](HeatmapOptions options) { return heatmap(rows, options); };
  EXPECT_THAT(with({.rows = "tp", .cols = "tp"}).error().message, HasSubstr("two different axes"));
  EXPECT_THAT(with({.rows = "modell"}).error().message, HasSubstr("'model'"));
  EXPECT_FALSE(with({.value = "outcome"}));
  std::vector<ResultRow> many;
  for (i64 i = 0; i < 200; ++i) many.push_back(with_zero(ok_row("x", i, 1), i));
  EXPECT_THAT(heatmap(many, {.rows = "tp", .cols = "zero"}).error().message,
              HasSubstr("more than 10000 cells"));
}

TEST(HeatmapTable, HasOneRowPerCellWithItsCounts) {
  const std::vector<ResultRow> rows = {ok_row("a", 1, 10), bad_row("b", 2, Outcome::kOom, "")};
  const Table table = cells_table(tp_by_zero(rows));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.columns[3], "tokens_per_s_gpu");
  EXPECT_EQ(table.rows[1][2], Value{std::string("oom")});
  EXPECT_EQ(table.rows[1][3], Value{});
}

// The JSON of the page's data element.
nlohmann::json data_of(const std::string& html) {
  const std::string open = "id=\"data\">";
  const auto from = html.find(open) + open.size();
  return nlohmann::json::parse(html.substr(from, html.find("</script>", from) - from));
}

TEST(HeatmapHtml, HostileTextNeverBecomesMarkup) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 10),
                                 bad_row("b", 2, Outcome::kCrash, "</script><script>alert(1)</script><!--")};
  rows[1].trial.model = "<img src=x onerror=alert(1)>\xff";
  const auto map = heatmap(rows, {.rows = "model",
                                  .cols = "tp",
                                  .value = "tokens_per_s_gpu",
                                  .objective = "",
                                  .title = "</title><b>",
                                  .question = "<i>&"});
  for (const std::string& page : {to_html(*map, rows), to_svg(*map)}) {
    for (const char* markup : {"<img", "alert(1)</script>", "<!--", "<b>", "<i>", "\xff"})
      EXPECT_THAT(page, Not(HasSubstr(markup)));
  }
  const auto data = data_of(to_html(*map, rows));
  EXPECT_EQ(data["reasons"][1], "</script><script>alert(1)</script><!--") << "the text itself is kept";
}

TEST(HeatmapHtml, HoldsEveryConfigurationInCompactColumns) {
  const std::vector<ResultRow> rows = {ok_row("a", 16, 10), ok_row("b", 2, 20),
                                       bad_row("c", 2, Outcome::kOom, "full")};
  const auto data = data_of(to_html(tp_by_zero(rows), rows));
  EXPECT_EQ(data["n"], 3);
  EXPECT_EQ(data["axes"][0]["key"], "tp");
  EXPECT_EQ(data["axes"][0]["values"], nlohmann::json({"2", "16"}));
  EXPECT_EQ(data["axes"][0]["of"], nlohmann::json({1, 0, 0}));
  EXPECT_EQ(data["metrics"][0]["of"], "10,20,");
  EXPECT_EQ(data["metrics"][0]["text"], "10.0,20.0,");
  EXPECT_EQ(data["metrics"][0]["rank"], "1,0,") << "what has no value has no place";
  EXPECT_EQ(data["axes"][0]["settings"], nlohmann::json({"TP2", "TP16"}));
  EXPECT_EQ(data["cell_outcome"], "001");
  EXPECT_EQ(data["ids"], nlohmann::json({"a", "b", "c"}));
}

// Nine digits made the two peaks one.
TEST(HeatmapHtml, HoldsValuesAsStored) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 1.0 / 3), ok_row("b", 2, 20)};
  rows[0].metrics.peak_allocated_bytes = 54223962113, rows[1].metrics.peak_allocated_bytes = 54223962112;
  const auto metrics = data_of(to_html(tp_by_zero(rows), rows))["metrics"];
  const auto of = [&](const char* key) {
    return std::ranges::find_if(metrics, [&](const auto& metric) { return metric["key"] == key; })->at("of");
  };
  EXPECT_EQ(of("peak_allocated_bytes"), "54223962113,54223962112");
  EXPECT_EQ(of("tokens_per_s_gpu"), "0.3333333333333333,20");
}

// Six digits gave two values one label, and their cells one key.
TEST(HeatmapHtml, ValuesOfAnAxisThatDifferHaveLabelsThatDo) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 10), ok_row("b", 2, 20)};
  rows[0].trial.labels = R"({"lr":0.00012345678})", rows[1].trial.labels = R"({"lr":0.00012345679})";
  const auto map = *heatmap(rows, {.rows = "tp", .cols = "lr"});
  EXPECT_EQ(data_of(to_html(map, rows))["axes"].back()["values"],
            nlohmann::json({"0.00012345678", "0.00012345679"}));
}

// Cells that `best` cannot tell apart have no star here either.
TEST(Heatmap, CellsThatTieWithTheBestAreMarkedAndNoneIsTheWinner) {
  const std::vector<ResultRow> rows = {ok_row("a", 1, 100, 0.02), ok_row("b", 2, 101, 0.02),
                                       ok_row("c", 4, 50, 0.02)};
  const auto map = tp_by_zero(rows);
  EXPECT_FALSE(has_winner(map));
  EXPECT_TRUE(map.at(0, 0).tied);
  EXPECT_TRUE(map.at(1, 0).tied);
  EXPECT_FALSE(map.at(2, 0).tied);
  EXPECT_EQ(best(rows, {})->front().ties.size(), 1u) << "the same rule";
  const std::string svg = to_svg(map);
  EXPECT_THAT(svg, HasSubstr("class=\"tied\""));
  EXPECT_THAT(svg, Not(HasSubstr("★")));
  EXPECT_THAT(svg, Not(HasSubstr("class=\"best\"")));
  const auto data = data_of(to_html(map, rows));
  EXPECT_EQ(data["spreads"][0]["low"], "0.98,0.98,0.98");
  EXPECT_EQ(data["spreads"][0]["high"], "1.02,1.02,1.02");
  EXPECT_EQ(data["spreads"][1]["low"], "0.980392157,0.980392157,0.980392157");
  EXPECT_EQ(data["metrics"][0]["spread"], 1) << "a rate falls as the step time grows";
  EXPECT_EQ(data["metrics"][0]["rank"], "1,0,2");
  EXPECT_EQ(data["metrics"][0]["text"], "100,101,50.0");
  EXPECT_TRUE(has_winner(tp_by_zero(std::vector{rows[0], rows[2]})));
}

TEST(Heatmap, ATrialThatWasStoppedEarlyIsShownWhereNoOtherIsAndIsNeverTheBest) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 900), ok_row("b", 1, 100), ok_row("c", 2, 800),
                                 ok_row("d", 4, 90)};
  rows[0].metrics.steps_saved = rows[2].metrics.steps_saved = 5;
  const auto map = tp_by_zero(rows);
  EXPECT_EQ(map.at(0, 0).best->trial_id, "b");
  EXPECT_EQ(map.at(1, 0).best->trial_id, "c");
  ASSERT_TRUE(map.best);
  EXPECT_EQ(map.cells[*map.best].best->trial_id, "b");
  EXPECT_EQ(map.best_of_row[1], std::nullopt);
  const auto data = data_of(to_html(map, rows));
  EXPECT_EQ(data["stopped"], nlohmann::json({0, 2}));
  EXPECT_EQ(data["metrics"][0]["rank"], "2,0,3,1") << "those that were stopped come last";
}

// The global batch follows from the micro-batch: together they would draw a diagonal.
TEST(Heatmap, ASweepOfOneAxisIsOneRow) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 1), ok_row("b", 1, 2), ok_row("c", 1, 3)};
  for (std::size_t i = 0; i < 3; ++i)
    rows[i].trial.micro_batch_size = i64{1} << i, rows[i].trial.global_batch_size = i64{8} << i;
  const auto map = *heatmap(rows, {});
  EXPECT_EQ(std::tuple(map.rows.name(), map.cols.name()), std::tuple("model", "micro_batch_size"));
  EXPECT_EQ(map.cells.size(), 3u);
  rows.push_back(ok_row("d", 2, 4));
  EXPECT_EQ(heatmap(rows, {})->cells.size(), 6u) << "tp by micro_batch_size";
}

// dp follows from the nodes, and matters as much as they do; the ZeRO stage matters less and does not.
TEST(Heatmap, AxesThatTellEachOtherAreNotDrawnAgainstEachOther) {
  std::vector<ResultRow> rows;
  for (const i64 nodes : {1, 2, 4, 8})
    for (const i64 zero : {0, 1}) {
      auto& row = rows.emplace_back(
          with_zero(ok_row(fmt::format("{}{}", nodes, zero), 1, double(1000 / nodes + zero)), zero));
      row.trial.nodes = nodes, row.trial.dp = 8 * nodes;
    }
  const auto map = *heatmap(rows, {});
  EXPECT_EQ(std::set<std::string>({std::string(map.rows.name()), std::string(map.cols.name())}),
            std::set<std::string>({"nodes", "zero"}));
  EXPECT_EQ(heatmap(rows, {.rows = "dp"})->cols.name(), "zero");
}

TEST(HeatmapSvg, DrawsValuesCountsAndLegend) {
  const std::vector<ResultRow> rows = {ok_row("a", 1, 12345), ok_row("a2", 1, 5),
                                       bad_row("b", 2, Outcome::kOom, "")};
  const std::string svg = to_svg(tp_by_zero(rows));
  EXPECT_THAT(svg, HasSubstr(">★ 12.3k<")) << "the best cell is marked";
  EXPECT_THAT(svg, HasSubstr("class=\"best\""));
  EXPECT_THAT(svg, HasSubstr(">2 of 2 ok<"));
  EXPECT_THAT(svg, HasSubstr(">OOM<"));
  EXPECT_THAT(svg, HasSubstr("brighter is better"));
}

}  // namespace
}  // namespace sweep::answers
