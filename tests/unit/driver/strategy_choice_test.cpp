// The strategy that a run has by its grid and its command line, and what earlier answers leave it to do.
#include "orchestrator/driver/strategy_choice.h"

#include <fstream>

#include "tests/support/error_matchers.h"
#include "tests/support/must.h"
#include "tests/unit/driver/driver_fixture.h"

namespace sweep::driver {
namespace {

class StrategyChoice : public DriverTest {
 protected:
  static StrategyRequest request(std::optional<i64> max_trials, std::optional<double> audit,
                                 bool rehearses = false) {
    return {std::nullopt, max_trials, audit, rehearses};
  }
  static grid::Grid grid_with(StrategyKind kind) {
    grid::Grid out;
    out.strategy.emplace().kind = kind;
    return out;
  }
};

TEST_F(StrategyChoice, TheCommandLineGoesBeforeTheGridAndNeitherIsNone) {
  EXPECT_FALSE(chosen_strategy({}, {}));
  EXPECT_EQ(chosen_strategy(grid_with(StrategyKind::kSearch), {})->kind, StrategyKind::kSearch);
  const auto both =
      must(chosen_strategy(grid_with(StrategyKind::kSearch), {StrategyKind::kGrid, 3, 0.5, false}));
  EXPECT_EQ(both.kind, StrategyKind::kGrid);
  EXPECT_EQ(both.max_trials, 3);
  EXPECT_EQ(both.audit, 0.5);
}

TEST_F(StrategyChoice, ARehearsalRunsEveryTrialUnlessSizesAreLookedFor) {
  EXPECT_FALSE(chosen_strategy(grid_with(StrategyKind::kSearch), request(3, 0.5, true)));
  const auto sizes = must(chosen_strategy(grid_with(StrategyKind::kBatch), request({}, 0.5, true)));
  EXPECT_EQ(sizes.kind, StrategyKind::kBatch);
  EXPECT_EQ(sizes.audit, 0) << "a rehearsal audits nothing";
  EXPECT_EQ(sizes.history, false);
}

TEST_F(StrategyChoice, AMostOfTrialsNeedsAStrategyThatHasOne) {
  EXPECT_THAT(error_in(can_decide(sweep::Strategy(), request(3, {}))),
              IsError(ErrorKind::kConflict, "--max-trials"));
  EXPECT_TRUE(can_decide(sweep::Strategy(), request(3, {}, true)));
  EXPECT_TRUE(can_decide(*chosen_strategy(grid_with(StrategyKind::kSearch), {}), request(3, {})));
}

TEST_F(StrategyChoice, AnsweredTrialsAreNotRunAgain) {
  auto driver = open();
  auto entries = plan(3);
  entries[2].admitted = false, entries[2].rule = "memory", entries[2].reason = "too large";
  ASSERT_FALSE(*driver.take_lease());
  ASSERT_TRUE(driver.sync_plan(entries, {}));
  const sweep::Strategy every, search = *chosen_strategy(grid_with(StrategyKind::kSearch), {});
  const auto before = must(answered_trials(driver.store(), driver.sweep(), search));
  EXPECT_TRUE(before.empty()) << "pruned by the plan of another strategy";
  EXPECT_EQ(most_left(entries, every, before).trials, 2);
  ASSERT_TRUE(run_all(driver));
  const auto after = must(answered_trials(driver.store(), driver.sweep(), every));
  EXPECT_EQ(after.size(), 3u);
  EXPECT_EQ(most_left(entries, every, after).trials, 0);
}

TEST_F(StrategyChoice, NewResultsDifferByMeasuringPlanBuildAndGrid) {
  auto before = row();
  const MeasurePlan same = *before.options.measure, other{9, 9, 9};
  EXPECT_TRUE(changes_since(before, &same).empty());
  EXPECT_EQ(changes_since(before, &other).size(), 1u);
  before.options.build = "another";
  EXPECT_EQ(changes_since(before, &other).size(), 2u);
  before.grid_path = dir_ / "g.yaml", before.grid_text = "was";
  EXPECT_EQ(changes_since(before, nullptr).size(), 1u) << "there is no such file";
  std::ofstream(before.grid_path) << "is";
  EXPECT_EQ(changes_since(before, nullptr).size(), 2u);
}

}  // namespace
}  // namespace sweep::driver
