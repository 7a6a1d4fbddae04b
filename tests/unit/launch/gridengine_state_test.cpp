// Answers of Grid Engine 8.1.9 (Debian 12), recorded.
#include "orchestrator/launch/gridengine/gridengine_state.h"

#include <gtest/gtest.h>

#include "tests/support/must.h"

namespace sweep::launch {
namespace {

constexpr const char* kQstat = R"(<?xml version='1.0'?>
<job_info  xmlns:xsd="http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qstat/qstat.xsd">
  <queue_info>
    <job_list state="running">
      <JB_job_number>3</JB_job_number>
      <JAT_prio>0.25000</JAT_prio>
      <JB_name>sweep-a0001-0badcafe</JB_name>
      <JB_owner>root</JB_owner>
      <state>r</state>
      <JAT_start_time>2026-11-22T23:35:31</JAT_start_time>
      <queue_name>all.q@gpu1.site</queue_name>
      <slots>1</slots>
      <full_job_name>sweep-a0001-0badcafe</full_job_name>
      <hard_request name="h_vmem" resource_contribution="0.000000">99999G</hard_request>
      <hard_request name="h_rt" resource_contribution="0.000000">60</hard_request>
      <binding>NONE</binding>
    </job_list>
  </queue_info>
  <job_info>
    <job_list state="pending">
      <JB_job_number>5</JB_job_number>
      <JAT_prio>0.75000</JAT_prio>
      <JB_name>a &lt;b&gt; &amp; c</JB_name>
      <JB_owner>root</JB_owner>
      <state>Eqw</state>
      <JB_submission_time>2026-11-22T23:35:32</JB_submission_time>
      <queue_name></queue_name>
      <slots>9</slots>
      <full_job_name>a &lt;b&gt; &amp; c</full_job_name>
      <requested_pe name="sweep">9</requested_pe>
    </job_list>
  </job_info>
</job_info>
)";

TEST(GridEngineState, ReadsRunningAndPendingJobs) {
  const auto jobs = must(read_qstat(kQstat));
  ASSERT_EQ(jobs.size(), 2u);
  const auto& runs = jobs.at(0);
  EXPECT_EQ(runs.number, 3);
  EXPECT_EQ(runs.name, "sweep-a0001-0badcafe");
  EXPECT_EQ(runs.state, "r");
  EXPECT_EQ(runs.host, "gpu1.site");
  EXPECT_EQ(runs.run_unix_s, 1795390531);
  EXPECT_EQ(runs.limit_s, 60);
  const auto& waits = jobs.at(1);
  EXPECT_EQ(waits.number, 5);
  EXPECT_EQ(waits.name, "a <b> & c");
  EXPECT_EQ(waits.host, "");
  EXPECT_FALSE(waits.run_unix_s);
}

TEST(GridEngineState, AnswersThatAreCutOffAreNoFacts) {
  const std::string whole = kQstat;
  for (const auto size :
       {std::size_t{0}, std::size_t{40}, whole.find("</state>"), whole.find("</queue_info>")})
    EXPECT_FALSE(read_qstat(whole.substr(0, size))) << size;
  EXPECT_TRUE(read_qstat("<job_info><queue_info>\n</queue_info><job_info>\n</job_info></job_info>")->empty());
}

TEST(GridEngineState, PhaseOfEachCombinationOfLetters) {
  for (const char* state : {"qw", "hqw", "Eqw", "Rqw", "hRwq"})
    EXPECT_EQ(phase_of(state), Phase::kPending) << state;
  for (const char* state : {"r", "t", "Rr", "Rt", "hr"}) EXPECT_EQ(phase_of(state), Phase::kRunning) << state;
  for (const char* state : {"s", "ts", "S", "tS", "T", "Rs", "P"})
    EXPECT_EQ(phase_of(state), Phase::kSuspended) << state;
  for (const char* state : {"dr", "dt", "dRr", "ds", "dqw"})
    EXPECT_EQ(phase_of(state), Phase::kEnding) << state;
  EXPECT_EQ(phase_of("z"), Phase::kEnded);
  EXPECT_EQ(phase_of("X"), Phase::kUnknown);
  EXPECT_EQ(phase_of(""), Phase::kUnknown);
}

TEST(GridEngineState, JobsInErrorOrOnHoldDoNotStartByWaiting) {
  using Wait = JobStatus::Wait;
  const auto wait_of = [](const char* state) {
    return status_of(GridEngineJob{1, "n", state, "", {}, {}}, 0).wait;
  };
  EXPECT_EQ(wait_of("qw"), Wait::kUsual);
  EXPECT_EQ(wait_of("Eqw"), Wait::kHopeless);
  EXPECT_EQ(wait_of("hqw"), Wait::kHopeless);
}

TEST(GridEngineState, TimeLeftIsKnownOfRunningJobsWithALimit) {
  GridEngineJob job{3, "n", "r", "", 1000.0, 60.0};
  EXPECT_EQ(status_of(job, 1010).seconds_left, 50);
  job.limit_s.reset();
  EXPECT_FALSE(status_of(job, 1010).seconds_left);
  EXPECT_FALSE(status_of(GridEngineJob{3, "n", "qw", "", {}, 60.0}, 1010).seconds_left);
}

std::string accounting(const char* name, const char* failed, const char* exit_status) {
  return std::string("==============================================================\n") +
         "qname        all.q               \nhostname     gpu1                \njobname      " + name +
         "             \njobnumber    3                   \nfailed       " + failed + "\nexit_status  " +
         exit_status + "                   \nru_wallclock 62s\n";
}

TEST(GridEngineState, BlameOfEachEnd) {
  const auto blame = [](const char* failed, const char* exit_status) {
    return read_qacct(accounting("n", failed, exit_status), "n")->blame;
  };
  EXPECT_EQ(blame("0", "0"), Blame::kNone);
  EXPECT_EQ(blame("0", "1"), Blame::kMachine);
  EXPECT_EQ(blame("37  : qmaster enforced h_rt, h_cpu, or h_vmem limit", "3"), Blame::kExternal);
  EXPECT_EQ(blame("100 : assumedly after job", "137"), Blame::kExternal);
  EXPECT_EQ(blame("26  : opening input/output file", "0"), Blame::kMachine);
}

TEST(GridEngineState, AccountingOfAnotherJobWithTheSameNumberIsNoAnswer) {
  EXPECT_FALSE(read_qacct(accounting("other", "0", "0"), "n"));
  const auto last = must(
      read_qacct(accounting("n", "0", "7") + accounting("n", "0", "0") + accounting("other", "1", "1"), "n"));
  EXPECT_EQ(last.phase, Phase::kEnded);
  EXPECT_EQ(last.blame, Blame::kNone);
  EXPECT_EQ(last.number, 3);
  EXPECT_EQ(last.nodes, "gpu1");
  EXPECT_FALSE(read_qacct("error: job id 3 not found\n", "n"));
  EXPECT_FALSE(read_qacct("", "n"));
}

TEST(GridEngineState, NumberOfASubmission) {
  EXPECT_EQ(read_qsub("17\n"), 17);
  EXPECT_EQ(read_qsub("welcome to the cluster\n17\n"), 17);
  EXPECT_FALSE(read_qsub(""));
  EXPECT_FALSE(read_qsub("17.1-3:1\n"));
}

}  // namespace
}  // namespace sweep::launch
