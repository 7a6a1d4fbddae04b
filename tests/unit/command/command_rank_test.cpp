// A command's rank whose attempt cannot be read.
#include "worker/command/command_rank.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "schema/codec.h"
#include "schema/progress.h"
#include "schema/spool.h"
#include "tests/support/error_matchers.h"
#include "tests/support/temporary_folder.h"

namespace sweep::command {
namespace {

TEST(CommandRank, OneThatCannotReadItsAttemptSaysSoOfThatAttempt) {
  const TemporaryFolder root;
  const auto folder = root / "41";
  std::filesystem::create_directory(folder);
  RankLaunch launch;
  launch.attempt_dir = launch.rendezvous_dir = folder;
  launch.attempt_file = spool::attempt_file(folder);
  launch.rank = 1;
  ASSERT_TRUE(files::write_atomically(launch.attempt_file, "{\"id\": 41, "));
  ASSERT_TRUE(files::write_atomically(spool::rank_progress(folder, 1), std::string(sizeof(ProgressPage), 0)));
  EXPECT_EQ(run_command_rank(launch), kNoAttempt);
  const auto text = must(files::read(spool::rank_record(folder, 1)));
  const auto record = must(from_json<RankRecord>(*parse_json(text)));
  EXPECT_EQ(record.attempt, 41);
  EXPECT_EQ(record.rank, 1);
  EXPECT_EQ(record.outcome, Outcome::kCrash);
}

}  // namespace
}  // namespace sweep::command
