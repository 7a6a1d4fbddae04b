#include "worker/agent/process/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/process.h"
#include "schema/spool.h"
#include "tests/support/temporary_folder.h"
#include "worker/agent/process/srun_step.h"

namespace sweep::agent {
namespace {

// flock() asks for no more than an open file: whoever may read the lock could keep an agent from starting.
TEST(Process, OtherUsersCannotTakeTheLock) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(0);
  Options options;
  options.spool = folder;
  EXPECT_TRUE(lock_spool(options));
  ::umask(before);
  struct stat info {};
  ASSERT_EQ(::stat(spool::agent_lock(folder).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_TRUE(agent_lives(folder));
}

TEST(Process, PeersGetTheProgramThatRunsAlthoughItsFileWasReplaced) {
  const TemporaryFolder folder;
  const auto program = folder / "agent", spool = folder / "spool";
  std::filesystem::create_directory(spool);
  std::filesystem::copy_file("/bin/sleep", program);
  const auto bytes = std::filesystem::file_size(program);
  const auto pid = start_program({{program.string(), "100"}});
  ASSERT_TRUE(pid) << pid.error().message;
  const auto self = std::filesystem::path("/proc") / std::to_string(*pid) / "exe";
  EXPECT_EQ(program_for_peers(self, spool).value_or(""), program);
  std::filesystem::remove(program);
  const auto copy = program_for_peers(self, spool);
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_EQ(copy->parent_path(), spool);
  EXPECT_EQ(std::filesystem::file_size(*copy), bytes);
  EXPECT_EQ(::access(copy->c_str(), X_OK), 0);
  ::kill(*pid, SIGKILL);
  (void)wait_for(*pid);
}

}  // namespace
}  // namespace sweep::agent
