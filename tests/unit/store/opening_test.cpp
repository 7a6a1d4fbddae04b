// A database at its path: made whole or not at all, read by users who may not write it, removed or replaced while a run
// uses it.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "store_fixture.h"

namespace sweep::store {
namespace {

class OpeningTest : public StoreTest {
 protected:
  std::vector<std::string> names_beside() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(dir_)) out.push_back(entry.path().filename());
    std::ranges::sort(out);
    return out;
  }
  fs::path beside(const std::string& suffix) const { return path_.string() + suffix; }
};

TEST_F(OpeningTest, WhatAKilledProcessLeftOfANewDatabaseIsRemoved) {
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ::waitpid(dead, nullptr, 0);
  const auto old = fs::file_time_type::clock::now() - std::chrono::minutes(1);
  const auto leave = [&](pid_t pid) {
    const fs::path left = beside(".new-" + std::to_string(pid));
    for (const char* part : {"", "-wal", "-shm"}) std::ofstream(left.string() + part) << "x";
    fs::last_write_time(left, old);
    return left.filename().string();
  };
  leave(dead);
  const std::string living = leave(::getppid());
  open().reset();
  const std::string name = path_.filename();
  EXPECT_EQ(names_beside(), (std::vector{name, living, living + "-shm", living + "-wal"}));
}

TEST_F(OpeningTest, AReaderThatMayNotWriteTheFileLeavesNothingBesideIt) {
  start(1);
  must(store_->release_lease(sweep_));
  store_.reset();
  fs::permissions(dir_, fs::perms::all);
  fs::permissions(path_, fs::perms::owner_all | fs::perms::others_read);
  const auto read_by_another = [&] {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::geteuid() == 0 && (::setgid(65534) || ::setuid(65534))) ::_exit(3);
      auto reader = Store::open(path_, Mode::kReadOnly, quick());
      ::_exit(reader && (*reader)->plan(sweep_) && (*reader)->query("SELECT count(*) FROM results") ? 0 : 2);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  const auto before = names_beside();
  EXPECT_EQ(read_by_another(), 0) << "2: not read, 3: no unprivileged user";
  EXPECT_EQ(names_beside(), before);
  store_ = open();
  EXPECT_EQ(read_by_another(), 0) << "beside a writer";
}

TEST_F(OpeningTest, AReaderThatMayNotWriteTheFileSeesLaterWritesWhenItLooksAgain) {
  start(2);
  must(store_->release_lease(sweep_));
  store_.reset();
  fs::permissions(dir_, fs::perms::all);
  fs::permissions(path_, fs::perms::owner_all | fs::perms::others_read);
  int opened[2], written[2];
  ASSERT_TRUE(::pipe(opened) == 0 && ::pipe(written) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::setgid(65534) || ::setuid(65534))) ::_exit(3);
    const auto reader = must(Store::open(path_, Mode::kReadOnly, quick()));
    const i64 before = must(reader->version());
    char byte = 'x';
    if (must(reader->progress(sweep_)).answered() != 0) ::_exit(4);
    if (::write(opened[1], &byte, 1) != 1 || ::read(written[0], &byte, 1) != 1) ::_exit(5);
    must(reader->look_again());
    ::_exit(must(reader->version()) == before ? 6
                                              : static_cast<int>(must(reader->progress(sweep_)).answered()));
  }
  char byte = 0;
  ASSERT_EQ(::read(opened[0], &byte, 1), 1);
  start(2);
  finish(plan_[0], Outcome::kOk, 5);
  ASSERT_EQ(::write(written[1], &byte, 1), 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 1) << "0: not seen, 3: no unprivileged user";
  for (const int fd : {opened[0], opened[1], written[0], written[1]}) ::close(fd);
}

TEST_F(OpeningTest, ADatabaseThatIsRemovedUnderARunIsAnErrorAndSaved) {
  start(2);
  finish(plan_[0], Outcome::kOk, 5);
  must(store_->beat(sweep_));
  fs::remove(path_);
  const Error error = error_in(store_->beat(sweep_));
  EXPECT_EQ(error.kind, ErrorKind::kUnwritable);
  EXPECT_EQ(error.subject, path_.string());
  EXPECT_EQ(error_in(store_->release_lease(sweep_)).kind, ErrorKind::kUnwritable);
  const fs::path saved = beside(".rescued-" + std::to_string(::getpid()));
  store_.reset();
  EXPECT_EQ(names_beside(), std::vector<std::string>{saved.filename()})
      << "no log that a new file would be read with";
  const auto rescued = must(Store::open(saved, Mode::kReadOnly, quick()));
  EXPECT_EQ(must(rescued->progress(sweep_)).answered(), 1);
}

TEST_F(OpeningTest, ADatabaseThatIsReplacedUnderARunIsAnErrorAndSaved) {
  start(1);
  finish(plan_[0], Outcome::kOk, 5);
  std::ofstream(beside(".other")) << "another file";
  fs::rename(beside(".other"), path_);
  EXPECT_EQ(error_in(store_->release_lease(sweep_)).kind, ErrorKind::kUnwritable);
  const fs::path saved = beside(".rescued-" + std::to_string(::getpid()));
  EXPECT_EQ(must(must(Store::open(saved, Mode::kReadOnly, quick()))->progress(sweep_)).answered(), 1);
}

TEST_F(OpeningTest, ADatabaseThatIsCutShortUnderARunIsAnErrorAndSaved) {
  start(1);
  finish(plan_[0], Outcome::kOk, 5);
  must(store_->beat(sweep_));
  must(store_->back_up(beside(".copy")));  // every page is in memory now
  fs::resize_file(path_, fs::file_size(path_) / 2);
  EXPECT_EQ(error_in(store_->beat(sweep_)).kind, ErrorKind::kUnwritable);
  const fs::path saved = beside(".rescued-" + std::to_string(::getpid()));
  EXPECT_EQ(must(must(Store::open(saved, Mode::kReadOnly, quick()))->progress(sweep_)).answered(), 1);
  EXPECT_EQ(error_in(store_->release_lease(sweep_)).kind, ErrorKind::kUnwritable);
}

TEST_F(OpeningTest, ADatabaseThatAVacuumMadeShorterIsWhole) {
  start(400);
  must(store_->release_lease(sweep_));
  store_.reset();
  sql("CREATE TABLE big AS SELECT zeroblob(4000000) AS bytes");
  store_ = open();
  ASSERT_FALSE(must(store_->take_lease(sweep_)).has_value());
  must(store_->beat(sweep_));
  const auto before = fs::file_size(path_);
  sql("DROP TABLE big; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
  ASSERT_LT(fs::file_size(path_), before);
  EXPECT_TRUE(store_->beat(sweep_));
}

}  // namespace
}  // namespace sweep::store
