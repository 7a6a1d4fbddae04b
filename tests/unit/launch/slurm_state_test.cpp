#include "orchestrator/launch/slurm/slurm_state.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/must.h"

namespace sweep::launch {
namespace {

// Lines that Slurm 22.05 wrote; the format is squeue_by_name()'s.
constexpr const char* kSqueue =
    "17|RUNNING|9:41|n[1-2]|sweep-a0001-0badcafe|2|None\n"
    "18|PENDING|10:00||sweep-a0002-0badcafe|5|PartitionConfig\n"
    "16|CANCELLED|1-02:03:04|n3|sweep-a0000-0badcafe|1|None\n"
    "19|PENDING|UNLIMITED||sweep-a0003-0badcafe|1|Nodes required for job are DOWN, "
    "DRAINED "
    "or reserved | in higher priority partitions\n"
    "20+0|RUNNING|5:00|n4|sweep-a0004-0badcafe|1|None\n"
    "20+1|RUNNING|5:00|n5|sweep-a0004-0badcafe|1|None\n";

TEST(SlurmState, SqueueIsReadLineByLine) {
  const auto jobs = read_squeue(kSqueue);
  ASSERT_EQ(jobs.size(), 5u);
  EXPECT_EQ(jobs[0].id, 17);
  EXPECT_EQ(jobs[0].name, "sweep-a0001-0badcafe");
  EXPECT_EQ(jobs[0].nodes, "n[1-2]");
  EXPECT_EQ(jobs[0].seconds_left, 581);
  EXPECT_EQ(jobs[1].reason, "PartitionConfig");
  EXPECT_EQ(jobs[2].seconds_left, 86400 + 2 * 3600 + 3 * 60 + 4);
  EXPECT_FALSE(jobs[3].seconds_left);
  EXPECT_NE(jobs[3].reason.find("| in higher"), std::string::npos) << "the reason may hold the separator";
  EXPECT_EQ(jobs[4].id, 20) << "a job of several parts is its first part";
}

TEST(SlurmState, WhatCannotBeReadIsNoFact) {
  for (const char* answer :
       {"", "\n", "slurm_load_jobs error: Unable to contact slurm controller\n", "17|RUNNING\n",
        "x|RUNNING|a|b|c|1|None\n", "17||a|b|c|1|None\n", "-3|RUNNING|a|b|c|1|None\n"})
    EXPECT_TRUE(read_squeue(answer).empty()) << answer;
  EXPECT_TRUE(read_sacct("17|RUNNING\n").empty());
  EXPECT_FALSE(read_scontrol("slurm_load_jobs error: Invalid job id specified\n"));
  EXPECT_FALSE(read_scontrol(""));
}

TEST(SlurmState, SacctAndScontrol) {
  const auto old = read_sacct(
      "17|CANCELLED by 1000|n[1-2]|sweep-a0001-0badcafe|None\n"
      "18|OUT_OF_ME+|n1|sweep-a0002-0badcafe|None\n");
  ASSERT_EQ(old.size(), 2u);
  EXPECT_EQ(meaning_of(old[0].state).blame, Blame::kExternal);
  EXPECT_EQ(meaning_of(old[1].state).blame, Blame::kMachine);
  const auto one = must(read_scontrol(
      "JobId=17 JobName=sweep-a0001-0badcafe UserId=root(0) JobState=NODE_FAIL Reason=NodeDown "
      "Dependency=(null) "
      "SubmitTime=2026-11-21T10:00:00 EligibleTime=2026-11-21T10:00:00 NodeList=n[1-2] BatchHost=n1 \n"));
  EXPECT_EQ(one.id, 17);
  EXPECT_EQ(one.state, "NODE_FAIL");
  EXPECT_EQ(one.nodes, "n[1-2]");
}

struct Expectation {
  const char* state;
  Phase phase;
  Blame blame;
};

TEST(SlurmState, EveryStateHasAMeaning) {
  for (const Expectation& e : {Expectation{"PENDING", Phase::kPending, Blame::kNone},
                               {"CONFIGURING", Phase::kPending, Blame::kNone},
                               {"REQUEUED", Phase::kPending, Blame::kNone},
                               {"REQUEUE_HOLD", Phase::kPending, Blame::kNone},
                               {"SPECIAL_EXIT", Phase::kPending, Blame::kNone},
                               {"RUNNING", Phase::kRunning, Blame::kNone},
                               {"RESIZING", Phase::kRunning, Blame::kNone},
                               {"SUSPENDED", Phase::kSuspended, Blame::kNone},
                               {"STOPPED", Phase::kSuspended, Blame::kNone},
                               {"COMPLETING", Phase::kEnding, Blame::kNone},
                               {"STAGE_OUT", Phase::kEnding, Blame::kNone},
                               {"COMPLETED", Phase::kEnded, Blame::kNone},
                               {"CANCELLED", Phase::kEnded, Blame::kExternal},
                               {"CANCELLED by 0", Phase::kEnded, Blame::kExternal},
                               {"DEADLINE", Phase::kEnded, Blame::kExternal},
                               {"PREEMPTED", Phase::kEnded, Blame::kExternal},
                               {"REVOKED", Phase::kEnded, Blame::kExternal},
                               {"TIMEOUT", Phase::kEnded, Blame::kExternal},
                               {"BOOT_FAIL", Phase::kEnded, Blame::kMachine},
                               {"FAILED", Phase::kEnded, Blame::kMachine},
                               {"NODE_FAIL", Phase::kEnded, Blame::kMachine},
                               {"OUT_OF_MEMORY", Phase::kEnded, Blame::kMachine},
                               {"OUT_OF_ME+", Phase::kEnded, Blame::kMachine},
                               {"QUANTUM_FLUX", Phase::kUnknown, Blame::kNone},
                               {"", Phase::kUnknown, Blame::kNone}}) {
    EXPECT_EQ(meaning_of(e.state).phase, e.phase) << e.state;
    EXPECT_EQ(meaning_of(e.state).blame, e.blame) << e.state;
  }
}

TEST(SlurmState, NodesInAReservationOfAnotherJobStillCountAsWorking) {
  const auto facts = read_sinfo("up|2|planned\nup|1|idle\nup|4|mixed-\nup|8|idle~\nup|16|allocated\n");
  EXPECT_TRUE(facts.up);
  EXPECT_EQ(facts.nodes, 31);
  EXPECT_EQ(facts.working, 31);
  const auto bad =
      read_sinfo("down|1|idle*\ndown|2|drained\ndown|4|down\ndown|8|maint\ndown|16|inval\n\nnonsense\n");
  EXPECT_FALSE(bad.up);
  EXPECT_EQ(bad.nodes, 31);
  EXPECT_EQ(bad.working, 0);
  EXPECT_EQ(bad.others, "1 idle*, 2 drained, 4 down, 8 maint, 16 inval");
  EXPECT_EQ(read_sinfo("").nodes, 0);
}

TEST(SlurmState, OfAllPartitionsTheDefaultOneIsMeantAndItsLimitIsRead) {
  const auto facts =
      read_sinfo("up|3|idle|infinite|main*\nup|1|allocated|infinite|main*\nup|9|idle|10:00|small\n");
  EXPECT_EQ(facts.nodes, 4);
  EXPECT_EQ(facts.idle, 3);
  EXPECT_FALSE(facts.longest_s);
  const auto named = read_sinfo("up|9|idle|10:00|small\n");
  EXPECT_EQ(named.idle, 9);
  EXPECT_EQ(named.longest_s, 600);
}

TEST(SlurmState, IdleNodesByPartition) {
  const auto idle = read_idle("main*|3|idle\nmain*|2|idle~\nsmall|1|idle\nnonsense\n");
  EXPECT_EQ(idle, (std::map<std::string, i64>{{"", 3}, {"main", 3}, {"small", 1}}));
}

TEST(SlurmState, ATimeIsWrittenInWholeMinutes) {
  EXPECT_EQ(slurm_time(61), "00:02:00") << "rounded up: a limit below what is needed ends a trial";
  EXPECT_EQ(slurm_time(7200), "02:00:00");
  EXPECT_EQ(slurm_time(90000), "1-01:00:00");
}

TEST(SlurmState, SubmissionsAreAcceptedRefusedOrUnconfirmed) {
  EXPECT_EQ(read_sbatch("17\n"), 17);
  EXPECT_EQ(read_sbatch("sbatch: the site says hello\n17;cluster\n"), 17);
  EXPECT_FALSE(read_sbatch("Submitted\n"));
  EXPECT_FALSE(read_sbatch(""));
  EXPECT_TRUE(
      is_in_doubt("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"));
  EXPECT_TRUE(is_in_doubt("sbatch: error: Batch job submission failed: Unable to contact slurm controller"));
  EXPECT_FALSE(is_in_doubt("sbatch: error: invalid partition specified: gpuu"));
  EXPECT_TRUE(is_hopeless("PartitionConfig"));
  EXPECT_TRUE(is_hopeless("JobHeldUser"));
  for (const char* beyond : {"QOSMaxWallDurationPerJobLimit", "QOSMaxNodePerJobLimit",
                             "AssocMaxCpuMinutesPerJobLimit", "QOSMaxGRESPerNode", "QOSMinCpuNotSatisfied"})
    EXPECT_TRUE(is_hopeless(beyond)) << beyond;
  for (const char* passing : {"Resources", "Priority", "QOSMaxJobsPerUserLimit", "AssocMaxJobsLimit",
                              "AssocGrpNodeLimit", "QOSMaxSubmitJobPerUserLimit", "QOSGrpCpuLimit"})
    EXPECT_FALSE(is_hopeless(passing)) << passing;
}

TEST(SlurmState, ALimitOnAUsersJobsIsNoRefusalForGood) {
  for (const char* reason :
       {"AssocMaxSubmitJobLimit", "QOSMaxSubmitJobPerUserLimit", "QOSGrpSubmitJobsLimit"})
    EXPECT_TRUE(
        takes_no_more(std::string("sbatch: error: ") + reason +
                      "\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy"))
        << reason;
  EXPECT_TRUE(takes_no_more("sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying."));
  EXPECT_FALSE(takes_no_more(
      "sbatch: error: QOSMaxWallDurationPerJobLimit\nsbatch: error: Batch job submission failed: Job "
      "violates accounting/QOS policy (job submit limit, user's size and/or time limits)"));
  EXPECT_EQ(sbatch_refusal("sbatch: error: A\n\nsbatch: B\nC"), "A; B; C");
  EXPECT_EQ(sbatch_refusal(""), "");
}

TEST(SlurmState, AJobOfAnotherUserWithTheSameNameIsIgnored) {
  const auto mine = "--user=" + std::to_string(::geteuid());
  for (const auto& words : {squeue_by_name({"sweep-a"}), sacct_by_name({"sweep-a"})})
    EXPECT_NE(std::find(words.begin(), words.end(), mine), words.end());
}

}  // namespace
}  // namespace sweep::launch
