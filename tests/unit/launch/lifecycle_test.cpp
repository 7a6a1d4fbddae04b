// The allocation's life: queueing, cancelling, finishing, and every process killed from outside.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/files.h"
#include "base/proc.h"
#include "runtime/attempt_token.h"
#include "tests/support/local_fixture.h"
#include "tests/support/must.h"

namespace sweep::launch {
namespace {

using nlohmann::json;

const json kHang = {{"outcome", "hang"}};

class Lifecycle : public LocalFixture, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    LocalFixture::SetUp();
    options_.allow_namespace = GetParam();
  }
  void start_hanging(i64 id, i64 dp) {
    post(attempt(id, dp, kHang));
    ASSERT_TRUE(run_until([&] { return has_started(id); }));
  }
  void kill_a_rank_of(i64 id) const { ::kill(pids_of(id).at(0), SIGKILL); }
  pid_t zygote() const {
    for (const auto& process : marked_processes(key()))
      if (process.attempt == 0 && process.command == "fake_rank") return process.pid;
    return 0;
  }
  // A rank program whose zygote form does something else; plain exec works.
  void zygote_runs(const std::string& command) {
    const auto program = home_ / "other_zygote";
    std::ofstream(program) << "#!/bin/sh\n[ \"$1\" = zygote ] && " << command << "\nexec "
                           << options_.rank.string() << " \"$@\"\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    options_.rank = program;
  }
  pid_t inner_agent() const {
    for (const auto& process : marked_processes(key()))
      if (process.command == "sweep-agent" && process.pid != agent_pid_ &&
          ::getpgid(process.pid) == agent_pid_)
        return process.pid;
    return 0;
  }
};
INSTANTIATE_TEST_SUITE_P(Namespace, Lifecycle, ::testing::Values(true, false),
                         [](const auto& info) { return info.param ? "with" : "without"; });

TEST_P(Lifecycle, AnAgentThatStandsStillAfterItsLastWordIsEnded) {
  begin();
  post(attempt(1, 1, {{"outcome", "ok"}}));
  ASSERT_TRUE(run_until([&] { return has_ended(1); }));
  ::kill(static_cast<pid_t>(agent_pid_), SIGSTOP);
  ASSERT_TRUE(launcher_->finish("local-1", false));
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }, 60));
  EXPECT_FALSE(ended_->lost);
}

TEST_P(Lifecycle, SaysHelloNodeAndBye) {
  run_one(attempt(1, 1, {{"outcome", "ok"}}));
  EXPECT_EQ(said(spool::kHello).size(), 1u);
  EXPECT_FALSE(!GetParam() &&
               said(spool::kHello)[0]["pid_namespace"]);  // with one: where the system allows it
  const auto node = must(from_json<NodeRecord>(said(spool::kNode).at(0)));
  EXPECT_FALSE(node.host.empty());
  EXPECT_GT(node.facts.memory_bytes.value_or(0), 0);
  EXPECT_EQ(said(spool::kBye).at(0)["reason"], "finished");
}

TEST_P(Lifecycle, PidsInRecordsAreThoseSeenFromOutside) {
  begin();
  start_hanging(1, 2);
  const auto body = said(spool::kStarted, 1).at(0);
  for (const auto& pid : body["pids"]) {
    const auto ranks = pids_of(1);
    EXPECT_NE(std::find(ranks.begin(), ranks.end(), pid.get<pid_t>()), ranks.end());
  }
}

TEST_P(Lifecycle, AttemptsQueueBySlotsFirstInFirstOut) {
  begin(2);
  start_hanging(1, 2);
  post(attempt(2, 1, {{"outcome", "ok"}}));
  post(attempt(3, 1, {{"outcome", "ok"}}));
  kill_a_rank_of(1);
  ASSERT_TRUE(launcher_->finish("local-1", false));
  ASSERT_TRUE(run_until_ended_by("finished"));
  EXPECT_EQ(end_of(1).cause, EndCause::kRankFailed);
  EXPECT_EQ(end_of(2).cause, EndCause::kDone);
  EXPECT_EQ(end_of(3).cause, EndCause::kDone);
  EXPECT_GE(end_of(2).started_unix_ns, end_of(1).ended_unix_ns);
}

TEST_P(Lifecycle, AttemptsThatFitRunSideBySide) {
  begin(4);
  start_hanging(1, 2);
  start_hanging(2, 2);  // starts while the first still runs
  EXPECT_FALSE(has_ended(1));
  kill_a_rank_of(1);
  ASSERT_TRUE(run_until([&] { return has_ended(1); }));
  EXPECT_EQ(pids_of(2).size(), 2u);  // untouched by the end of its neighbour
  EXPECT_TRUE(pids_of(1).empty());
  ASSERT_TRUE(launcher_->finish("local-1", true));
  ASSERT_TRUE(run_until_ended_by("cancelled"));
  EXPECT_EQ(end_of(2).cause, EndCause::kCancelled);
}

TEST_P(Lifecycle, AttemptLargerThanTheSlotsRunsAlone) {
  begin(1);
  post(attempt(1, 3, {{"outcome", "ok"}}));
  ASSERT_TRUE(launcher_->finish("local-1", false));
  ASSERT_TRUE(run_until_ended_by("finished"));
  EXPECT_EQ(records_of(1).size(), 3u);
}

TEST_P(Lifecycle, ALeavingAgentGivesBackWhatItIsHanded) {
  begin(1);
  start_hanging(1, 1);
  const pid_t agent = inner_agent() > 0 ? inner_agent() : static_cast<pid_t>(agent_pid_);
  ::kill(agent, SIGSTOP);  // it reads both lines in one look
  ASSERT_TRUE(run_until([&] { return proc::stat_of(std::to_string(agent)).value().state == 'T'; }));
  ASSERT_TRUE(launcher_->finish("local-1", true));
  post(attempt(2, 1, {{"outcome", "ok"}}));
  ::kill(agent, SIGCONT);
  ASSERT_TRUE(run_until_ended_by("cancelled"));
  EXPECT_EQ(end_of(2).cause, EndCause::kCancelled);
  EXPECT_NE(end_of(2).evidence.why.find("cancelled"), std::string::npos) << end_of(2).evidence.why;
  EXPECT_LT(end_of(2).ended_unix_ns, end_of(1).ended_unix_ns) << "at once, not when all is over";
}

TEST_P(Lifecycle, FinishNowEndsTheRunningAndTheWaiting) {
  begin(2);
  start_hanging(1, 2);
  post(attempt(2, 1, {{"outcome", "ok"}}));
  ASSERT_TRUE(launcher_->finish("local-1", true));
  ASSERT_TRUE(run_until_ended_by("cancelled"));
  EXPECT_EQ(end_of(1).cause, EndCause::kCancelled);
  EXPECT_EQ(end_of(2).cause, EndCause::kCancelled);
  EXPECT_TRUE(exits_of(2).empty());
}

TEST_P(Lifecycle, SigtermEndsTheRunningAndSaysBye) {
  begin();
  start_hanging(1, 2);
  ::kill(static_cast<pid_t>(agent_pid_), SIGTERM);
  ASSERT_TRUE(run_until_ended_by("signal"));
  EXPECT_EQ(end_of(1).cause, EndCause::kAgentStopping);
  EXPECT_FALSE(ended_->lost);
}

TEST_P(Lifecycle, SecondSignalDoesNotWaitForTheGrace) {
  begin();
  Attempt stubborn = attempt(1, 1, {{"outcome", "hang_ignore_sigterm"}});
  stubborn.deadlines.grace_s = 1e6;
  post(stubborn);
  ASSERT_TRUE(run_until([&] { return has_started(1); }));
  for (int i = 0; i < 1000 && !ended_; ++i) {
    ::kill(static_cast<pid_t>(agent_pid_), SIGINT);
    (void)run_until([&] { return ended_.has_value(); }, 0.1);
  }
  ASSERT_TRUE(ended_);
  EXPECT_EQ(end_of(1).cause, EndCause::kAgentStopping);
}

TEST_P(Lifecycle, KilledRankIsACrashAndTheNextAttemptRuns) {
  begin();
  start_hanging(1, 2);
  ::kill(pids_of(1).at(0), SIGKILL);
  ASSERT_TRUE(run_until([&] { return has_ended(1); }));
  EXPECT_EQ(end_of(1).cause, EndCause::kRankFailed);
  int by_itself = 0;
  for (const auto& exit : exits_of(1)) by_itself += exit.signal == SIGKILL && !exit.killed_by_agent;
  EXPECT_EQ(by_itself, 1);
  post(attempt(2, 2, {{"outcome", "ok"}}));
  ASSERT_TRUE(run_until([&] { return has_ended(2); }));
  EXPECT_EQ(end_of(2).cause, EndCause::kDone);
}

TEST_P(Lifecycle, KilledZygoteIsReplacedAndRunningRanksAreNotHurt) {
  begin();
  start_hanging(1, 2);
  const pid_t first = zygote();
  ASSERT_GT(first, 0);
  ::kill(first, SIGKILL);
  post(attempt(2, 2, {{"outcome", "ok"}}));
  ASSERT_TRUE(run_until([&] { return has_ended(2); }));
  EXPECT_EQ(end_of(2).cause, EndCause::kDone);
  EXPECT_FALSE(has_ended(1));
  EXPECT_NE(zygote(), first);
  EXPECT_EQ(pids_of(1).size(), 2u);
}

TEST_P(Lifecycle, ZygoteThatAlwaysDiesIsGivenUpForExec) {
  zygote_runs("exit 1");
  run_one(attempt(1, 2, {{"outcome", "ok"}}));
  EXPECT_EQ(records_of(1).size(), 2u);
}

TEST_P(Lifecycle, ZygoteThatNeverGetsReadyIsReplacedByExec) {
  zygote_runs("exec sleep 1000");
  Attempt wanted = attempt(1, 2, {{"outcome", "ok"}});
  wanted.deadlines.startup_s = 3;
  run_one(wanted);
  EXPECT_EQ(end_of(1).cause, EndCause::kDone);
  EXPECT_EQ(records_of(1).size(), 2u);
}

TEST_P(Lifecycle, CancelledWhileItStillStarts) {
  zygote_runs("exec sleep 1000");
  begin();
  post(attempt(1, 2, {{"outcome", "ok"}}));
  const auto made = spool::attempt_file(spool::attempt_dir(spool_, 1));
  ASSERT_TRUE(run_until([&] { return std::filesystem::exists(made); }));
  ASSERT_TRUE(launcher_->finish("local-1", true));
  ASSERT_TRUE(run_until_ended_by("cancelled"));
  EXPECT_EQ(end_of(1).cause, EndCause::kCancelled);
  EXPECT_TRUE(exits_of(1).empty());
}

TEST_P(Lifecycle, KilledOuterAgentIsLostAndLeavesNothing) {
  begin();
  start_hanging(1, 2);
  ::kill(static_cast<pid_t>(agent_pid_), SIGKILL);
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_TRUE(ended_->lost);
  EXPECT_TRUE(nothing_left());
}

TEST_P(Lifecycle, KilledInnerAgentIsLostAndLeavesNothing) {
  begin();
  start_hanging(1, 2);
  const pid_t inner = inner_agent();
  ASSERT_GT(inner, 0);
  ::kill(inner, SIGKILL);
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_TRUE(ended_->lost);
  EXPECT_TRUE(nothing_left());
}

TEST_P(Lifecycle, KillByTheLauncherLeavesNothing) {
  begin();
  start_hanging(1, 2);
  launcher_->kill("local-1");
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_TRUE(ended_->lost);
  EXPECT_TRUE(nothing_left());
}

TEST_P(Lifecycle, DestructorEndsProcessesWithoutFurtherMessages) {
  begin();
  start_hanging(1, 2);
  launcher_.reset();
  EXPECT_TRUE(nothing_left());
  io_.restart();
  io_.run();  // no handler is left to say anything
  EXPECT_FALSE(ended_);
}

TEST_P(Lifecycle, AgentEndsWithItsOrchestrator) {
  const pid_t orchestrator = ::fork();
  if (orchestrator == 0) {
    begin();
    post(attempt(1, 2, {{"outcome", "hang_ignore_sigterm"}}));
    (void)run_until([] { return false; }, 1000);
    ::_exit(1);
  }
  ASSERT_TRUE(run_until([&] { return pids_of(1).size() == 2; }));
  ::kill(orchestrator, SIGKILL);
  ::waitpid(orchestrator, nullptr, 0);
  EXPECT_TRUE(run_until([&] { return static_cast<bool>(nothing_left()); }));
  const auto outbox = must(files::read(spool::outbox(spool_)));
  EXPECT_EQ(spool::parse(outbox).lines.back().kind, spool::kBye);
}

TEST_P(Lifecycle, LeftoversOfAStoppedAgentAreCleaned) {
  const pid_t orchestrator = ::fork();
  if (orchestrator == 0) {
    begin();
    post(attempt(1, 2, kHang));
    (void)run_until([] { return false; }, 1000);
    ::_exit(1);
  }
  ASSERT_TRUE(run_until([&] { return pids_of(1).size() == 2; }));
  for (const auto& process : marked_processes(key()))
    if (process.command == "sweep-agent") ::kill(process.pid, SIGSTOP);  // it cannot end by itself
  ::kill(orchestrator, SIGKILL);
  ::waitpid(orchestrator, nullptr, 0);
  EXPECT_GT(kill_orphans(spool_, "local-1"), 0);
  EXPECT_TRUE(nothing_left());
}

TEST_P(Lifecycle, UnacknowledgedBytesAreDeliveredAgainWithTheNextOnes) {
  std::vector<std::uint64_t> offsets;
  std::string last;
  launcher_ = make_local(io_, options_, [&](const Event& event) {
    if (const auto* ended = std::get_if<Ended>(&event)) ended_ = *ended;
    if (const auto* outbox = std::get_if<Outbox>(&event)) {
      offsets.push_back(outbox->offset);
      EXPECT_GT(outbox->bytes.size(), last.size());  // never the same bytes alone
      last = outbox->bytes;
    }
  });
  AllocationRequest wanted;
  wanted.id = "local-1";
  wanted.spool = spool_;
  ASSERT_TRUE(launcher_->request(wanted));
  post(attempt(1, 1, {{"outcome", "ok"}}));
  ASSERT_TRUE(launcher_->finish("local-1", false));
  ASSERT_TRUE(run_until_ended_by("finished"));
  for (const auto offset : offsets) EXPECT_EQ(offset, 0u);
  EXPECT_EQ(spool::parse(last).lines.back().kind, spool::kBye);
}

TEST_P(Lifecycle, NextIncarnationIgnoresTheInboxOfTheLast) {
  run_one(attempt(1, 1, {{"outcome", "ok"}}));
  launcher_.reset();
  lines_.clear();
  ended_.reset();
  launcher_ = make_local(io_, options_, [this](const Event& event) { on_event(event); });
  AllocationRequest wanted;
  wanted.id = "local-1";
  wanted.spool = spool_;
  wanted.incarnation = 2;
  wanted.outbox_offset = std::filesystem::file_size(spool::outbox(spool_));
  ASSERT_TRUE(launcher_->request(wanted));
  post(attempt(2, 1, {{"outcome", "ok"}}));
  ASSERT_TRUE(launcher_->finish("local-1", false));
  ASSERT_TRUE(run_until_ended_by("finished"));
  EXPECT_TRUE(said(spool::kAttemptEnd, 1).empty());
  EXPECT_EQ(end_of(2).cause, EndCause::kDone);
}

TEST(Local, RefusesWhatThisMachineIsNot) {
  boost::asio::io_context io;
  const auto launcher = make_local(io, {"/nowhere/sweep-agent", "/nowhere/sweep-rank"}, [](const Event&) {});
  AllocationRequest wanted;
  wanted.id = "a";
  wanted.nodes = 2;
  EXPECT_NE(launcher->request(wanted).error().message.find("one node"), std::string::npos);
  wanted.nodes = 1;
  EXPECT_NE(launcher->request(wanted).error().message.find("/nowhere/sweep-agent"), std::string::npos);
  EXPECT_FALSE(launcher->post_attempt("a", {}));
}

TEST_P(Lifecycle, WhoseFolderWasRemovedEndsAndIsLost) {
  begin();
  start_hanging(1, 1);
  std::filesystem::rename(spool_, home_ / "taken away");
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_TRUE(ended_->lost);
  EXPECT_NE(ended_->reason.find("was removed"), std::string::npos) << ended_->reason;
  EXPECT_TRUE(marked_processes(key()).empty());
}

TEST_P(Lifecycle, WhoseOutboxWasCutEndsAndIsLost) {
  begin();
  start_hanging(1, 1);
  std::filesystem::resize_file(spool::outbox(spool_), 10);
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_TRUE(ended_->lost) << ended_->reason;
  EXPECT_TRUE(marked_processes(key()).empty());
}

}  // namespace
}  // namespace sweep::launch
