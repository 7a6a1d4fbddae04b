#include "worker/agent/process/process.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "schema/spool.h"

namespace sweep::agent {
namespace {

// flock() asks for no more than an open file: whoever may read the lock could keep an agent from starting.
TEST(Process, OtherUsersCannotTakeTheLock) {
  char folder[] = "/tmp/sweep-lock-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const mode_t before = ::umask(0);
  Options options;
  options.spool = folder;
  EXPECT_TRUE(lock_spool(options));
  ::umask(before);
  struct stat info {};
  ASSERT_EQ(::stat(spool::agent_lock(folder).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_TRUE(agent_lives(folder));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sweep::agent
