// Archives as a host might send them.
#include "orchestrator/launch/ssh/ssh_logs.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "base/files.h"
#include "schema/spool.h"
#include "tests/support/temporary_folder.h"

namespace sweep::launch {
namespace {

namespace fs = std::filesystem;

class SshLogsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"spool", "far", "elsewhere"}) fs::create_directories(root_ / name);
  }
  void put(const fs::path& file, const std::string& text) {
    fs::create_directories((root_ / "far" / file).parent_path());
    std::ofstream(root_ / "far" / file) << text;
  }
  // Sends the content of `far` as the node's archive, and removes it.
  void send(std::size_t node, const std::string& members = "attempts agent.log") {
    const fs::path archive = root_ / "logs.tar";
    ASSERT_EQ(std::system(("tar -C " + (root_ / "far").string() + " -cf " + archive.string() + " " + members +
                           " 2>/dev/null")
                              .c_str()) &
                  0x7f,
              0);
    fs::remove_all(root_ / "far");
    fs::create_directories(root_ / "far");
    boost::asio::io_context io;
    whole_ = run_to_end(io, unpack_logs(io, archive, root_ / "spool", node));
    EXPECT_FALSE(fs::exists(archive));
  }
  std::string text(const fs::path& file) const { return files::read(root_ / "spool" / file).value_or(""); }
  const TemporaryFolder root_;
  bool whole_ = false;
};

TEST_F(SshLogsTest, TheLogsOfAllNodesComeTogether) {
  put("attempts/7/rank_00000.log", "zero");
  put("agent.log", "head");
  send(0);
  EXPECT_TRUE(whole_);
  put("attempts/7/rank_00001.log", "one");
  put("agent.log", "other");
  send(1);
  EXPECT_EQ(text("attempts/7/rank_00000.log") + text("attempts/7/rank_00001.log"), "zeroone");
  EXPECT_EQ(text("agent.log") + text("agent.n1.log"), "headother");
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "spool"), {}), 3) << "nothing else is left";
}

TEST_F(SshLogsTest, ALinkLeadsNothingOutOfTheSpool) {
  fs::create_directory_symlink(root_ / "elsewhere", root_ / "far/attempts");
  send(0);
  put("attempts/7/rank_00000.log", "zero");
  put("attempts/authorized_keys", "evil");
  send(1, "attempts/authorized_keys attempts/7");
  put("attempts/8/real", "x");
  fs::create_symlink("/etc/passwd", root_ / "far/attempts/8/rank_00000.log");
  send(2);
  EXPECT_TRUE(fs::is_empty(root_ / "elsewhere"));
  EXPECT_EQ(text("attempts/7/rank_00000.log"), "zero");
  EXPECT_EQ(text("attempts/8/rank_00000.log"), "");
}

TEST_F(SshLogsTest, WhatIsNoArchiveLeavesNothing) {
  std::ofstream(root_ / "logs.tar") << "no tar at all";
  boost::asio::io_context io;
  EXPECT_FALSE(run_to_end(io, unpack_logs(io, root_ / "logs.tar", root_ / "spool", 0)));
  EXPECT_TRUE(fs::is_empty(root_ / "spool"));
}

}  // namespace
}  // namespace sweep::launch
