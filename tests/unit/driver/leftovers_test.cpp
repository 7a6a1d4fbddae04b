// `sweep clean` finds allocations of ended sweeps, and nothing of a sweep that is running.
#include "orchestrator/driver/leftovers.h"

#include "runtime/attempt_token.h"
#include "tests/unit/driver/driver_fixture.h"

namespace sweep::driver {
namespace {

class LeftoversTest : public DriverTest {
 protected:
  // An allocation of this launcher, as a run that died leaves it.
  static void leave_allocation(SweepDriver& driver, const std::string& launcher) {
    ASSERT_TRUE(driver.take_lease());
    const auto made =
        driver.store().create_allocation(driver.sweep().id, launcher, driver.db().parent_path() / "spool");
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_TRUE(driver.release_lease());
  }
};

TEST_F(LeftoversTest, ADatabaseWithoutAllocationsHasNone) {
  auto driver = open();
  auto found = LeftoversOfRuns::find(driver.store());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(found->any());
  EXPECT_TRUE(found->running().empty());
  EXPECT_TRUE(found->end(driver.store()).empty());
}

TEST_F(LeftoversTest, ASweepThatIsRunningIsLeftAlone) {
  auto driver = open();
  ASSERT_TRUE(driver.take_lease());
  const auto found = LeftoversOfRuns::find(driver.store());
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->running().size(), 1u);
  EXPECT_EQ(found->running()[0].name, "test");
  EXPECT_EQ(found->running()[0].holder.pid, ::getpid());
}

TEST_F(LeftoversTest, AnAllocationOfALauncherThatIsNotRegisteredIsNotAskedAbout) {
  auto driver = open();
  leave_allocation(driver, "pigeon");
  leave_allocation(driver, "local");
  const auto found = LeftoversOfRuns::find(driver.store());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(found->any());
}

TEST_F(LeftoversTest, AnAllocationOverSshThatStartedNothingNeedsNoHosts) {
  auto driver = open();
  leave_allocation(driver, "ssh");
  const auto found = LeftoversOfRuns::find(driver.store());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(found->any());
}

}  // namespace
}  // namespace sweep::driver
