#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "orchestrator/answers/charts/chart.h"
#include "orchestrator/answers/pages/report_page.h"
#include "orchestrator/answers/statistics/best.h"
#include "orchestrator/answers/statistics/prices.h"
#include "orchestrator/answers/tables/measured.h"
#include "tests/support/must.h"
#include "tests/unit/answers/rows.h"

namespace sweep::answers {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHostile = "\"'><script>pwned()</script>&é漢\x01\xff";

std::string page_of(std::span<const ResultRow> rows) {
  ReportInput in;
  in.sweep = in.question = in.grid_path = in.grid_text = in.db = kHostile;
  in.options.launcher = "<script>pwned()</script>";
  in.rows = rows;
  Environment node;
  node.allocation = "a1", node.launcher = node.host = kHostile, node.results = 1;
  node.facts.driver = "<script>pwned()</script>";
  node.facts.gpus = {GpuFacts{.name = "<script>pwned()</script>"}};
  in.environments = {node};
  in.foreign_configs = [](const ResultRow&) {
    return std::vector<ForeignConfig>{{kHostile, kHostile, {kHostile}}};
  };
  const auto page = report_html(in);
  return page ? *page : "ERROR " + page.error().message;
}

ResultRow full_row(std::string id, i64 batch) {
  ResultRow row = ok_row(std::move(id), 1, 1000 + double(batch));
  row.trial.micro_batch_size = batch;
  row.trial.model = kHostile;
  row.trial.labels = nlohmann::json{{"<script>pwned()</script>", kHostile + std::to_string(batch)}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
  row.metrics.peak_allocated_bytes = batch << 30;
  row.metrics.forward_ms = 1, row.metrics.backward_ms = 2, row.metrics.alloc_retries = 0;
  return row;
}

TEST(Report, TextOfResultsNeverBecomesMarkup) {
  std::vector<ResultRow> rows = {full_row("a", 1), full_row("b", 2),
                                 bad_row(kHostile, 4, Outcome::kOom, kHostile)};
  rows[2].evidence = R"({"log_tail":"<script>pwned()</script>"})";
  const std::string page = page_of(rows);
  EXPECT_EQ(page.find("<script"), page.rfind("<script")) << "one script, the page's own";
  EXPECT_THAT(page, HasSubstr("&lt;script"));
  EXPECT_THAT(page, Not(HasSubstr("ERROR ")));
}

TEST(Report, EvidenceThatCannotBeReadIsShownAsItIs) {
  std::vector<ResultRow> rows = {full_row("a", 1), bad_row("b", 2, Outcome::kHang, "stood still")};
  rows[1].evidence = R"({"cause":"a word of another version"})";
  const std::string page = page_of(rows);
  EXPECT_THAT(page, HasSubstr("a word of another version"));
  EXPECT_THAT(page, Not(HasSubstr("\"records\"")));
}

TEST(Report, TheCommandThatRunsItAgainHasTheOptionsOfTheRun) {
  const std::vector<ResultRow> rows = {full_row("a", 1)};
  const std::pair<const char*, const char*> cases[] = {
      {R"({"launcher":"rehearsal","rehearse_ranks":4,"strategy":"batch","max_trials":20})",
       "sweep run g.yaml --db g.db --rehearse --rehearse-ranks 4 --strategy batch\n"},
      {R"({"launcher":"local","slots":1,"strategy":"search","max_trials":2,"audit":0.02,"gpu_hours":3.5,"usd":7})",
       "sweep run g.yaml --db g.db --on local --slots 1 --strategy search --max-trials 2 --audit 0.02 --usd "
       "7.0\n"},
      {R"({"launcher":"ssh","start":"exec","screen":"show","gpu_hours":3.5})",
       "sweep run g.yaml --db g.db --on ssh --start exec --screen show --gpu-hours 3.5\n"}};
  for (const auto& [options, command] : cases) {
    ReportInput in;
    in.sweep = "g", in.grid_path = "g.yaml", in.db = "g.db", in.grid_text = "name: g", in.rows = rows;
    in.options = sweep_options_from(options).value();
    const auto page = must(report_html(in));
    EXPECT_THAT(page, HasSubstr(command));
  }
}

TEST(Report, NoSectionIsEmptyWhateverIsMissing) {
  ResultRow nan = full_row("n", 1);
  nan.metrics.tokens_per_s_gpu = std::numeric_limits<double>::quiet_NaN();
  nan.metrics.step_ms = std::numeric_limits<double>::infinity();
  ResultRow pending = full_row("p", 2);
  pending.state = State::kPending;
  const std::vector<ResultRow> cases[] = {
      {},
      {bad_row("a", 1, Outcome::kOom, "r"), bad_row("b", 2, Outcome::kOom, "r")},
      {full_row("one", 1)},
      {nan},
      {pending}};
  for (const auto& rows : cases) {
    const std::string page = page_of(rows);
    for (const char* id : {"answer", "environment", "reproduce"})
      EXPECT_NE(page.find(std::string("<section id=\"") + id + "\""), std::string::npos) << id;
    for (auto at = page.find("</h2>"); at != std::string::npos; at = page.find("</h2>", at + 1))
      EXPECT_GT(page.find("</section>", at) - at, 30u) << page.substr(at - 80, 120);
    EXPECT_THAT(page, Not(HasSubstr("<p>No "))) << rows.size() << " rows";
    EXPECT_THAT(page, Not(HasSubstr("nothing measured"))) << rows.size() << " rows";
    EXPECT_THAT(page, Not(::testing::ContainsRegex("[^a-z]nan[^a-z]")));
  }
  EXPECT_THAT(page_of({}), Not(HasSubstr("<section id=\"failures\"")));
}

// The inside of a section.
std::string section_of(const std::string& page, const std::string& id) {
  const auto at = page.find("<section id=\"" + id + "\"");
  return page.substr(at, page.find("</section>", at) - at);
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t out = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++out;
  return out;
}

// With 1B and 8B in one sweep the table showed the 1B alone.
TEST(Report, AnswerAndCostCompareLikeWithLike) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 100), ok_row("b", 2, 90), ok_row("c", 1, 70),
                                 ok_row("d", 2, 60)};
  for (auto& row : rows) row.metrics.tokens_per_s = 1, row.metrics.mt_per_hour = 1;
  rows[2].trial.model = rows[3].trial.model = "tiny";
  const std::string answer = section_of(page_of(rows), "answer"), cost = section_of(page_of(rows), "cost");
  for (const std::string& part : {answer, cost}) {
    EXPECT_EQ(count_of(part, "<table>"), 1u) << part;
    EXPECT_THAT(part, HasSubstr("<td>tiny</td>"));
  }
  EXPECT_EQ(count_of(answer, "<tr>"), 1u + 2u) << "a row for each model: " << answer;
  EXPECT_THAT(answer, HasSubstr("<td class=\"id\">a</td>")) << "best of its model";
  EXPECT_THAT(answer, HasSubstr("<td class=\"id\">c</td>"));
  EXPECT_THAT(answer, Not(HasSubstr("<td class=\"id\">b</td>")));
  EXPECT_EQ(count_of(answer, "<details class=\"group\"><summary>tiny</summary>"), 1u);
  EXPECT_EQ(count_of(answer, " open"), 0u) << "what is said of each is folded away";
  for (std::size_t i = 1; i < rows.size(); i += 2) rows[i].trial.seq_len = 4096;
  EXPECT_EQ(count_of(section_of(page_of(rows), "cost"), "<tr>"), 1u + 4u)
      << "sequence lengths are not equal work";
}

TEST(Report, CostsAreThoseOfUsefulTokensWhereAResultHasPadding) {
  std::vector<ResultRow> rows = {useful_row("padded", 900, 0.1), useful_row("packed", 500, 1)};
  rows[1].trial.packing = true;
  rows[1].metrics.useful_run_cost_per_mt = 1234, rows[1].metrics.run_cost_per_mt = 1234;
  const std::string cost = section_of(page_of(rows), "cost");
  EXPECT_THAT(cost, HasSubstr("<td class=\"id\">packed</td>"));
  EXPECT_THAT(cost, Not(HasSubstr("<td class=\"id\">padded</td>")));
  EXPECT_THAT(cost, HasSubstr("1234")) << "with checkpoints and evaluation";
}

TEST(Report, AGroupWithoutAnAnswerSaysWhyInItsRow) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 100), bad_row("b", 2, Outcome::kOom, "full")};
  rows[1].trial.model = "tiny";
  const std::string part = section_of(page_of(rows), "answer");
  EXPECT_EQ(count_of(part, "<tr>"), 1u + 2u) << part;
  EXPECT_EQ(count_of(part, "<details class=\"group\">"), 1u) << "nothing to spell out of the other";
  EXPECT_THAT(part, HasSubstr("did not end ok"));
}

// The page said "ahead of every other" where `best` could not tell.
TEST(Report, ClaimsNoMoreOfTheFirstPlaceThanBestDoes) {
  std::vector<ResultRow> rows = {ok_row("a", 1, 300), ok_row("b", 2, 200), ok_row("c", 4, 290)};
  const auto says = [&](const std::string& words) {
    const bool page = section_of(page_of(rows), "answer").find(words) != std::string::npos;
    EXPECT_EQ(page, best_text({}, *best(rows, {}), {}, 0).find(words) != std::string::npos) << words;
    return page;
  };
  EXPECT_TRUE(says("by more than the 95 % intervals"));
  rows[2].metrics.step_ms_ci_low.reset();
  EXPECT_FALSE(says("by more than the 95 % intervals"));
  EXPECT_TRUE(says("1 more have no confidence interval"));
  rows[1].metrics.tokens_per_s_gpu = 300;
  EXPECT_TRUE(says("TIED with 1 more"));
  EXPECT_TRUE(says("1 more have no confidence interval"));
  for (auto& row : rows) row.metrics.step_ms_ci_low.reset();
  EXPECT_TRUE(says("ties unknown"));
}

// A sweep of one model keeps its answer spelt out.
TEST(Report, OneGroupHasNoTableOfAnswers) {
  const std::vector<ResultRow> rows = {ok_row("a", 1, 100), ok_row("b", 2, 90)};
  const std::string part = section_of(page_of(rows), "answer");
  EXPECT_EQ(count_of(part, "<table>") + count_of(part, "class=\"group\""), 0u);
  EXPECT_EQ(count_of(part, "class=\"winner\""), 1u);
}

TEST(Report, EachPredictionThatWasMeasuredStandsWithItsError) {
  std::vector<ResultRow> rows = {full_row("near", 1), full_row("off", 2), full_row("unmeasured", 4)};
  rows[0].metrics.predicted_bytes = (i64{1} << 30) * 102 / 100, rows[0].metrics.predicted_ms = 500;
  rows[1].metrics.predicted_bytes = (i64{2} << 30) * 90 / 100;
  rows[2].metrics.predicted_bytes = 1 << 30, rows[2].metrics.peak_allocated_bytes.reset();
  const std::string part = section_of(page_of(rows), "predictions");
  EXPECT_THAT(part, HasSubstr("+2.0 %"));
  EXPECT_THAT(part, HasSubstr("-10.0 %"));
  EXPECT_THAT(part, Not(HasSubstr("unmeasured")));
  EXPECT_LT(part.find("off"), part.find("near")) << "the largest error first";
  EXPECT_THAT(part, HasSubstr("Warning: the memory of 1 configuration is"));
  rows[1].metrics.predicted_bytes = 2ll << 30;
  EXPECT_THAT(section_of(page_of(rows), "predictions"), Not(HasSubstr("Warning")));
}

// The peak of a trial that ran out is less than it needs: the prediction was right.
TEST(Report, APeakOfATrialThatRanOutIsALowerBoundAndNoError) {
  std::vector<ResultRow> rows = {full_row("fits", 1), full_row("ran_out", 2)};
  rows[0].metrics.predicted_bytes = *rows[0].metrics.peak_allocated_bytes;
  rows[1].outcome = Outcome::kOom;
  rows[1].metrics.peak_allocated_bytes = i64{77} << 30, rows[1].metrics.predicted_bytes = i64{116} << 30;
  const std::string part = section_of(page_of(rows), "predictions");
  EXPECT_THAT(part, Not(HasSubstr("Warning")));
  EXPECT_THAT(part, HasSubstr("of 1 predictions of memory: 0.0 %"));
  EXPECT_THAT(part, HasSubstr("≥ 77"));
  EXPECT_EQ(count_of(part, "(ran out)"), 1u);
  EXPECT_THAT(part, Not(HasSubstr("+50")));
}

// Labels of bars hold what differs between the bars, all of it.
TEST(Report, LabelsOfTheTimeSplitTellTheBarsApartAndAreNotCut) {
  std::vector<ResultRow> rows = {full_row("a", 1), full_row("b", 1), full_row("c", 1)};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].trial.micro_batch_size = i64{1} << i, rows[i].trial.global_batch_size = i64{8} << i;
    rows[i].metrics.forward_ms = 1, rows[i].metrics.backward_ms = 2;
  }
  rows.push_back(bad_row("other", 2, Outcome::kOom, ""));
  rows.back().trial.model = "a-model-that-no-bar-is-of-and-whose-name-is-long";
  const std::string part = section_of(page_of(rows), "time");
  for (const char* label : {">MBS1<", ">MBS2<", ">MBS4<"}) EXPECT_EQ(count_of(part, label), 1u) << part;
  EXPECT_EQ(count_of(part, "…"), 0u);
}

TEST(Report, TheTimeSplitShowsATrialThatWasStoppedEarlyAfterAllOthers) {
  std::vector<ResultRow> rows;
  for (i64 size = 1; size <= 128; size *= 2) {
    ResultRow& row = rows.emplace_back(full_row(std::to_string(size), 1));
    row.trial.micro_batch_size = size, row.trial.global_batch_size = 8 * size;
    row.metrics.tokens_per_s_gpu = 1000 + double(size);
  }
  rows.back().metrics.steps_saved = 8;
  const std::string part = section_of(page_of(rows), "time");
  for (const char* label : {">MBS1<", ">MBS64<"}) EXPECT_EQ(count_of(part, label), 1u) << part;
  EXPECT_EQ(count_of(part, ">MBS128<"), 0u);
}

TEST(Charts, LongLabelsStandAboveTheirBars) {
  StackedBars bars{.title = "t", .unit = "ms", .names = {"forward"}, .bars = {}};
  const std::string one = std::string(90, 'a') + "1", two = std::string(90, 'a') + "2";
  bars.bars = {{one, {1}}, {two, {2}}};
  const std::string svg = to_svg(bars);
  EXPECT_THAT(svg, HasSubstr(">" + one + "<"));
  EXPECT_THAT(svg, HasSubstr(">" + two + "<"));
  EXPECT_THAT(svg, Not(HasSubstr("text-anchor=\"end\"")));
}

TEST(Report, AnotherSweepStandsBesideThisOne) {
  std::vector<ResultRow> rows, published;
  for (const i64 batch : {7, 8, 9}) {
    for (auto* side : {&rows, &published}) {
      ResultRow& row = side->emplace_back(ok_row(std::to_string(batch), 1, 100));
      row.trial.micro_batch_size = batch;
      row.metrics.peak_reserved_bytes = (side == &rows ? 102 : 100) * (batch << 20);
      row.metrics.alloc_retries = batch > 7;
    }
  }
  published[2].outcome = Outcome::kOom;
  ReportInput in;
  in.sweep = "ours", in.rows = rows, in.beside = "published", in.beside_rows = published;
  const auto page = must(report_html(in));
  const std::string part = section_of(page, "beside");
  EXPECT_EQ(count_of(part, "ok ★"), 2u) << part;
  EXPECT_EQ(count_of(part, "+2.0 %"), 2u) << "the one that ran out of memory has no figures: " << part;
  EXPECT_EQ(count_of(part, "<td>oom</td>"), 1u) << part;
  EXPECT_EQ(count_of(page_of(rows), "<section id=\"beside\""), 0u);
  for (ResultRow& row : published) row.trial.micro_batch_size += 100;
  EXPECT_FALSE(report_html(in)) << "nothing in common";
}

TEST(Report, BeginsWithAnswerGainCostHeatmapAndFailures) {
  const std::vector<ResultRow> rows = {ok_row("a", 1, 100), ok_row("b", 2, 300), ok_row("c", 4, 200),
                                       bad_row("d", 8, Outcome::kOom, "full")};
  const std::string page = page_of(rows);
  std::size_t last = 0;
  for (const char* id : {"answer", "cost", "heatmap", "failures", "memory"}) {
    const auto at = page.find(std::string("<section id=\"") + id + "\"");
    EXPECT_GT(at, last) << id;
    last = at;
  }
  const std::string answer = section_of(page, "answer");
  EXPECT_THAT(answer, HasSubstr("<b>1.50×</b> the median of 3"));
  EXPECT_THAT(answer, HasSubstr("<b>3.00×</b> the first guess"));
  EXPECT_EQ(count_of(answer, "<details class=\"form\">"), 2u)
      << "the grid file, and one foreign configuration";
  EXPECT_EQ(count_of(answer, " open"), 0u) << "configurations are folded away";
}

TEST(Report, ItsPolicyLetsItsOwnScriptRunAlone) {
  const std::string page = page_of({});
  EXPECT_THAT(page, HasSubstr("script-src 'sha256-"));
  EXPECT_THAT(page.substr(0, page.find("<body>")), Not(HasSubstr("script-src 'unsafe-inline'")));
}

TEST(Prices, StandWithTheirDateAndWarnWhenOld) {
  EXPECT_THAT(price_sentence("h100-sxm-80gb", 55.04, "2026-11-22"),
              ::testing::AllOf(HasSubstr("2026-11-09"), Not(HasSubstr("WARNING"))));
  EXPECT_THAT(price_sentence("h100-sxm-80gb", 55.04, "2027-11-10"), HasSubstr("WARNING"));
  EXPECT_THAT(price_sentence("h100-sxm-80gb", 98.32, "2026-11-22"),
              ::testing::AllOf(HasSubstr("2023-07-26"), HasSubstr("WARNING: superseded by 55.04")));
  EXPECT_THAT(price_sentence("h100-sxm-80gb", 20, "2026-11-22"), HasSubstr("own price"));
}

// The node of a rehearsal counts all phantom GPUs that one may have, whatever the trials have.
TEST(Report, ARehearsalHasThePhantomGpusOfItsTrials) {
  std::vector<ResultRow> rows = {ok_row("a", 8, 100), ok_row("b", 2, 100)};
  rows[0].trial.dp = 8;
  ReportInput in;
  in.sweep = "s.rehearsal", in.rows = rows;
  Environment node;
  node.allocation = "a1", node.launcher = "rehearsal", node.results = 2;
  node.facts.gpus = std::vector<GpuFacts>(16, GpuFacts{.name = "H100"});
  in.environments = {node};
  const auto devices = [&] {
    const auto page = report_html(in);
    return page ? *page : page.error().message;
  };
  EXPECT_THAT(devices(), AllOf(HasSubstr(">2 to 64 phantom H100<"), Not(HasSubstr("16 x"))));
  in.rows = std::span(rows).first(1);
  EXPECT_THAT(devices(), HasSubstr(">64 phantom H100<"));
  in.sweep = "s";
  EXPECT_THAT(devices(), HasSubstr(">16 x H100<"));
}

TEST(Report, ChartsCountByGpuWhereThereAreGpus) {
  std::vector<ResultRow> rows = {ok_row("a", 2, 100), ok_row("b", 4, 200)};
  for (auto& row : rows) row.trial.hardware = "h100-sxm-80gb", row.metrics.peak_allocated_bytes = 1 << 30;
  EXPECT_THAT(page_of(rows), AllOf(HasSubstr(">tokens/s per GPU<"), Not(HasSubstr("per rank"))));
  for (auto& row : rows) row.trial.hardware = "cpu";
  EXPECT_THAT(page_of(rows), Not(HasSubstr("tokens/s per GPU")));
}

TEST(Report, AnUnknownMetricIsRefused) {
  ReportInput in;
  in.metric = "speed";
  EXPECT_FALSE(report_html(in));
}

TEST(Measured, SaysWhatWasToldAndWhatWasNot) {
  ResultRow row = ok_row("a", 2, 100);
  row.trial.dp = 4;
  EXPECT_THAT(measured_lines(row, nullptr), Contains(HasSubstr("unknown")));
  Provenance from{"a", "local", {}, EffectiveSettings{.backend = "nccl"}};
  Environment node;
  node.host = "n1", node.facts.gpus = {GpuFacts{.name = "H100"}, GpuFacts{.name = "H100"}};
  from.nodes = {node};
  row.metrics.sm_clock_mhz = 1755, row.metrics.throttle = "power_cap";
  const auto lines = measured_lines(row, &from);
  EXPECT_THAT(lines, Contains(HasSubstr("1 node: n1; 2 x H100")));
  EXPECT_THAT(lines, Contains(HasSubstr("transport nccl; SM clock 1755 MHz mean, throttled (power_cap)")));
  from.launcher = "import";
  EXPECT_THAT(measured_lines(row, &from).front(), HasSubstr("an import"));
}

TEST(Chart, TicksAreRound) {
  EXPECT_EQ(round_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(round_ticks(3, 3, 5), (std::vector<double>{3}));
  EXPECT_LT(round_ticks(0, 1e300, 5).size(), 12u);
}

TEST(Chart, NothingToDrawIsSaid) {
  EXPECT_THAT(to_svg(Chart{}), HasSubstr("nothing measured"));
  EXPECT_THAT(to_svg(StackedBars{}), HasSubstr("nothing measured"));
  Chart chart;
  chart.series = {{"<b>", {{1, 1, "<i>", "star"}}}};
  EXPECT_THAT(to_svg(chart), Not(HasSubstr("<i>")));
  EXPECT_THAT(to_svg(chart), HasSubstr("class=\"star\""));
}

}  // namespace
}  // namespace sweep::answers
