#include "base/files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

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

}  // namespace
}  // namespace sweep
