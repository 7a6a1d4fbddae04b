// The status of a sweep, with who runs it.
#include "orchestrator/driver/sweep_status.h"

#include <nlohmann/json.hpp>

#include "tests/support/must.h"
#include "tests/unit/driver/driver_fixture.h"

namespace sweep::driver {
namespace {

class SweepStatus : public DriverTest {};

TEST_F(SweepStatus, TheDocumentNamesTheProcessThatRunsItAndTheRest) {
  auto driver = open();
  ASSERT_FALSE(*driver.take_lease());
  ASSERT_TRUE(driver.sync_plan(plan(2), {}));
  const auto shot = must(snapshot_of(driver.store(), driver.sweep()));
  const auto document = must(status_document(driver.store(), driver.sweep(), shot, 3));
  EXPECT_EQ(document["pending"], 2);
  EXPECT_EQ(document["run_by"]["pid"], ::getpid());
  EXPECT_EQ(document["gpu_hours"]["held"], 0);
  auto view = answers::status_view(progress_of(driver.sweep(), shot), {});
  ASSERT_TRUE(add_details(view, driver.store(), driver.sweep(), {}));
  ASSERT_EQ(view.now.size(), 1u);
  EXPECT_EQ(view.now[0], *run_by(driver.store(), driver.sweep()));
}

}  // namespace
}  // namespace sweep::driver
