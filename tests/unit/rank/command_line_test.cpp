// Requests that sweep-rank refuses before it computes.
#include "worker/rank/command_line.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace sweep::rank {
namespace {

constexpr int kBadInput = 2;

class CheckOfLayouts : public ::testing::Test {
 protected:
  int code_of(std::string layouts) {
    const std::string absent = folder_ / "absent";
    std::string words[] = {"sweep-rank", "check", "--checkpoint", absent,
                           "--tokens",   absent,  "--layouts",    std::move(layouts)};
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    return run_command_line(static_cast<int>(argv.size()), argv.data());
  }
  std::string file_of(const std::string& bytes) const {
    std::string path = folder_ / "layouts.txt";
    std::ofstream(path) << bytes;
    return path;
  }
  const TemporaryFolder folder_;
};

TEST_F(CheckOfLayouts, NeedsAFileWithOne) {
  EXPECT_EQ(code_of(folder_ / "absent"), kBadInput);
  EXPECT_EQ(code_of(folder_), kBadInput) << "a folder";
  EXPECT_EQ(code_of(file_of("")), kBadInput) << "an empty file";
}

TEST_F(CheckOfLayouts, ARefusalNamesTheLine) {
  for (const char* line : {"--no-flag", "--tp 1"}) {  // no layout; a layout of no checkpoint
    const std::string path = file_of(std::string(line) + "\n");
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(code_of(path), kBadInput);
    EXPECT_NE(::testing::internal::GetCapturedStderr().find(path + ":1: "), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace sweep::rank
