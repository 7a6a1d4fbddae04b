#include "runtime/spool_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/expected.h"
#include "base/files.h"
#include "schema/spool.h"
#include "tests/support/error_matchers.h"
#include "tests/support/temporary_folder.h"

namespace sweep::spool {
namespace {

class SpoolFile : public ::testing::Test {
 protected:
  std::string bytes() const { return *files::read_from(file_, 0); }
  void append_raw(std::string_view tail) { std::ofstream(file_, std::ios::app) << tail; }
  const TemporaryFolder dir_;
  const fs::path file_ = inbox(dir_);
};

TEST_F(SpoolFile, WritesAndReadsBackInOrder) {
  auto w = must(Writer::open(file_, "a1", 1));
  EXPECT_EQ(*w.append(kAttempt, {{"n", 1}}), 1);
  EXPECT_EQ(*w.append(kFinish, {{"n", 2}}), 2);
  const Parsed p = parse(bytes());
  ASSERT_EQ(p.lines.size(), 2u);
  EXPECT_EQ(p.lines[1].kind, kFinish);
  EXPECT_EQ(p.lines[1].seq, 2);
  EXPECT_EQ(p.consumed, bytes().size());
}

TEST_F(SpoolFile, TornLastLineIsIgnoredAndCutOffOnReopen) {
  ASSERT_TRUE(Writer::open(file_, "a1", 1)->append(kAttempt, {{"n", 1}}));
  const auto whole = bytes();
  append_raw("0badc0de {\"allocation\":\"a1\",");
  EXPECT_EQ(parse(bytes()).consumed, whole.size());
  EXPECT_TRUE(parse(bytes()).damage.empty());
  auto w = Writer::open(file_, "a1", 2);
  EXPECT_EQ(bytes(), whole);
  EXPECT_EQ(*w->append(kFinish, {{"now", false}}), 2);
}

TEST_F(SpoolFile, FlippedByteInTheMiddleIsReportedWithItsOffsetAndSkipped) {
  auto w = Writer::open(file_, "a1", 1);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(w->append(kAttempt, {{"n", i}}));
  std::string text = bytes();
  const auto second = text.find('\n') + 1;
  text[second + 20] ^= 1;
  const Parsed p = parse(text);
  EXPECT_EQ(p.lines.size(), 2u);
  ASSERT_EQ(p.damage.size(), 1u);
  EXPECT_NE(p.damage[0].find(std::to_string(second)), std::string::npos);
}

TEST_F(SpoolFile, EveryPrefixOfAFileParsesWithoutDamage) {
  auto w = Writer::open(file_, "a1", 1);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(w->append(kAttempt, {{"text", "\xff\n\"\\"}}));
  const std::string text = bytes();
  for (std::size_t n = 0; n <= text.size(); ++n)
    EXPECT_TRUE(parse(std::string_view(text).substr(0, n)).damage.empty());
}

TEST_F(SpoolFile, FullDiskKeepsNothingOfTheLine) {
  auto w = Writer::open(file_, "a1", 1);
  ASSERT_TRUE(w->append(kAttempt, {{"n", 1}}));
  const auto whole = bytes();
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small{whole.size() + 10, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto refused = w->append(kAttempt, {{"long", std::string(500, 'x')}});
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().subject, file_.string());
  EXPECT_EQ(bytes(), whole);
  EXPECT_EQ(*w->append(kAttempt, {{"n", 2}}), 2);
}

TEST_F(SpoolFile, NothingIsAppendedToATruncatedFile) {
  auto w = Writer::open(file_, "a1", 1);
  ASSERT_TRUE(w && w->append(kAttempt, {{"n", 1}}) && w->append(kAttempt, {{"n", 2}}));
  EXPECT_FALSE(w->displaced());
  fs::resize_file(file_, files::size_of(file_) / 2);
  EXPECT_TRUE(w->displaced());
  const auto refused = w->append(kAttempt, {{"n", 3}});
  EXPECT_THAT(error_in(refused), IsError(ErrorKind::kUnwritable, file_.string()));
  auto next = Writer::open(file_, "a1", 2);  // the rest is a file like any other
  ASSERT_TRUE(next && next->append(kAttempt, {{"n", 4}}));
  EXPECT_FALSE(next->displaced());
}

// If the file cannot be shortened (append-only, a server that fails), its torn line must not swallow the
// next one.
TEST_F(SpoolFile, ATornLineThatCannotBeCutOffTakesNoOtherWithIt) {
  const int fd = ::memfd_create("spool", MFD_ALLOW_SEALING);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const fs::path file = "/proc/self/fd/" + std::to_string(fd);
  auto w = must(Writer::open(file, "a1", 1));
  ASSERT_TRUE(w.append(kAttempt, {{"n", 1}}));
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small{files::size_of(file) + 10, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_FALSE(w.append(kAttempt, {{"n", 2}}));
  EXPECT_FALSE(w.append(kAttempt, {{"n", 2}}));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(*w.append(kAttempt, {{"n", 2}}), 2);
  EXPECT_EQ(*w.append(kAttempt, {{"n", 3}}), 3);
  const auto parsed = parse(*files::read(file));
  ::close(fd);
  ASSERT_EQ(parsed.lines.size(), 3u);
  EXPECT_EQ(parsed.lines[1].body["n"], 2);
}

TEST_F(SpoolFile, PiecesOfACopyMayComeTwiceButNotLeaveAGap) {
  EXPECT_EQ(files::size_of(file_), 0u);
  EXPECT_EQ(*append_copy(file_, 0, "abc", Copy::kSynced), 3u);
  EXPECT_EQ(*append_copy(file_, 1, "bcde", Copy::kUnsynced), 5u);
  EXPECT_EQ(*append_copy(file_, 0, "abc", Copy::kSynced), 5u);
  EXPECT_EQ(*append_copy(file_, 5, "", Copy::kSynced), 5u);
  const auto gap = append_copy(file_, 6, "g", Copy::kSynced);
  EXPECT_THAT(error_in(gap), IsError(ErrorKind::kUnwritable, file_.string()));
  EXPECT_EQ(bytes(), "abcde");
  EXPECT_EQ(fs::status(file_).permissions() & fs::perms::others_all, fs::perms::none);
  EXPECT_FALSE(append_copy(dir_ / "absent" / "file", 0, "x", Copy::kSynced));
}

TEST_F(SpoolFile, AtomicWriteReplacesWholeAndLeavesNoTemporary) {
  ASSERT_TRUE(files::write_atomically(file_, "one"));
  ASSERT_TRUE(files::write_atomically(file_, "two"));
  EXPECT_EQ(bytes(), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator{}), 1);
  EXPECT_FALSE(files::write_atomically(dir_ / "absent" / "file", "x"));
  EXPECT_FALSE(files::read(dir_));
  EXPECT_FALSE(files::read(file_, 2));
}

}  // namespace
}  // namespace sweep::spool
