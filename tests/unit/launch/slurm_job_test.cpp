// A Slurm job's life, told by scripted commands: no Slurm is asked.
#include "orchestrator/launch/slurm_job.h"

#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <cstdlib>
#include <deque>

namespace sweep::launch {
namespace {

class ScriptedCommands final : public Commands {
 public:
  explicit ScriptedCommands(boost::asio::io_context& io) : Commands(io), loop_(io) {}
  void run(std::vector<std::string> argv, double, Answer answer) override {
    asked.push_back(argv[0]);
    Said said;
    if (argv[0] == "sbatch" && !sbatch.empty()) said = sbatch.front(), sbatch.pop_front();
    if (argv[0] == "scancel") said.code = 0;
    boost::asio::post(loop_, [answer, said] { answer(said); });
  }
  std::vector<std::string> asked;
  std::deque<Said> sbatch;

 private:
  boost::asio::io_context& loop_;
};

Said took(const char* out) {
  Said said;
  said.code = 0, said.out = out;
  return said;
}
Said refused(const char* err) {
  Said said;
  said.code = 1, said.err = err;
  return said;
}

class SlurmJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/sweep-slurm-XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    request_.id = "a0001-0badcafe", request_.spool = folder, request_.seconds = 600;
    around_.options.signal_s = 60;
    around_.options.pending_s = 600;
    job_ = std::make_shared<SlurmJob>(around_, request_);
  }
  void TearDown() override { std::filesystem::remove_all(request_.spool); }

  void settle() {
    io_.restart();
    io_.run();
  }
  void submit(Said said) {
    commands_.sbatch.push_back(std::move(said));
    ASSERT_TRUE(job_->submit());
    settle();
  }
  JobFacts facts(const char* state, const char* reason = "None", i64 id = 17) const {
    JobFacts out;
    out.id = id, out.name = job_->name(), out.state = state, out.reason = reason;
    out.submitted = "2026-11-21T10:00:00", out.nodes = "n1", out.seconds_left = 500;
    return out;
  }
  void learn(const JobFacts& one) {
    job_->learn({one}, false);
    settle();
  }
  void agent_says(std::string_view kind, const nlohmann::json& body) {
    if (!outbox_)
      outbox_.emplace(std::move(*spool::Writer::open(spool::outbox(request_.spool), request_.id, 1)));
    ASSERT_TRUE(outbox_->append(kind, body));
    job_->look();
  }
  const Ended* ended() const {
    for (const auto& event : events_)
      if (const auto* out = std::get_if<Ended>(&event)) return out;
    return nullptr;
  }
  template <class T>
  i64 count() const {
    i64 n = 0;
    for (const auto& event : events_) n += std::holds_alternative<T>(event);
    return n;
  }
  i64 dismissals() const {  // told to its agent, should one still live
    i64 n = 0;
    for (const auto& line : spool::parse(spool::read_file(spool::inbox(request_.spool)).value_or("")).lines)
      n += line.kind == spool::kFinish && line.body.value("now", false);
    return n;
  }
  i64 asked(const std::string& program) const {
    return std::count(commands_.asked.begin(), commands_.asked.end(), program);
  }

  boost::asio::io_context io_;
  ScriptedCommands commands_{io_};
  std::vector<Event> events_;
  double now_ = 1000;
  SlurmSurroundings around_{commands_,
                            {},
                            {"/bin/true", "/bin/true", true},
                            [this](const Event& event) {
                              events_.push_back(event);
                              if (const auto* box = std::get_if<Outbox>(&event))
                                job_->acknowledge(box->offset + box->bytes.size());
                            },
                            [] {},
                            [this] { return now_; }};
  AllocationRequest request_;
  std::shared_ptr<SlurmJob> job_;
  std::optional<spool::Writer> outbox_;
};

TEST_F(SlurmJobTest, StartsWhenItsAgentSpeaksAndEndsWithItsFarewell) {
  submit(took("17\n"));
  learn(facts("PENDING", "Resources"));
  EXPECT_EQ(count<Started>(), 0);
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  ASSERT_EQ(count<Started>(), 1);
  const auto& started = std::get<Started>(events_.front());
  EXPECT_EQ(started.pid, 17);
  EXPECT_EQ(started.seconds_left, 500 - 60);
  agent_says(spool::kBye, {{"reason", "finished"}});
  ASSERT_NE(ended(), nullptr);
  EXPECT_FALSE(ended()->lost || ended()->blameless);
  EXPECT_FALSE(job_->closed()) << "Slurm's own end is waited for";
  learn(facts("COMPLETED"));
  EXPECT_TRUE(job_->closed());
  EXPECT_EQ(count<Ended>(), 1);
}

TEST_F(SlurmJobTest, AnEmptyAnswerConcludesNothingUntilSlurmDeniesTheJobTwice) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  for (int i = 0; i < 50; ++i) job_->learn({}, false);
  EXPECT_EQ(ended(), nullptr);
  job_->learn({}, true);
  EXPECT_EQ(ended(), nullptr);
  learn(facts("RUNNING"));  // it is there again: the count starts anew
  job_->learn({}, true);
  EXPECT_EQ(ended(), nullptr);
  job_->learn({}, true);
  ASSERT_NE(ended(), nullptr);
  EXPECT_TRUE(ended()->lost);
}

TEST_F(SlurmJobTest, AReusedNumberIsNotOurs) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  auto other = facts("FAILED");
  other.submitted = "2026-11-22T10:00:00";
  learn(other);
  EXPECT_EQ(ended(), nullptr);
}

TEST_F(SlurmJobTest, ASubmissionInDoubtIsLookedForBeforeItIsRepeated) {
  Said late;
  late.timed_out = true;
  submit(late);
  EXPECT_EQ(asked("sbatch"), 1);
  learn(facts("PENDING", "Priority"));
  EXPECT_EQ(job_->number(), 17);
  EXPECT_EQ(asked("sbatch"), 1) << "it was found: nothing is repeated";
}

TEST_F(SlurmJobTest, ASubmissionThatNeverArrivedIsRepeatedAfterTwoDenials) {
  submit(refused(
      "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"));
  commands_.sbatch.push_back(took("18\n"));
  job_->learn({}, true);
  settle();
  EXPECT_EQ(asked("sbatch"), 1);
  job_->learn({}, true);
  settle();
  EXPECT_EQ(asked("sbatch"), 2);
  EXPECT_EQ(job_->number(), 18);
  EXPECT_EQ(ended(), nullptr);
}

TEST_F(SlurmJobTest, ARefusalIsSaidAndNotRepeated) {
  submit(refused(
      "sbatch: error: invalid partition specified: gpuu\nsbatch: error: Batch job submission failed\n"));
  ASSERT_NE(ended(), nullptr);
  EXPECT_TRUE(ended()->lost);
  EXPECT_EQ(ended()->reason,
            "refused by sbatch: invalid partition specified: gpuu; Batch job submission failed");
  EXPECT_TRUE(job_->closed());
  EXPECT_EQ(asked("sbatch"), 1);
}

const char* const kNoMore =
    "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job violates "
    "accounting/QOS policy (job submit limit, user's size and/or time limits)\n";

TEST_F(SlurmJobTest, WhereTheUserMayHaveNoMoreJobsItIsSubmittedLater) {
  around_.options.pending_s = 0;
  submit(refused(kNoMore));
  for (int i = 0; i < 20; ++i) job_->learn({}, true);  // nobody knows it, and that is no wonder
  settle();
  EXPECT_EQ(ended(), nullptr);
  EXPECT_EQ(asked("sbatch"), 1);
  ASSERT_EQ(count<Remark>(), 1);
  EXPECT_NE(std::get<Remark>(events_[0]).text.find("(QOSMaxSubmitJobPerUserLimit; Batch job submission"),
            std::string::npos)
      << std::get<Remark>(events_[0]).text;
  for (int again = 0; again < 9; ++again) {
    commands_.sbatch.push_back(refused(kNoMore));
    now_ += 300, job_->learn({}, true);
    settle();
  }
  EXPECT_EQ(asked("sbatch"), 10);
  EXPECT_EQ(count<Remark>(), 1) << "once";
  commands_.sbatch.push_back(took("17\n"));
  now_ += 300, job_->learn({}, true);
  settle();
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  EXPECT_EQ(count<Started>(), 1);
}

TEST_F(SlurmJobTest, WaitingToBeSubmittedHasTheSameLimitAndIsCancelledAtOnce) {
  submit(refused(kNoMore));
  now_ += 601;
  job_->learn({}, true);
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(ended()->reason, "waited longer than 10 min, and Slurm never took it");
  EXPECT_TRUE(ended()->lost && job_->closed());

  events_.clear(), request_.id = "a0002-0badcafe";
  job_ = std::make_shared<SlurmJob>(around_, request_);
  submit(refused(kNoMore));
  ASSERT_TRUE(job_->finish(true));
  job_->learn({}, true);
  ASSERT_NE(ended(), nullptr);
  EXPECT_FALSE(ended()->lost);
  EXPECT_EQ(asked("scancel"), 0);
}

TEST_F(SlurmJobTest, EndsOfNobodysFaultBurnNoRetryAndFailuresDo) {
  for (const auto& [state, blameless] : {std::pair{"PREEMPTED", true},
                                         {"TIMEOUT", true},
                                         {"NODE_FAIL", false},
                                         {"OUT_OF_MEMORY", false},
                                         {"BOOT_FAIL", false},
                                         {"COMPLETED", false}}) {
    events_.clear();
    job_ = std::make_shared<SlurmJob>(around_, request_);
    submit(took("17\n"));
    learn(facts(state));
    ASSERT_NE(ended(), nullptr) << state;
    EXPECT_EQ(ended()->blameless, blameless) << state;
    EXPECT_EQ(ended()->lost, !blameless) << state;
    EXPECT_NE(ended()->reason.find(state), std::string::npos);
  }
}

TEST_F(SlurmJobTest, ASharedFileSystemGetsTimeToShowTheLastWords) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  learn(facts("COMPLETED"));
  EXPECT_EQ(ended(), nullptr);
  agent_says(spool::kBye, {{"reason", "finished"}});
  ASSERT_NE(ended(), nullptr);
  EXPECT_FALSE(ended()->lost);
}

TEST_F(SlurmJobTest, AJobPutBackIntoTheQueueIsCancelledAndBurnsNoRetry) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  learn(facts("PENDING", "BeginTime"));
  EXPECT_EQ(asked("scancel"), 1);
  EXPECT_EQ(ended(), nullptr) << "Slurm still has it";
  learn(facts("CANCELLED"));
  ASSERT_NE(ended(), nullptr);
  EXPECT_TRUE(ended()->blameless);
  EXPECT_NE(ended()->reason.find("put back into the queue"), std::string::npos) << ended()->reason;
}

TEST_F(SlurmJobTest, AnAgentThatMayOutliveItsJobIsTold) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  EXPECT_EQ(dismissals(), 0);
  learn(facts("PENDING", "None"));  // slurmctld came back with an older memory: the processes are there
  EXPECT_EQ(dismissals(), 1) << "at once";
  EXPECT_EQ(ended(), nullptr);
  learn(facts("CANCELLED"));
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(dismissals(), 1);
}

TEST_F(SlurmJobTest, AnAgentOnANodeThatSlurmGaveUpIsTold) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  learn(facts("NODE_FAIL"));
  now_ += 30;
  learn(facts("NODE_FAIL"));
  ASSERT_NE(ended(), nullptr);
  EXPECT_TRUE(ended()->lost);
  EXPECT_EQ(dismissals(), 1);
}

TEST_F(SlurmJobTest, AnAgentThatSaidItsFarewellIsNotTold) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  agent_says(spool::kBye, {{"reason", "finished"}});
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(dismissals(), 0);
}

TEST_F(SlurmJobTest, WaitingHasALimitAndHopelessReasonsAShorterOne) {
  submit(took("17\n"));
  learn(facts("PENDING", "Resources"));
  now_ += 599;
  learn(facts("PENDING", "Resources"));
  EXPECT_EQ(ended(), nullptr);
  now_ += 2;
  learn(facts("PENDING", "Resources"));
  EXPECT_EQ(asked("scancel"), 1);
  EXPECT_EQ(ended(), nullptr) << "a run that ends now would leave it in the queue";
  learn(facts("PENDING", "Resources"));
  EXPECT_EQ(asked("scancel"), 2) << "the first one did not reach it";
  learn(facts("CANCELLED"));
  ASSERT_NE(ended(), nullptr);
  EXPECT_NE(ended()->reason.find("10 min"), std::string::npos) << ended()->reason;
  EXPECT_TRUE(ended()->lost);

  events_.clear();
  job_ = std::make_shared<SlurmJob>(around_, request_);
  submit(took("17\n"));
  learn(facts("PENDING", "PartitionConfig"));
  EXPECT_EQ(ended(), nullptr) << "it may be a moment's reason";
  EXPECT_EQ(count<Remark>(), 1) << "and it is said";
  now_ += 30;
  learn(facts("PENDING", "PartitionConfig"));
  job_->learn({}, true), job_->learn({}, true);  // cancelled, and forgotten at once
  ASSERT_NE(ended(), nullptr);
  EXPECT_NE(ended()->reason.find("PartitionConfig"), std::string::npos);
}

TEST_F(SlurmJobTest, SuspendedAndUnknownStatesConcludeNothing) {
  submit(took("17\n"));
  for (const char* state : {"SUSPENDED", "QUANTUM_FLUX", "COMPLETING", "CONFIGURING"}) learn(facts(state));
  EXPECT_EQ(ended(), nullptr);
  EXPECT_EQ(count<Remark>(), 2);
}

TEST_F(SlurmJobTest, CancelledWhileItsSubmissionIsUnderWay) {
  commands_.sbatch.push_back(took("17\n"));
  ASSERT_TRUE(job_->submit());
  ASSERT_TRUE(job_->finish(true));
  settle();
  EXPECT_EQ(asked("scancel"), 0);
  learn(facts("PENDING", "Resources"));
  EXPECT_EQ(asked("scancel"), 1);
  learn(facts("CANCELLED"));
  ASSERT_NE(ended(), nullptr);
  EXPECT_TRUE(ended()->blameless);
}

TEST_F(SlurmJobTest, TheNextProcessTakesItUpWithTheSameNumber) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  events_.clear();
  auto known = request_;
  known.outbox_offset = std::filesystem::file_size(spool::outbox(request_.spool));
  known.seconds = 0;
  job_ = std::make_shared<SlurmJob>(around_, known);
  const auto taken = job_->take_up();
  ASSERT_TRUE(taken && *taken);
  EXPECT_EQ(job_->number(), 17);
  EXPECT_EQ(job_->request().seconds, 600);
  job_->look();
  EXPECT_EQ(count<Started>(), 0) << "Slurm tells first how long it still has";
  learn(facts("RUNNING"));
  job_->look();
  ASSERT_EQ(count<Started>(), 1);
  EXPECT_EQ(std::get<Started>(events_.front()).held_s, 100);
  EXPECT_EQ(asked("sbatch"), 1);
}

TEST_F(SlurmJobTest, OneThatWasNeverSubmittedIsNotTakenForRunning) {
  ASSERT_TRUE(job_->submit());  // the process dies before sbatch answers
  auto again = std::make_shared<SlurmJob>(around_, request_);
  const auto taken = again->take_up();
  ASSERT_TRUE(taken && *taken);
  again->learn({}, true);
  again->learn({}, true);
  ASSERT_NE(ended(), nullptr);
  EXPECT_TRUE(ended()->blameless);
  EXPECT_EQ(asked("sbatch"), 1) << "a later process submits nothing in its place";
}

}  // namespace
}  // namespace sweep::launch
