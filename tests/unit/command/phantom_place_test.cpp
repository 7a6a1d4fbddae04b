#include "worker/command/phantom_place.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "worker/command/trainer_process.h"

namespace sweep::command {
namespace {

class PhantomPlace : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("SWEEP_PHANTOM", "{}", 1);
    ::setenv("SWEEP_PHANTOM_NODE", "rehearsal", 1);
    char folder[] = "/tmp/sweep_phantom_place_XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    launch.attempt_dir = folder;
    std::filesystem::create_directories(results_file(launch, 0).parent_path());
    attempt.trial.nodes = 2, attempt.trial.gpus_per_node = 4, attempt.trial.dp = 8;
    attempt.rehearsed_ranks = {0, 1, 2, 3, 4, 5, 6, 7};
    launch.rank = launch.local_rank = 5;
  }
  void TearDown() override {
    ::unsetenv("SWEEP_PHANTOM"), ::unsetenv("SWEEP_PHANTOM_NODE");
    std::filesystem::remove_all(launch.attempt_dir);
  }
  RankLaunch launch;
  Attempt attempt;
};

TEST_F(PhantomPlace, RanksOfANodeSeeANodeOfTheirOwn) {
  EXPECT_EQ(local_rank_of(attempt, launch), 1);
  auto set = phantom_variables(attempt, launch);
  EXPECT_EQ(set["SWEEP_PHANTOM_NODE"], "rehearsal.1");
  EXPECT_EQ(set["SWEEP_PHANTOM_GPUS"], "4");
  attempt.trial.nodes = 1;
  EXPECT_FALSE(phantom_variables(attempt, launch).contains("SWEEP_PHANTOM_NODE"));
}

TEST_F(PhantomPlace, OutsideOfARehearsalNothingMovesButCounters) {
  attempt.rehearsed_ranks.clear();
  EXPECT_EQ(local_rank_of(attempt, launch), 5);
  const auto set = phantom_variables(attempt, launch);  // to find out that the program ran on phantoms
  EXPECT_EQ(set.size(), 2u);
  EXPECT_EQ(set.at("SWEEP_PHANTOM_COUNTERS_SIGNAL"), std::to_string(phantom_counters_signal()));
  ::unsetenv("SWEEP_PHANTOM");
  EXPECT_TRUE(phantom_variables(attempt, launch).empty());
}

TEST_F(PhantomPlace, RanksThatStandForOthersKnowWhichAreStarted) {
  EXPECT_FALSE(phantom_variables(attempt, launch).contains("SWEEP_STARTED_RANKS"));
  attempt.rehearsed_ranks = {0, 4};
  launch.rendezvous_dir = "/dev/shm/here";
  const auto set = phantom_variables(attempt, launch);
  EXPECT_EQ(set.at("SWEEP_STARTED_RANKS"), "0,4");
  EXPECT_TRUE(set.at("SWEEP_STARTED_STORE").starts_with("/dev/shm/here/"));
}

TEST_F(PhantomPlace, CountersAreThoseOfTheRank) {
  EXPECT_FALSE(phantom_counters(launch));
  const auto file = results_file(launch, 0).parent_path() / "phantom_5.json";
  ASSERT_TRUE(files::write_atomically(file, "{\"rank\": 5, \"launches\": 7}\n"));
  EXPECT_EQ(phantom_counters(launch)->launches, 7);
  ASSERT_TRUE(files::write_atomically(file, "{\"rank\": 5,"));
  EXPECT_FALSE(phantom_counters(launch));
}

TEST(ExplainOnPhantoms, ACallThatIsNotAnsweredIsUnsupported) {
  RankRecord record;
  record.outcome = Outcome::kCrash, record.message = "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED";
  RankRecord other = record, peer = record, well;
  well.outcome = Outcome::kOk, peer.consequential = true;
  for (RankRecord* each : {&record, &peer, &well}) {
    each->effective.phantom.emplace().not_answered = "cudnnSetDropoutDescriptor";
    explain_on_phantoms(*each);
  }
  EXPECT_EQ(record.outcome, Outcome::kUnsupported);
  EXPECT_EQ(peer.outcome, Outcome::kCrash);
  EXPECT_EQ(well.outcome, Outcome::kOk);
  const std::string before = other.message;
  other.effective.phantom.emplace().launches = 7;
  explain_on_phantoms(other);
  EXPECT_EQ(other.outcome, Outcome::kCrash);
  EXPECT_NE(other.message, before);  // it says what phantoms do not compute
}

}  // namespace
}  // namespace sweep::command
