// The agent's end of the mailbox: each line once, none lost, whatever the disk does.
#include "worker/agent/node/mailbox.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <fstream>

#include "base/files.h"
#include "tests/support/error_matchers.h"
#include "tests/support/temporary_folder.h"

namespace sweep::agent {
namespace {

class MailboxTest : public ::testing::Test {
 protected:
  void inbox(const std::string& bytes) {
    std::ofstream(spool::inbox(spool_), std::ios::app | std::ios::binary) << bytes;
  }
  static std::string line(i64 seq, const std::string& allocation = "a", i64 incarnation = 1) {
    return spool::frame({allocation, incarnation, seq, "finish", {{"now", false}}});
  }
  std::vector<i64> seqs(Mailbox& mailbox) {
    std::vector<i64> out;
    for (const auto& got : mailbox.poll()) out.push_back(got.seq);
    return out;
  }
  const TemporaryFolder spool_;
};

TEST_F(MailboxTest, AbsentInboxIsEmpty) {
  auto mailbox = must(Mailbox::open(spool_, "a", 1));
  EXPECT_TRUE(mailbox.poll().empty());
}

TEST_F(MailboxTest, LinesSeenAreDropped) {
  auto mailbox = Mailbox::open(spool_, "a", 1);
  inbox(line(1) + line(2));
  EXPECT_EQ(seqs(*mailbox), (std::vector<i64>{1, 2}));
  inbox(line(1) + line(2) + line(3));  // reposted after a crash of the orchestrator
  EXPECT_EQ(seqs(*mailbox), (std::vector<i64>{3}));
  EXPECT_TRUE(seqs(*mailbox).empty());
}

TEST_F(MailboxTest, OtherAllocationsAndIncarnationsAreIgnored) {
  auto mailbox = Mailbox::open(spool_, "a", 2);
  inbox(line(1, "b", 2) + line(2, "a", 1) + line(3, "a", 3) + line(4, "a", 2));
  EXPECT_EQ(seqs(*mailbox), (std::vector<i64>{4}));
}

TEST_F(MailboxTest, TornLineWaitsForItsEnd) {
  auto mailbox = Mailbox::open(spool_, "a", 1);
  const std::string whole = line(1);
  inbox(whole.substr(0, 20));
  EXPECT_TRUE(seqs(*mailbox).empty());
  inbox(whole.substr(20));
  EXPECT_EQ(seqs(*mailbox), (std::vector<i64>{1}));
}

TEST_F(MailboxTest, DamagedLineIsSkipped) {
  auto mailbox = Mailbox::open(spool_, "a", 1);
  std::string bad = line(1);
  bad[15] ^= 1;
  inbox(bad + "\n\n" + line(2));
  EXPECT_EQ(seqs(*mailbox), (std::vector<i64>{2}));
}

TEST_F(MailboxTest, LinesTheDiskRefusesAreKeptInOrder) {
  auto mailbox = must(Mailbox::open(spool_, "a", 1));
  mailbox.send("hello", {{"n", 1}});
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto size = std::filesystem::file_size(spool::outbox(spool_));
  const rlimit full{size + 10, before.rlim_max};  // write() fails as on a full disk, in the middle of a line
  ::setrlimit(RLIMIT_FSIZE, &full);
  mailbox.send("bye", {{"n", 2}});
  mailbox.send("bye", {{"n", 3}});
  EXPECT_TRUE(mailbox.backlog());
  EXPECT_FALSE(mailbox.flush());
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(mailbox.flush());
  EXPECT_FALSE(mailbox.backlog());
  const auto parsed = spool::parse(*files::read(spool::outbox(spool_)));
  EXPECT_TRUE(parsed.damage.empty());
  ASSERT_EQ(parsed.lines.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(parsed.lines[i].body["n"], i + 1);
    EXPECT_EQ(parsed.lines[i].seq, static_cast<i64>(i + 1));
  }
}

}  // namespace
}  // namespace sweep::agent
