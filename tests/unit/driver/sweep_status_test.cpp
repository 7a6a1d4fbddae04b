// The status of a sweep, with who runs it and the GPU-hours that it has held.
#include "orchestrator/driver/sweep_status.h"

#include <map>
#include <nlohmann/json.hpp>

#include "orchestrator/answers/tables/sweeps_table.h"
#include "orchestrator/driver/gpu_hours.h"
#include "tests/support/error_matchers.h"
#include "tests/unit/driver/driver_fixture.h"

namespace sweep::driver {
namespace {

class SweepStatus : public DriverTest {};

TEST_F(SweepStatus, TheDocumentNamesTheProcessThatRunsItAndTheRest) {
  auto driver = open();
  ASSERT_FALSE(*driver.take_lease());
  ASSERT_TRUE(driver.sync_plan(plan(2), {}));
  const auto shot = snapshot_of(driver.store(), driver.sweep());
  ASSERT_TRUE(shot);
  const auto document = status_document(driver.store(), driver.sweep(), *shot, 3);
  ASSERT_TRUE(document);
  EXPECT_EQ((*document)["pending"], 2);
  EXPECT_EQ((*document)["run_by"]["pid"], ::getpid());
  EXPECT_EQ((*document)["gpu_hours"]["held"], 0);
  auto view = answers::status_view(progress_of(driver.sweep(), *shot), {});
  ASSERT_TRUE(add_details(view, driver.store(), driver.sweep(), {}));
  ASSERT_EQ(view.now.size(), 1u);
  EXPECT_EQ(view.now[0], *run_by(driver.store(), driver.sweep()));
}

TEST_F(SweepStatus, APersonConfirmsWhatTakesMoreThanTheLimitUnlessAnotherEndsItBefore) {
  search::Most most;
  most.trials = 3, most.cost = 10;
  EXPECT_TRUE(why_confirm(most, 5, {}));
  EXPECT_TRUE(why_confirm(most, 5, 6));
  EXPECT_FALSE(why_confirm(most, 5, 5)) << "it ends before";
  EXPECT_FALSE(why_confirm(most, 10, {}));
  EXPECT_FALSE(why_confirm(most, 0, {})) << "the launcher has no limit";
}

TEST_F(SweepStatus, ASweepPastItsLimitGoesOnByALargerOneOfTheSameKind) {
  auto driver = open();
  const auto words_of = [](const std::string& name) { return "<" + name + ">"; };
  const auto by = [&](run::Limit limit, store::SweepRow sweep) {
    sweep.options.gpu_hours = 2, sweep.options.usd = 4, sweep.grid_path = "g.yaml";
    return past_limit(limit, driver.store(), sweep, words_of);
  };
  EXPECT_THAT(by(run::Limit::kGpuHours, driver.sweep()), ::testing::HasSubstr("resume <test> --gpu-hours"));
  EXPECT_THAT(by(run::Limit::kUsd, driver.sweep()), ::testing::HasSubstr("run <g.yaml> --usd"));
  EXPECT_THAT(by(run::Limit::kSite, driver.sweep()), ::testing::HasSubstr("resume <test>"));
}

TEST_F(SweepStatus, TrialsThatRunWithoutAHolderAreLeftOver) {
  answers::StatusView view;
  answers::add_holder(view, "");
  EXPECT_TRUE(view.now.empty());
  view.running = 1;
  answers::add_holder(view, "");
  EXPECT_EQ(view.now.size(), 1u);
  answers::add_holder(view, "run by me");
  EXPECT_EQ(view.now.back(), "run by me");
}

TEST_F(SweepStatus, TheListOfSweepsHasCountsAndWhoRunsEach) {
  auto driver = open();
  ASSERT_FALSE(*driver.take_lease());
  ASSERT_TRUE(driver.sync_plan(plan(2), {}));
  ASSERT_TRUE(run_all(driver));
  ASSERT_TRUE(driver.make(row("other.rehearsal")));
  const auto listed = answers::listed_sweeps(driver.store(), [&](const store::SweepRow& sweep) {
    return Expected<std::string>(sweep.name == "test" ? "me" : "");
  });
  ASSERT_TRUE(listed);
  const Table table = answers::sweeps_table(*listed);
  ASSERT_EQ(table.rows.size(), 2u);
  std::map<std::string, std::vector<Value>> rows;
  for (const auto& each : table.rows) rows[std::get<std::string>(each[0])] = each;
  EXPECT_EQ(rows["test"][1], Value(std::string("measured")));
  EXPECT_EQ(rows["test"][2], Value(i64{2}));
  EXPECT_EQ(rows["test"][4], Value(i64{2}));
  EXPECT_EQ(rows["test"][6], Value(std::string("me")));
  EXPECT_EQ(rows["other.rehearsal"][1], Value(std::string("rehearsal")));
  EXPECT_EQ(rows["other.rehearsal"][5], Value()) << "it has no result";
  EXPECT_FALSE(answers::listed_sweeps(
      driver.store(), [](const store::SweepRow&) -> Expected<std::string> { return fail("x"); }));
}

}  // namespace
}  // namespace sweep::driver
