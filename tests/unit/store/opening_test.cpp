// A database at its path: made whole or not at all, read by users who may not write it, removed or replaced while a run
// uses it.
#include "orchestrator/store/opening.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
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
  // The exit code of `look` in a process of its own, by a user who may not write the file; 3: there is no such user.
  template <class Look>
  int by_one_who_may_not_write(Look look) {
    fs::permissions(dir_, fs::perms::all);
    fs::permissions(path_, fs::perms::owner_all | fs::perms::others_read);
    const pid_t child = ::fork();
    if (child == 0) {
      if (::geteuid() == 0 && (::setgid(65534) || ::setuid(65534))) ::_exit(3);
      ::_exit(look());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  }
};

TEST_F(OpeningTest, WhatAKilledProcessLeftOfANewDatabaseOrACopyIsRemoved) {
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ::waitpid(dead, nullptr, 0);
  const auto old = fs::file_time_type::clock::now() - std::chrono::minutes(1);
  const auto leave = [&](pid_t pid, const std::string& of = ".new-") {
    const fs::path left = beside(of + std::to_string(pid));
    for (const char* part : {"", "-wal", "-shm"}) std::ofstream(left.string() + part) << "x";
    fs::last_write_time(left, old);
    return left.filename().string();
  };
  leave(dead);
  const std::string living = leave(::getppid());
  open().reset();
  const std::string name = path_.filename();
  EXPECT_EQ(names_beside(), (std::vector{name, living, living + "-shm", living + "-wal"}));
  leave(dead, ".copy.part-");
  must(open()->back_up(beside(".copy")));
  EXPECT_EQ(names_beside(), (std::vector{name, name + ".copy", living, living + "-shm", living + "-wal"}));
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

TEST_F(OpeningTest, ThroughALinkAReaderThatMayNotWriteTheFileSeesTheLogOfTheFileItself) {
  start(1);
  finish(plan_[0], Outcome::kOk, 5);
  const fs::path link = dir_ / "link.db";
  fs::create_symlink(path_, link);
  EXPECT_EQ(by_one_who_may_not_write([&] {
              auto reader = Store::open(link, Mode::kReadOnly, quick());
              const auto progress = reader ? (*reader)->progress(sweep_) : tl::unexpected(reader.error());
              return progress ? 10 + static_cast<int>(progress->answered()) : 2;
            }),
            11);
}

TEST_F(OpeningTest, AFileWithARollbackJournalIsReadUnderSQLitesLocks) {
  start(1);
  must(store_->release_lease(sweep_));
  store_.reset();
  const auto stands_still = [&] {
    return by_one_who_may_not_write([&] {
      const auto db = open_for_reading(path_, 50);
      return db && (*db)->pragma("schema_version") ? 10 + (is_read_as_it_stood(**db) ? 1 : 0) : 2;
    });
  };
  EXPECT_EQ(stands_still(), 11) << "with a write-ahead log, which makes files";
  sql("PRAGMA journal_mode = DELETE");
  EXPECT_EQ(stands_still(), 10) << "a page may be half written otherwise";
}

TEST_F(OpeningTest, AReaderWithoutRoomForTheSharedMemoryReadsTheFileAsItStands) {
  start(1);
  finish(plan_[0], Outcome::kOk, 5);
  must(store_->release_lease(sweep_));
  store_.reset();
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{0, 0};  // as a full disk: files may be made, and hold nothing
    ::signal(SIGXFSZ, SIG_IGN);
    if (::setrlimit(RLIMIT_FSIZE, &none) != 0) ::_exit(3);
    auto reader = Store::open(path_, Mode::kReadOnly, quick());
    const auto progress = reader ? (*reader)->progress(sweep_) : tl::unexpected(reader.error());
    ::_exit(progress ? 10 + static_cast<int>(progress->answered()) : 2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 11);
}

TEST_F(OpeningTest, AReaderThatLooksAgainMissesAFileThatWasRemovedOrReplaced) {
  start(1);
  finish(plan_[0], Outcome::kOk, 5);
  must(store_->release_lease(sweep_));
  const fs::path other = beside(".other");
  must(store_->back_up(other));
  store_.reset();
  const auto reader = must(Store::open(path_, Mode::kReadOnly, quick()));
  const i64 before = must(reader->version());
  must(reader->look_again());
  EXPECT_EQ(must(reader->version()), before);
  for (const char* part : {"", "-wal", "-shm"}) fs::remove(beside(part));
  EXPECT_THAT(error_in(reader->look_again()), IsError(ErrorKind::kNotFound, path_.string()));
  fs::rename(other, path_);
  must(reader->look_again());
  EXPECT_NE(must(reader->version()), before);
  EXPECT_EQ(must(reader->progress(sweep_)).answered(), 1);
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
