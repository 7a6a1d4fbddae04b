// Whose spool folder is used.
#include "orchestrator/driver/spool_root.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/expected.h"
#include "orchestrator/launch/batch/script_file.h"
#include "tests/support/error_matchers.h"
#include "tests/support/must.h"
#include "tests/unit/driver/driver_fixture.h"

namespace sweep::driver {
namespace {

namespace fs = std::filesystem;
constexpr uid_t kStranger = 65534;

class SpoolRootTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    std::ofstream(db_ = dir_ / "s.db") << "x";
    root_ = dir_ / "s.db.spool";
  }
  Expected<void> prepare() { return prepare_spool_root(root_, db_); }
  void expect_refused() { EXPECT_THAT(error_in(prepare()), IsError(ErrorKind::kRefused, root_.string())); }
  fs::path db_, root_;
};

TEST_F(SpoolRootTest, OneThatIsMissingIsMadeAndUsedAgain) {
  ASSERT_TRUE(prepare());
  struct stat made {};
  ASSERT_EQ(::stat(root_.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & S_IWOTH, 0u);
  EXPECT_TRUE(prepare());
}

TEST_F(SpoolRootTest, ThroughALinkToTheDatabaseItIsTheSame) {
  fs::create_directory(dir_ / "links");
  fs::create_symlink(db_, dir_ / "links" / "l.db");
  EXPECT_EQ(spool_root_of(dir_ / "links" / "l.db"), fs::weakly_canonical(root_));
  EXPECT_EQ(spool_root_of(db_), fs::weakly_canonical(root_));
}

TEST_F(SpoolRootTest, OneThatEveryUserCanWriteIsRefused) {
  fs::create_directory(root_);
  ASSERT_EQ(::chmod(root_.c_str(), 0777), 0);
  expect_refused();
  ASSERT_EQ(::chmod(root_.c_str(), 0775), 0);
  EXPECT_TRUE(prepare()) << "a group may share it";
}

TEST_F(SpoolRootTest, AFileAtItsPlaceIsRefused) {
  std::ofstream(root_) << "x";
  expect_refused();
}

TEST_F(SpoolRootTest, ALinkOfOnesOwnToAFolderOfOnesOwnIsUsed) {
  fs::create_directory(dir_ / "scratch");
  fs::create_directory_symlink(dir_ / "scratch", root_);
  EXPECT_TRUE(prepare());
  fs::remove(dir_ / "scratch");
  expect_refused();
}

TEST_F(SpoolRootTest, WhatAnotherUserMadeIsRefusedUnlessTheDatabaseIsTheirsToo) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can play another user";
  fs::create_directory(root_);
  ASSERT_EQ(::chown(root_.c_str(), kStranger, kStranger), 0);
  expect_refused();
  ASSERT_EQ(::chown(db_.c_str(), kStranger, kStranger), 0);
  EXPECT_TRUE(prepare());
  ASSERT_EQ(::chown(db_.c_str(), 0, 0), 0);
  fs::remove(root_);
  fs::create_directory(dir_ / "ours");
  fs::create_directory_symlink(dir_ / "ours", root_);
  ASSERT_EQ(::lchown(root_.c_str(), kStranger, kStranger), 0);
  expect_refused();
}

TEST_F(SpoolRootTest, ARunDoesNotUseAnUnsafeOne) {
  auto driver = open();
  const fs::path root = driver.db().string() + ".spool";
  fs::create_directory(root);
  ASSERT_EQ(::chmod(root.c_str(), 0777), 0);
  ASSERT_TRUE(driver.take_lease());
  ASSERT_TRUE(driver.sync_plan(plan(1), {0, 2, 1}));
  const auto report = run_all(driver);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().error.kind, ErrorKind::kRefused);
  EXPECT_TRUE(fs::is_empty(root));
  EXPECT_FALSE(leased(driver));
}

TEST_F(SpoolRootTest, AScriptForASchedulerIsReadByNobodyElseAndRemoved) {
  std::string path;
  {
    auto made = must(launch::ScriptFile::make("#!/bin/sh\n"));
    const auto script = std::move(made);
    path = script.path();
    struct stat file {};
    ASSERT_EQ(::stat(path.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777, 0600u);
    EXPECT_EQ(file.st_size, 10);
    EXPECT_NE(launch::ScriptFile::make("")->path(), path);
  }
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace sweep::driver
