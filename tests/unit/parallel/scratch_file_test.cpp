#include "bench_kernels/parallel/scratch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/temporary_folder.h"

namespace sweep::parallel {
namespace {

namespace fs = std::filesystem;

std::string error_of(std::int64_t bytes, const fs::path& folder) {
  try {
    const ScratchFile file(bytes, folder);
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}

TEST(ScratchFile, KeepsBytesAndStartsWithZeros) {
  const TemporaryFolder folder;
  ScratchFile file(1000, folder);
  std::string bytes(10, 'x');
  file.read(bytes.data(), 10, 990);
  EXPECT_EQ(bytes, std::string(10, '\0'));
  file.write("hello", 5, 500);
  file.read(bytes.data(), 5, 500);
  EXPECT_EQ(bytes.substr(0, 5), "hello");
}

TEST(ScratchFile, HasNoNameSoThatNothingIsLeft) {
  const TemporaryFolder folder;
  const ScratchFile file(1000, folder);
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(ScratchFile, AFullDiskAndAMissingFolderSayWhatToDo) {
  const TemporaryFolder folder;
  const std::string full = error_of(std::int64_t{1} << 60, folder);
  EXPECT_THAT(full, ::testing::HasSubstr("cannot reserve 1152921504606846976 bytes"));
  EXPECT_THAT(full, ::testing::HasSubstr("point TMPDIR to a folder with room"));
  EXPECT_TRUE(fs::is_empty(folder));
  EXPECT_THAT(error_of(1, folder / "none"), ::testing::HasSubstr("No such file"));
}

}  // namespace
}  // namespace sweep::parallel
