// Folders on memory: removed with their owner, and by others only when their owner is dead.
#include "worker/agent/net/rendezvous.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

namespace sweep::agent {
namespace {

namespace fs = std::filesystem;

class Rendezvous : public ::testing::Test {
 protected:
  // A process that owns a folder until it is killed.
  pid_t owner_of(const fs::path& root) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const RendezvousFolder owned(root);
      (void)!::write(ends[1], "", 1);
      while (true) ::pause();
    }
    char told = 0;
    EXPECT_EQ(::read(ends[0], &told, 1), 1);
    ::close(ends[0]), ::close(ends[1]);
    return child;
  }
  static void kill_dead(pid_t child) {
    ::kill(child, SIGKILL);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  }
  const TemporaryFolder home_;
};

TEST_F(Rendezvous, GoesWithItsOwner) {
  {
    const RendezvousFolder mine(home_ / "a-1");
    EXPECT_TRUE(fs::is_directory(mine.root()));
    EXPECT_EQ(remove_dead_rendezvous(home_), 0);
  }
  EXPECT_TRUE(fs::is_empty(home_));
}

TEST_F(Rendezvous, OfAKilledOwnerIsRemovedByTheNextAgentAndOfALivingOneIsNot) {
  const pid_t living = owner_of(home_ / "living-1"), killed = owner_of(home_ / "killed-1");
  fs::create_directory(home_ / "killed-1" / "7");
  std::ofstream(home_ / "killed-1" / "7" / "segment") << "x";
  kill_dead(killed);
  EXPECT_EQ(remove_dead_rendezvous(home_), 1);
  EXPECT_FALSE(fs::exists(home_ / "killed-1"));
  EXPECT_TRUE(fs::exists(home_ / "living-1"));
  kill_dead(living);
}

TEST_F(Rendezvous, WithoutProofNothingIsRemoved) {
  fs::create_directory(home_ / "of-a-version-without-locks-1");
  fs::create_directory(home_ / "target");
  std::ofstream(home_ / "target" / ".owner");
  fs::create_directory_symlink(home_ / "target", home_ / "link");
  fs::create_directory(home_ / "linked-lock");
  fs::create_symlink(home_ / "target" / ".owner", home_ / "linked-lock" / ".owner");
  EXPECT_EQ(remove_dead_rendezvous(home_), 1);  // "target": its lock is free
  EXPECT_TRUE(fs::exists(home_ / "of-a-version-without-locks-1"));
  EXPECT_TRUE(fs::is_symlink(home_ / "link"));
  EXPECT_TRUE(fs::exists(home_ / "linked-lock"));
}

TEST_F(Rendezvous, AFolderThatOthersMayWriteToIsNotUsed) {
  fs::create_directory(home_ / "open");
  ASSERT_EQ(::chmod((home_ / "open").c_str(), 0777), 0);
  EXPECT_FALSE(private_folder(home_ / "open"));
}

}  // namespace
}  // namespace sweep::agent
