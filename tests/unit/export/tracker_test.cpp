#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <limits>

#include "orchestrator/export/benchmark_json.h"
#include "orchestrator/export/deliver.h"
#include "orchestrator/export/mlflow_wire.h"
#include "orchestrator/export/wandb_file.h"
#include "orchestrator/export/wandb_wire.h"

namespace sweep::exports {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInf = std::numeric_limits<double>::infinity();
constexpr i64 kFinished = 1'700'000'000'123'456'789;

ResultRow row_of(const std::string& trial = "00ff", Outcome outcome = Outcome::kOk) {
  ResultRow row;
  row.sweep = "s", row.trial_id = trial, row.outcome = outcome;
  row.trial.model = "m";
  row.trial.labels = R"({"tokens":16})";
  row.metrics.step_ms = 10, row.metrics.step_ms_ci_low = 9, row.metrics.step_ms_ci_high = 12;
  row.metrics.tokens_per_s = 5000.5;
  row.metrics.mfu = kNan;
  row.metrics.throttle = "hot+slow";
  row.finished_unix_ns = kFinished;
  return row;
}

TrackerRun run_of(const ResultRow& row = row_of()) {
  return tracker_run(row, {{1'000'000'000, {{"steps/loss", kNan}}}, {2'000'000'000, {{"steps/loss", 1.5}}}},
                     "name", "why?");
}

template <class List>
const Json* find(const List& list, const std::string& key) {
  for (const auto& [name, value] : list)
    if (name == key) return &value;
  return nullptr;
}

TEST(TrackerRun, TheSameResultIsTheSameRunAndAnotherIsAnother) {
  EXPECT_EQ(run_of().id, run_of().id);
  EXPECT_EQ(run_of().id.size(), 16u);
  ResultRow again = row_of();
  again.finished_unix_ns = kFinished + 1;
  EXPECT_NE(run_of().id, run_of(again).id);
  EXPECT_NE(run_of().id, run_of(row_of("00fe")).id);
}

TEST(TrackerRun, WhatWasNotMeasuredIsNotInIt) {
  const TrackerRun run = run_of();
  EXPECT_EQ(find(run.metrics, "mfu"), nullptr);
  EXPECT_EQ(find(run.metrics, "hfu"), nullptr);
  EXPECT_EQ(find(run.params, "memory_cap_bytes"), nullptr);
  EXPECT_EQ(*find(run.metrics, "tokens_per_s"), 5000.5);
  EXPECT_EQ(*find(run.params, "packing"), false);
  EXPECT_EQ(*find(run.params, "label/tokens"), 16);
}

TEST(TrackerRun, StepsAreReckonedBackFromTheEnd) {
  const TrackerRun run = run_of();
  ASSERT_EQ(run.history.size(), 2u);
  EXPECT_DOUBLE_EQ(run.ended_unix_s, 1'700'000'000.123);
  EXPECT_DOUBLE_EQ(run.history[1].unix_s, run.ended_unix_s);
  EXPECT_DOUBLE_EQ(run.history[0].unix_s, run.ended_unix_s - 2);
  EXPECT_DOUBLE_EQ(run.begun_unix_s, run.ended_unix_s - 3);
  EXPECT_DOUBLE_EQ(run.history[1].runtime_s, 3);
}

TEST(TrackerRun, OnlyTrialsThatWereTriedAreExported) {
  EXPECT_TRUE(is_exported(row_of("a", Outcome::kOom)));
  EXPECT_FALSE(is_exported(row_of("a", Outcome::kPruned)));
  ResultRow pending = row_of();
  pending.state = State::kPending;
  EXPECT_FALSE(is_exported(pending));
}

TEST(Wandb, NumbersThatJsonLacksAreBareWords) {
  EXPECT_EQ(wandb_number(kNan), "NaN");
  EXPECT_EQ(wandb_number(kInf), "Infinity");
  EXPECT_EQ(wandb_number(-kInf), "-Infinity");
  EXPECT_EQ(wandb_number(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(wandb_object({{"a\"b", "1"}, {"c", "NaN"}}), R"({"a\"b":1,"c":NaN})");
}

TEST(Wandb, AFileOfManyBlocksKeepsItsFraming) {
  TrackerRun run = run_of();
  for (i64 i = 0; i < 3000; ++i) run.history.push_back({i, 1, 1, {{"steps/loss", 1.0}}});
  const std::string bytes = wandb_file(run, "", "p");
  ASSERT_GT(bytes.size(), 4 * 32768u);
  EXPECT_EQ(bytes.substr(0, 7), std::string(":W&B\xE1\xBE\x00", 7));
  std::size_t at = 7, records = 0;
  while (at < bytes.size()) {
    if (32768 - at % 32768 < 7) at += 32768 - at % 32768;
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes.at(at + i)); };
    const std::size_t length = byte(4) | byte(5) << 8;
    ASSERT_LE(at % 32768 + 7 + length, 32768u);
    ASSERT_TRUE(byte(6) >= 1 && byte(6) <= 4) << at;
    records += byte(6) == 1 || byte(6) == 4;
    at += 7 + length;
  }
  EXPECT_EQ(records, 3002u + 3);
}

TEST(Wandb, ASyncedFileIsNeverRewritten) {
  const auto dir =
      std::filesystem::path(::testing::TempDir()) / ("wandb-offline-" + std::to_string(getpid()));
  std::filesystem::remove_all(dir);
  const WandbOffline offline(dir, "", "p");
  EXPECT_EQ(offline.write(run_of()).value(), WandbOffline::Written::kNew);
  EXPECT_EQ(offline.write(run_of()).value(), WandbOffline::Written::kUnchanged);
  ResultRow changed = row_of();
  changed.metrics.tokens_per_s = 1;
  EXPECT_EQ(offline.write(run_of(changed)).value(), WandbOffline::Written::kReplaced);
  const std::string id = run_of().id;
  const auto file = dir / ("offline-run-20231114_221320-" + id) / ("run-" + id + ".wandb");
  ASSERT_TRUE(std::filesystem::exists(file));
  std::ofstream(file.string() + ".synced") << "";
  EXPECT_EQ(offline.write(run_of(changed)).value(), WandbOffline::Written::kUnchanged);
  EXPECT_FALSE(offline.write(run_of()));
  std::filesystem::remove_all(dir);
}

TEST(Mlflow, TypesAreThoseItDoesNotSwallow) {
  EXPECT_EQ(mlflow_metric("a", kNan, 1.5, 2).dump(),
            R"({"key":"a","value":"NaN","timestamp":1500,"step":2})");
  EXPECT_EQ(mlflow_metric("a", -kInf, 0, 0)["value"], "-Infinity");
  EXPECT_EQ(mlflow_key("label/my-axis 1.5"), "label/my-axis 1.5");
  EXPECT_EQ(mlflow_key("util %[0]").substr(0, 10), "util __0__");
  EXPECT_EQ(mlflow_key(std::string(300, 'x')).size(), 250u);
  for (const Json& param : mlflow_params(run_of())) EXPECT_TRUE(param["value"].is_string()) << param.dump();
  EXPECT_EQ(mlflow_status(Outcome::kOk), "FINISHED");
  EXPECT_EQ(mlflow_status(Outcome::kOom), "FAILED");
}

TEST(Mlflow, NamesThatItRefusesAreChangedAndTwoStayTwo) {
  EXPECT_NE(mlflow_key("label/größe"), mlflow_key("label/gräße"));
  EXPECT_NE(mlflow_key(std::string(300, 'x')), mlflow_key(std::string(301, 'x')));
  for (const char* name : {"label/größe", "label/", "label//x", "/x", "label/..", ".", "label/./x", ""}) {
    const std::string key = mlflow_key(name);
    EXPECT_NE(key, name);
    EXPECT_EQ(std::filesystem::path(key).lexically_normal(), key)
        << "MLflow refuses a path that is not normal";
    EXPECT_TRUE(std::all_of(key.begin(), key.end(), [](char c) { return c > 0; })) << key;
    EXPECT_NE(key.front(), '/');
  }
}

TEST(Mlflow, NumbersThatTheServerHasOtherwiseGetTheNextStep) {
  const TrackerRun run = run_of();
  EXPECT_EQ(mlflow_revision(run, nlohmann::json::object()), 0);
  nlohmann::json data = {{"metrics",
                          {{{"key", "step_ms"}, {"value", 10.0}, {"step", 2}},
                           {{"key", "tokens_per_s"}, {"value", 5000.5}, {"step", 0}},
                           {{"key", "steps/loss"}, {"value", 1.5}, {"step", 99}}}}};
  EXPECT_EQ(mlflow_revision(run, data), 2) << "equal: once more is no change";
  data["metrics"][1]["value"] = 6000.0;
  EXPECT_EQ(mlflow_revision(run, data), 3) << "of one step MLflow would show the larger value";
}

TEST(Mlflow, WhatTheServerKeptOtherwiseIsNoticed) {
  const TrackerRun run = run_of();
  nlohmann::json data = {{"params", nlohmann::json::parse(Json(mlflow_params(run)).dump())}};
  data["metrics"] = {{{"key", "step_ms"}, {"value", 10.0}},
                     {{"key", "step_ms_ci_low"}, {"value", 9.0}},
                     {{"key", "step_ms_ci_high"}, {"value", 12.0}},
                     {{"key", "tokens_per_s"}, {"value", 5000.5}}};
  EXPECT_EQ(mlflow_difference(run, data), "");
  data["metrics"][0]["value"] = 0.0;
  EXPECT_NE(mlflow_difference(run, data).find("step_ms"), std::string::npos);
  data["params"] = nlohmann::json::array();
  EXPECT_NE(mlflow_difference(run, data).find("kept 'nothing'"), std::string::npos);
}

TEST(Benchmark, FormatsHoldOkTrialsWithTheirBounds) {
  const std::vector<ResultRow> rows = {row_of("aa"), row_of("bb"), row_of("cc", Outcome::kOom)};
  const auto named = named_rows(rows, std::vector<std::string>{"s/m", "s/m", "s/x"});
  const auto bencher = nlohmann::json::parse(bencher_json(named));
  ASSERT_EQ(bencher.size(), 2u);
  EXPECT_EQ(bencher["s/m aa"]["latency"],
            (nlohmann::json{{"value", 1e7}, {"lower_value", 9e6}, {"upper_value", 12e6}}));
  EXPECT_EQ(bencher["s/m aa"]["throughput"]["value"], 5000.5);
  EXPECT_FALSE(bencher["s/m aa"].contains("mfu"));
  const auto github = nlohmann::json::parse(github_benchmark_json(named, *find_column("step_ms")));
  ASSERT_EQ(github.size(), 2u);
  EXPECT_EQ(
      github[0],
      (nlohmann::json{
          {"name", "s/m aa"}, {"unit", "ms"}, {"value", 10.0}, {"range", "± 1.5"}, {"extra", "trial aa"}}));
  EXPECT_EQ(nlohmann::json::parse(github_benchmark_json(named, *find_column("mfu"))),
            nlohmann::json::array());
}

// Takes what it is given, or refuses it.
class Shelf final : public Tracker {
 public:
  std::string place() const override { return "shelf"; }
  std::string digest(const TrackerRun& run) const override { return run.record; }
  std::string digest(const TrackerSweep& sweep) const override { return sweep.results_csv; }
  Delivered<void> open(const TrackerSweep&, const std::optional<Receipt>&) override {
    return ++opened, Delivered<void>{};
  }
  Delivered<std::string> deliver(const TrackerRun& run, const std::optional<Receipt>& before) override {
    were_sent.push_back(before ? 1 : 0);
    if (run.trial == refuses) return refused("no");
    return run.id;
  }
  Delivered<std::string> close(const TrackerSweep&) override { return ++closed, std::string("sweep"); }
  int opened = 0, closed = 0;
  std::string refuses;
  std::vector<i64> were_sent;
};

class DeliverTest : public ::testing::Test {
 protected:
  DeliverTest() { std::filesystem::remove(file_); }
  ~DeliverTest() override { std::filesystem::remove(file_); }
  Deliveries go(Shelf& shelf) {
    auto journal = Journal::open(file_);
    EXPECT_TRUE(journal) << journal.error().message;
    DeliveryPlan plan;
    plan.runs = static_cast<i64>(rows_.size());
    plan.run = [&](i64 i) -> Expected<TrackerRun> { return run_of(rows_[static_cast<std::size_t>(i)]); };
    plan.progress = [](const Deliveries&, i64) {};
    plan.interrupted = [] { return false; };
    const auto done = deliver(shelf, **journal, {"id", "s", "", "", "csv"}, plan);
    EXPECT_TRUE(done);
    return *done;
  }
  std::filesystem::path file_ = std::filesystem::path(::testing::TempDir()) /
                                ("deliver-" + std::to_string(getpid()) + ".exports.jsonl");
  std::vector<ResultRow> rows_{row_of("aa"), row_of("bb")};
};

TEST_F(DeliverTest, EachResultAndEachChangeIsDeliveredOnce) {
  Shelf shelf;
  EXPECT_EQ(go(shelf).sent, 2);
  EXPECT_EQ(go(shelf).unchanged, 2);
  EXPECT_EQ(shelf.opened, 1);
  EXPECT_EQ(shelf.closed, 1);
  rows_[0].metrics.tokens_per_s = 1;
  EXPECT_EQ(go(shelf).updated, 1);
  EXPECT_EQ(go(shelf).unchanged, 2);
  EXPECT_EQ(shelf.were_sent, (std::vector<i64>{0, 0, 1}));
}

TEST_F(DeliverTest, ARefusedRunIsTriedAgainNextTime) {
  Shelf shelf;
  shelf.refuses = "aa";
  EXPECT_EQ(go(shelf).refused.size(), 1u);
  shelf.refuses = "";
  const Deliveries done = go(shelf);
  EXPECT_EQ(done.sent, 1);
  EXPECT_EQ(done.unchanged, 1);
}

TEST_F(DeliverTest, AServerThatRefusesEverythingIsGivenUp) {
  Shelf shelf;
  shelf.refuses = "aa";
  rows_.assign(50, row_of("aa"));
  const Deliveries done = go(shelf);
  EXPECT_EQ(done.refused.size(), 5u);
  EXPECT_TRUE(done.stopped_by);
  EXPECT_EQ(shelf.closed, 0);
}

TEST_F(DeliverTest, ATornLastLineIsForgottenAndASecondExportRefused) {
  Shelf shelf;
  go(shelf);
  std::ofstream(file_, std::ios::app) << "0badc0de {\"torn";
  EXPECT_EQ(go(shelf).unchanged, 2);
  const auto first = Journal::open(file_), second = Journal::open(file_);
  ASSERT_TRUE(first);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another export"), std::string::npos);
}

}  // namespace
}  // namespace sweep::exports
