// The files of an attempt whose nodes share one folder.
#include "worker/agent/node/attempt_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "schema/codec.h"
#include "schema/command_spec.h"
#include "tests/support/error_matchers.h"

namespace sweep::agent {
namespace {

ino_t inode_of(const std::filesystem::path& file) {
  struct stat info {};
  EXPECT_EQ(::stat(file.c_str(), &info), 0) << file;
  return info.st_ino;
}

class AttemptFilesTest : public ::testing::Test {
 protected:
  AttemptFilesTest() {
    std::filesystem::create_directory(folder_);
    part_.attempt.id = 7;
    part_.attempt.trial.dp = 4, part_.attempt.trial.nodes = 2, part_.attempt.trial.gpus_per_node = 2;
    part_.ranks = 2, part_.whole = false;
  }
  ~AttemptFilesTest() override { std::filesystem::remove_all(folder_); }
  // The files that the agent of that node makes.
  AttemptFiles files_of(i64 node) {
    part_.first_rank = 2 * node;
    auto made = AttemptFiles::make(folder_, folder_ / ("memory" + std::to_string(node)) / "own", part_);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("attempt_files_" + std::to_string(::getpid()));
  NodePart part_;
};

TEST_F(AttemptFilesTest, NoNodeReplacesWhatTheRanksOfAnotherRead) {
  const AttemptFiles first = files_of(0);
  const ino_t before = inode_of(first.attempt_file());
  const AttemptFiles second = files_of(1);
  EXPECT_EQ(first.dir(), second.dir());
  EXPECT_EQ(inode_of(first.attempt_file()), before);
  for (const AttemptFiles* each : {&first, &second}) {
    const auto text = must(files::read(each->attempt_file()));
    EXPECT_EQ(from_json<Attempt>(*parse_json(text))->id, 7);
  }
}

// The limit of a file's size stands for a full disk.
TEST_F(AttemptFilesTest, AFullDiskIsTold) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  for (const rlim_t bytes : {rlim_t{0}, rlim_t{sizeof(ProgressPage) - 1}}) {
    const rlimit none{bytes, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
    const auto made = AttemptFiles::make(folder_, folder_ / "memory" / "own", part_);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    ASSERT_FALSE(made) << bytes;
    EXPECT_EQ(made.error().kind, ErrorKind::kDiskFull) << made.error().message;
  }
}

TEST_F(AttemptFilesTest, ARankThatWroteNothingHasNoRecord) {
  const AttemptFiles files = files_of(0);
  const auto record = must(files.record(1));
  EXPECT_FALSE(record);
}

TEST_F(AttemptFilesTest, AMissingWorkingFolderIsNotFoundHere) {
  CommandSpec command;
  command.argv = {"train"};
  const auto kind_of = [&](const std::filesystem::path& folder) {
    command.folder = folder;
    part_.attempt.trial.program = dump(to_json(command));
    const auto found = find_working_folder(part_.attempt);
    return found ? std::nullopt : std::optional(found.error().kind);
  };
  EXPECT_EQ(kind_of(folder_), std::nullopt);
  EXPECT_EQ(kind_of(""), std::nullopt) << "the folder of its files is made for it";
  EXPECT_EQ(kind_of(folder_ / "absent"), ErrorKind::kNotFound);
}

}  // namespace
}  // namespace sweep::agent
