// `sweep clean` finds allocations of ended sweeps, and nothing of a sweep that is running.
#include "orchestrator/driver/leftovers.h"

#include <cstdlib>
#include <fstream>

#include "base/files.h"
#include "orchestrator/driver/spool_root.h"
#include "runtime/attempt_token.h"
#include "tests/support/must.h"
#include "tests/support/temporary_folder.h"
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
  auto found = must(LeftoversOfRuns::find(driver.store(), driver.db()));
  EXPECT_FALSE(found.any());
  EXPECT_TRUE(found.running().empty());
  EXPECT_TRUE(found.end(driver.store()).empty());
}

TEST_F(LeftoversTest, ASweepThatIsRunningIsLeftAlone) {
  auto driver = open();
  ASSERT_TRUE(driver.take_lease());
  const auto found = must(LeftoversOfRuns::find(driver.store(), driver.db()));
  ASSERT_EQ(found.running().size(), 1u);
  EXPECT_EQ(found.running()[0].name, "test");
  EXPECT_EQ(found.running()[0].holder.pid, ::getpid());
}

TEST_F(LeftoversTest, AnAllocationOfALauncherThatIsNotRegisteredIsNotAskedAbout) {
  auto driver = open();
  leave_allocation(driver, "pigeon");
  leave_allocation(driver, "local");
  const auto found = must(LeftoversOfRuns::find(driver.store(), driver.db()));
  EXPECT_FALSE(found.any());
}

TEST_F(LeftoversTest, AnAllocationOverSshThatStartedNothingNeedsNoHosts) {
  auto driver = open();
  leave_allocation(driver, "ssh");
  const auto found = must(LeftoversOfRuns::find(driver.store(), driver.db()));
  EXPECT_FALSE(found.any());
}

// squeue and scancel of another place know one job of every name.
TEST_F(LeftoversTest, AJobThatIsToRunTheSweepIsListedAndCancelled) {
  auto driver = open();
  const TemporaryFolder programs;
  const auto program = [&](const char* name, const std::string& line) {
    std::ofstream(programs / name) << "#!/bin/sh\n" << line << "\n";
    std::filesystem::permissions(programs / name, std::filesystem::perms::owner_all);
  };
  program("squeue", "echo '17|PENDING|1:00||'$(echo \"$*\" | sed 's/.*--name=\\([^ ]*\\).*/\\1/')'|1|None'");
  program("scancel", "echo $1 >" + (programs / "cancelled").string());
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", (programs.string() + ":" + path).c_str(), 1);
  EXPECT_FALSE(LeftoversOfRuns::find(driver.store(), driver.db())->any()) << "no job was submitted";
  std::filesystem::create_directories(spool_root_of(driver.db()));
  std::ofstream(spool_root_of(driver.db()) / "orchestrator.sh") << "#!/bin/bash\n";
  auto found = must(LeftoversOfRuns::find(driver.store(), driver.db()));
  EXPECT_EQ(found.lines().size(), 1u);
  EXPECT_TRUE(found.end(driver.store()).empty());
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(files::read(programs / "cancelled").value_or(""), "17\n");
}

}  // namespace
}  // namespace sweep::driver
