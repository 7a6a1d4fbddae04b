// A rank's log within its limit: head and tail kept while a rank writes.
#include "worker/agent/evidence/rank_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "tests/support/temporary_folder.h"

namespace sweep::agent {
namespace {

class RankLogTest : public ::testing::Test {
 protected:
  void append(const std::string& text) { std::ofstream(file_, std::ios::app | std::ios::binary) << text; }
  std::string contents() const {
    std::ostringstream out;
    out << std::ifstream(file_, std::ios::binary).rdbuf();
    return out.str();
  }
  i64 disk_bytes() const {
    struct stat info {};
    ::stat(file_.c_str(), &info);
    return info.st_blocks * 512;
  }
  const TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "rank_00000.log";
};

TEST_F(RankLogTest, SmallLogIsLeftAlone) {
  RankLog log(file_, 1 << 20);
  append("one\ntwo\n");
  log.look();
  log.compact();
  EXPECT_EQ(contents(), "one\ntwo\n");
}

TEST_F(RankLogTest, MiddleIsGivenBackWhileTheRankWrites) {
  RankLog log(file_, 64 << 10);
  append("the head\n");
  for (int i = 0; i < 100; ++i) {
    append(std::string(32 << 10, 'a'));
    log.look();
    EXPECT_LE(disk_bytes(), (64 << 10) + (32 << 10) + 16384);
  }
  append("\nthe tail\n");
  log.compact();
  const std::string text = contents();
  EXPECT_LE(text.size(), (64u << 10) + 100);
  EXPECT_EQ(text.find("the head\n"), 0u);
  EXPECT_NE(text.find("bytes of this log were cut here]\n"), std::string::npos);
  EXPECT_EQ(text.substr(text.size() - 10), "\nthe tail\n");
  EXPECT_EQ(text.find('\0'), std::string::npos);
}

TEST_F(RankLogTest, TailStartsAtALineAndIsValidUtf8) {
  RankLog log(file_, 1 << 20);
  append(std::string(5000, 'x') + "\nlast \xff\xfe line\n");
  EXPECT_EQ(log.tail(), "last \xef\xbf\xbd\xef\xbf\xbd line\n");
}

TEST_F(RankLogTest, AbsentLogHasAnEmptyTail) {
  RankLog log(file_, 1 << 20);
  log.look();
  log.compact();
  EXPECT_EQ(log.tail(), "");
}

}  // namespace
}  // namespace sweep::agent
