// The GPU-hours of a sweep: which predictions a person confirms, and how a sweep past its limit goes on.
#include "orchestrator/driver/gpu_hours.h"

#include <gmock/gmock.h>

#include "tests/unit/driver/driver_fixture.h"

namespace sweep::driver {
namespace {

TEST(GpuHours, APersonConfirmsWhatTakesMoreThanTheLimitUnlessAnotherEndsItBefore) {
  search::Most most;
  most.trials = 3, most.cost = 10;
  EXPECT_TRUE(why_confirm(most, 5, {}));
  EXPECT_TRUE(why_confirm(most, 5, 6));
  EXPECT_FALSE(why_confirm(most, 5, 5)) << "it ends before";
  EXPECT_FALSE(why_confirm(most, 10, {}));
  EXPECT_FALSE(why_confirm(most, 0, {})) << "the launcher has no limit";
}

using GpuHoursOf = DriverTest;

TEST_F(GpuHoursOf, ASweepPastItsLimitGoesOnByALargerOneOfTheSameKind) {
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

}  // namespace
}  // namespace sweep::driver
