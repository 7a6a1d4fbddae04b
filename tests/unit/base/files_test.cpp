#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <fstream>
#include <future>
#include <optional>

#include "base/expected.h"
#include "tests/support/temporary_folder.h"

namespace sweep {
namespace {

// Sets a variable of the environment for one test and puts the old value back.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(OwnFolders, AreBelowTheVariableOrHome) {
  const Variable home("HOME", "/home/x");
  {
    const Variable config("XDG_CONFIG_HOME", "/c"), state("XDG_STATE_HOME", "/s");
    EXPECT_EQ(config_folder(), "/c/sweep");
    EXPECT_EQ(state_folder(), "/s/sweep");
  }
  const Variable config("XDG_CONFIG_HOME", nullptr), state("XDG_STATE_HOME", nullptr);
  EXPECT_EQ(config_folder(), "/home/x/.config/sweep");
  EXPECT_EQ(state_folder(), "/home/x/.local/state/sweep");
}

TEST(OwnFolders, ARelativePathInTheVariableCountsAsUnset) {
  const Variable home("HOME", "/home/x"), config("XDG_CONFIG_HOME", "relative");
  EXPECT_EQ(config_folder(), "/home/x/.config/sweep");
}

TEST(OwnFolders, WithoutAHomeThereIsNoConfigurationAndStateIsTemporary) {
  const Variable home("HOME", nullptr), config("XDG_CONFIG_HOME", nullptr), state("XDG_STATE_HOME", nullptr);
  EXPECT_TRUE(config_folder().empty());
  EXPECT_EQ(state_folder(), "/tmp/.local/state/sweep");
}

TEST(ReadProc, ReadsFilesThatReportNoSizeUpToTheBound) {
  const std::string status = files::read_proc("/proc/self/status");
  EXPECT_NE(status.find("\nPid:\t" + std::to_string(::getpid()) + "\n"), std::string::npos);
  EXPECT_EQ(files::read_proc("/proc/self/status", 5), status.substr(0, 5));
  EXPECT_EQ(files::read_proc("/proc/self/no_such_file"), "");
}

TEST(ReadProc, PutsTogetherWhatTakesSeveralReads) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += std::to_string(i);
  const TemporaryFolder folder;
  const auto file = folder / "text";
  std::ofstream(file) << text;
  EXPECT_EQ(files::read_proc(file, 1 << 20), text);
  EXPECT_EQ(files::read_proc(file, 20'000), text.substr(0, 20'000));
}

TEST(ReadFile, AnAbsentFileAFolderAndALongFileAreErrors) {
  EXPECT_FALSE(files::read("/no/such/file"));
  EXPECT_FALSE(files::read("/tmp"));
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("files_test_" + std::to_string(::getpid()));
  ASSERT_TRUE(files::write_atomically(file, "12345"));
  const auto refused = files::write_atomically("/no/such/x.html", "1");
  EXPECT_TRUE(refused.error().message.starts_with("/no/such/x.html:")) << refused.error().message;
  EXPECT_FALSE(files::read(file, 4));
  EXPECT_EQ(*files::read(file, 5), "12345");
  EXPECT_EQ(files::size_of(file), 5U);
  std::filesystem::remove(file);
  EXPECT_EQ(files::size_of(file), 0U);
}

TEST(WriteOutput, ADeviceAndAFifoAreWrittenWhereTheyAreAndALinkKeepsItsPlace) {
  const std::filesystem::path base =
      std::filesystem::temp_directory_path() / ("output_test_" + std::to_string(::getpid()));
  std::filesystem::create_directory(base);
  ASSERT_TRUE(files::write_output("/dev/null", "x"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_FALSE(files::write_output("/dev/full", "x"));
  if (std::filesystem::is_directory("/dev/shm")) {
    const auto file = std::filesystem::path("/dev/shm") / base.filename();
    EXPECT_TRUE(files::write_output(file, "x")) << "a file below /dev is a file";
    EXPECT_TRUE(std::filesystem::remove(file));
  }
  ASSERT_EQ(::mkfifo((base / "fifo").c_str(), 0600), 0);
  auto reader = std::async(std::launch::async, [&] {
    std::ifstream in(base / "fifo");
    return std::string(std::istreambuf_iterator<char>(in), {});
  });
  ASSERT_TRUE(files::write_output(base / "fifo", "all of it"));
  EXPECT_EQ(reader.get(), "all of it");
  ASSERT_TRUE(files::write_output(base / "target", "old"));
  std::filesystem::create_symlink(base / "target", base / "link");
  ASSERT_TRUE(files::write_output(base / "link", "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(base / "link"));
  EXPECT_EQ(files::read(base / "target").value_or(""), "new");
  std::filesystem::remove_all(base);
}

// A folder of one test, removed with it.
class ReadExisting : public ::testing::Test {
 protected:
  ReadExisting() { std::filesystem::create_directory(folder_); }
  ~ReadExisting() override { std::filesystem::remove_all(folder_); }
  // Waits until something happened in the folder.
  void await(std::uint32_t events) const {
    const int watch = ::inotify_init1(IN_CLOEXEC);
    ASSERT_GE(::inotify_add_watch(watch, folder_.c_str(), events), 0);
    char event[sizeof(inotify_event) + NAME_MAX + 1];
    EXPECT_GT(::read(watch, event, sizeof event), 0);
    ::close(watch);
  }
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("read_existing_" + std::to_string(::getpid()));
};

TEST_F(ReadExisting, AFileThatIsStillEmptyIsReadAgain) {
  const auto file = folder_ / "attempt";
  ASSERT_TRUE(files::write_atomically(file, ""));
  auto reader =
      std::async(std::launch::async, [&] { return files::read_existing(file, std::chrono::minutes(1)); });
  await(IN_CLOSE_NOWRITE);  // it has seen the empty one
  ASSERT_TRUE(files::write_atomically(file, "all of it"));
  EXPECT_EQ(*reader.get(), "all of it");
}

TEST_F(ReadExisting, WhatDoesNotComeIsAnErrorAndWhatIsNoFileIsOneAtOnce) {
  EXPECT_EQ(files::read_existing(folder_ / "none", std::chrono::milliseconds(20)).error().kind,
            ErrorKind::kNotFound);
  EXPECT_EQ(files::read_existing(folder_).error().kind, ErrorKind::kUnreadable);
}

TEST(WriteOnce, AFileThatOthersReadIsNotReplacedByTheSame) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("write_once_" + std::to_string(::getpid()));
  ASSERT_TRUE(files::write_once(file, "module"));
  const int reader = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_TRUE(files::write_once(file, "module"));
  struct stat before {
  }, after{};
  ASSERT_EQ(::fstat(reader, &before), 0);
  ASSERT_EQ(::stat(file.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  ASSERT_TRUE(files::write_once(file, "another"));
  EXPECT_EQ(*files::read(file), "another");
  ::close(reader);
  std::filesystem::remove(file);
}

TEST(ReadFile, AFileThatVanishesIsAnErrorAndNotEmpty) {
  EXPECT_EQ(files::read("/no/such/file").error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(files::read("/proc/self/cmdline/none").error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(*files::read_from("/no/such/file", 0), "");
}

}  // namespace
}  // namespace sweep
