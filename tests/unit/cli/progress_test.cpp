// Tests of what the room of answers reads from a store: the progress of a sweep that runs, and the steps of
// an answer.
#include "orchestrator/answers/progress.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "orchestrator/answers/history.h"
#include "tests/unit/store/store_fixture.h"

namespace sweep {
namespace {

class Reads : public store::StoreTest {
 protected:
  answers::Progress progress() {
    return {must(store_->find_sweep("s")), must(store_->progress(sweep_)), {}, {}, {}};
  }
  std::optional<double> value_of(const answers::HistoryStep& step, const std::string& name) {
    for (const auto& [key, value] : step.values)
      if (key == name) return value;
    return std::nullopt;
  }
};

TEST_F(Reads, ARunningSweepHasItsAllocationAttemptsAndEvents) {
  start(2);
  const Attempt attempt = begin(plan_[0]);
  store::IngestBatch batch;
  batch.allocation = allocation_, batch.new_offset = 1;
  batch.started.emplace_back(attempt.id, 5);
  batch.nodes = {{0, "n1", {}}};
  must(store_->ingest(batch));
  must(store_->add_event(sweep_, EventKind::kAgent, "a word"));
  const auto details = must(answers::run_details(*store_, sweep_, {0.5, 2}, 9));
  const auto document = answers::progress_json(progress(), details, must(store_->lease(sweep_)));
  EXPECT_EQ(document["total"], 2);
  EXPECT_EQ(document["running"], 1);
  EXPECT_TRUE(document["best"].is_null());
  EXPECT_EQ(document["allocations"][0]["hosts"], nlohmann::json::array({"n1"}));
  EXPECT_EQ(document["allocations"][0]["results"], 0);
  EXPECT_EQ(document["attempts_running"][0]["attempt"], attempt.id);
  EXPECT_EQ(document["attempts_running"][0]["trial"], plan_[0].id);
  EXPECT_EQ(document["gpu_hours"]["held"], 0.5);
  EXPECT_EQ(document["gpu_hours"]["limit"], 2);
  EXPECT_EQ(document["events"].back()["text"], "a word");
  EXPECT_EQ(document["run_by"]["pid"], ::getpid());

  auto view = answers::status_view(progress(), {});
  answers::add_details(view, details, must(answers::varying_axes(*store_, sweep_)));
  ASSERT_EQ(view.held.size(), 1u);
  EXPECT_NE(view.held[0].find("1 node (n1)"), std::string::npos) << view.held[0];
  EXPECT_EQ(view.now.size(), 1u);
  EXPECT_FALSE(view.gpu_hours.empty());
}

TEST_F(Reads, TheBestSoFarIsTheBestByTheMetricThatItNames) {
  start(1);
  answers::Progress seen = progress();
  seen.best.emplace().trial_id = "t";
  seen.best->metrics.tokens_per_s_gpu = 900, seen.best->metrics.useful_tokens_per_s_gpu = 90;
  seen.best_by = "useful_tokens_per_s_gpu";
  const auto document = answers::progress_json(seen, {}, std::nullopt);
  EXPECT_EQ(document["best"]["metric"], "useful_tokens_per_s_gpu");
  EXPECT_EQ(document["best"]["value"], 90);
  const auto view = answers::status_view(seen, {});
  ASSERT_TRUE(view.best);
  EXPECT_EQ(view.best->value, 90);
  seen.best_by = "step_ms";
  EXPECT_TRUE(answers::progress_json(seen, {}, std::nullopt)["best"].is_null()) << "it has none";
}

TEST_F(Reads, ASweepThatHeldNothingHasNoGpuHoursToName) {
  EXPECT_EQ(answers::gpu_hours_text({}), "");
}

TEST_F(Reads, AHistoryIsOfTheFinalAttemptAndLacksWhatWasNotMeasured) {
  start(2);
  finish(plan_[0], Outcome::kOk, 5);
  ResultRow row;
  row.trial_id = plan_[0].id, row.trial = plan_[0].trial;
  const auto steps = must(answers::history(*store_, sweep_, row));
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].step_ns, 101);
  EXPECT_EQ(value_of(steps[0], "steps/warmup"), 1);
  EXPECT_EQ(value_of(steps[1], "steps/step_ms"), 101e-6);
  EXPECT_EQ(value_of(steps[1], "steps/loss"), 4);
  EXPECT_EQ(value_of(steps[1], "steps/forward_ms"), std::nullopt);
  row.trial_id = plan_[1].id, row.trial = plan_[1].trial;
  EXPECT_TRUE(must(answers::history(*store_, sweep_, row)).empty()) << "it has no attempt";
}

}  // namespace
}  // namespace sweep
