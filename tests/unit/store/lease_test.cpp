// Who may run a sweep: this host, other hosts, dead holders, clocks that jump.
#include "orchestrator/store/lease.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "base/time.h"
#include "store_fixture.h"

namespace sweep::store {
namespace {

constexpr i64 kSecond = 1'000'000'000;
const Claim kTakeOver{.take_over = true};

class LeaseTest : public StoreTest {
 protected:
  // A store as process `pid` of `host` sees it. The table of living processes, the clocks and the filesystem
  // are ours.
  std::unique_ptr<Store> as(const std::string& host, i64 pid, bool network, const std::string& boot = "",
                            i64 job = 0) {
    StoreDependencies dependencies = quick();
    dependencies.self = LeaseHolder{host, boot.empty() ? "boot-" + host : boot, pid, 1000 + pid, 0};
    if (job > 0) dependencies.self->slurm_job = job, dependencies.self->slurm_cluster = "main";
    dependencies.network_filesystem = [network](const fs::path&) { return network; };
    dependencies.now_unix_ns = [this] { return now_; };
    dependencies.steady_s = [this] { return steady_; };
    dependencies.boot_unix_ns = [this] { return booted_; };
    if (namespace_ > 0) dependencies.self->pid_namespace = namespace_;
    dependencies.living_pid_start = [this](i64 asked) -> std::optional<i64> {
      return alive_.contains(asked) ? std::optional<i64>(alive_[asked]) : std::nullopt;
    };
    auto store = must(Store::open(path_, Mode::kReadWrite, dependencies));
    SweepRow row;
    row.name = "s";
    sweep_ = must(store->ensure_sweep(row)).id;
    return store;
  }
  void pass(i64 seconds) {
    now_ += seconds * kSecond;
    steady_ += static_cast<double>(seconds);
  }
  i64 now_ = 1'000'000 * kSecond;
  double steady_ = 100;
  i64 booted_ = now_ - 3600 * kSecond;  // the host of the store that looks
  i64 namespace_ = 0;                   // namespace of the store that is opened next
  std::map<i64, i64> alive_{{1, 1001}, {2, 1002}};
};

TEST_F(LeaseTest, GpuSecondsCountEveryAllocationFromItsStartToItsEnd) {
  auto store = as("n1", 1, false);
  must(store->take_lease(sweep_));
  const auto ended = must(store->create_allocation(sweep_, "slurm", dir_)).id;
  const auto left = must(store->create_allocation(sweep_, "slurm", dir_)).id;
  const auto waits = must(store->create_allocation(sweep_, "slurm", dir_)).id;
  must(store->allocation_started(ended, "job 1", 1, {2, 8, 10}));  // ten seconds ago
  must(store->allocation_started(left, "job 2", 2, {1, 4, 0}));
  now_ += 90 * kSecond;
  must(store->end_allocation(ended, "finished"));
  EXPECT_EQ(must(store->gpu_seconds(sweep_)).ended, 100 * 2 * 8);
  EXPECT_EQ(must(store->gpu_seconds(sweep_)).open, 90 * 4);
  // A later run finds that it ended while no orchestrator ran; and a second start is no new one.
  const i64 last_message = now_;
  now_ += 1000 * kSecond;
  must(store->allocation_started(left, "job 2", 2, {1, 4, 0}));
  EXPECT_EQ(must(store->open_allocations(sweep_)).front().held_s, 1090);
  must(store->end_allocation(left, "over", {.last_message_unix_ns = last_message}));
  must(store->end_allocation(waits, "never started", {.last_message_unix_ns = 0}));
  EXPECT_EQ(must(store->gpu_seconds(sweep_)).ended, 100 * 2 * 8 + 90 * 4);
  EXPECT_EQ(must(store->gpu_seconds(sweep_)).open, 0);
}

TEST_F(LeaseTest, AJumpOfTheClockIsNoTimeThatAnAllocationHeld) {
  auto store = as("n1", 1, false);
  must(store->take_lease(sweep_));
  const auto id = must(store->create_allocation(sweep_, "local", dir_)).id;
  must(store->allocation_started(id, "here", 1, {1, 2, 0}));
  now_ += 86400 * kSecond;
  must(store->end_allocation(id, "over", {.held_s = 30}));
  EXPECT_EQ(must(store->gpu_seconds(sweep_)).ended, 30 * 2);
}

TEST_F(LeaseTest, AnAllocationEndsNoEarlierThanItStartedAndNoLaterThanNow) {
  auto store = as("n1", 1, false);
  must(store->take_lease(sweep_));
  for (const i64 word : {i64{0}, now_ + 3600 * kSecond}) {
    const auto id = must(store->create_allocation(sweep_, "local", dir_)).id;
    must(store->allocation_started(id, "here", 1, {1, 1, 0}));
    must(store->end_allocation(id, "over", {.last_message_unix_ns = word}));
  }
  EXPECT_EQ(must(store->gpu_seconds(sweep_)).ended, 0);
}

// While it lives, SQLite's pauses between two tries for a lock take no time: they are added up and told.
class SqlitePauses {
 public:
  explicit SqlitePauses(std::function<void(int total_ms)> told) : told_(std::move(told)) {
    current_ = this;
    counting_.zName = "pauses";
    counting_.xSleep = [](sqlite3_vfs*, int us) { return current_->pause(us); };
    ::sqlite3_vfs_register(&counting_, /*makeDflt=*/1);
  }
  ~SqlitePauses() { ::sqlite3_vfs_unregister(&counting_); }
  SqlitePauses(const SqlitePauses&) = delete;
  SqlitePauses& operator=(const SqlitePauses&) = delete;

 private:
  int pause(int us) {
    told_((total_us_ += us) / 1000);
    return us;
  }
  static inline SqlitePauses* current_ = nullptr;
  const std::function<void(int)> told_;
  sqlite3_vfs counting_ = *::sqlite3_vfs_find(nullptr);
  int total_us_ = 0;
};

// quick() waits 50 ms for a lock; whoever runs a sweep does not end it because of a long merge or a backup.
TEST_F(LeaseTest, TheHolderWaitsLongerForTheLockOfAnotherProcess) {
  sqlite3* other = nullptr;
  const SqlitePauses pauses([&](int total_ms) {
    if (total_ms >= 2 * quick().busy_timeout_ms) ::sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr);
  });
  auto store = as("n1", 1, false);
  must(store->take_lease(sweep_));
  ASSERT_EQ(::sqlite3_open(path_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(::sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_TRUE(store->beat(sweep_));
  ::sqlite3_close(other);
}

TEST_F(LeaseTest, ASecondRunSeesWhoHoldsTheSweep) {
  auto first = as("n1", 1, false), second = as("n1", 2, false);
  EXPECT_FALSE(must(first->take_lease(sweep_)));
  const auto holder = must(must(second->take_lease(sweep_)));
  EXPECT_EQ(holder.pid, 1);
  EXPECT_TRUE(must(second->take_lease(sweep_, kTakeOver))) << "a living process is never robbed";
  EXPECT_EQ(must(second->lease(sweep_))->host, "n1");
}

TEST_F(LeaseTest, ADeadHolderIsTakenOverSilently) {
  auto first = as("n1", 1, false), second = as("n1", 2, false);
  must(first->take_lease(sweep_));
  alive_.erase(1);
  EXPECT_FALSE(must(second->lease(sweep_)));
  EXPECT_FALSE(must(second->take_lease(sweep_)));
}

TEST_F(LeaseTest, APidUsedAgainIsNotTheHolder) {
  auto first = as("n1", 1, false), second = as("n1", 2, false);
  must(first->take_lease(sweep_));
  alive_[1] = 555555;
  EXPECT_FALSE(must(second->take_lease(sweep_)));
}

TEST_F(LeaseTest, AHolderFromBeforeTheRebootIsDeadOnALocalDisk) {
  auto first = as("n1", 1, false, "old-boot"), second = as("n1", 2, false, "new-boot");
  must(first->take_lease(sweep_));
  pass(2);
  booted_ = now_ - kSecond;
  EXPECT_FALSE(must(second->take_lease(sweep_)));
}

// Another boot id that was heard since this machine was started is another machine: virtual machines may share a
// disk that looks local, and a name.
TEST_F(LeaseTest, ALivingHolderWithAnotherBootKeepsItsLeaseOnALocalDiskToo) {
  for (const char* host : {"n1", "n2"}) {
    auto first = as("n1", 1, false, "boot-a"), second = as(host, 2, false, "boot-b");
    must(first->take_lease(sweep_));
    for (int i = 0; i < 4; ++i) {
      const auto holder = must(second->take_lease(sweep_, kTakeOver));
      ASSERT_TRUE(holder) << host;
      EXPECT_EQ(holder->process, Process::kOtherMachine);
      pass(20);
      must(first->beat(sweep_));
    }
    must(second->take_lease(sweep_));
    pass(61);
    EXPECT_FALSE(must(second->take_lease(sweep_))) << host << ": its heartbeat has aged";
    must(second->release_lease(sweep_));
  }
}

TEST_F(LeaseTest, AnotherPidNamespaceIsJudgedByItsHeartbeat) {
  namespace_ = 4026531836;
  auto first = as("n1", 1, false);
  namespace_ = 4026532300;
  auto second = as("n1", 2, false);
  must(first->take_lease(sweep_));
  alive_.erase(1);  // the second one sees it as dead
  const auto holder = must(must(second->take_lease(sweep_, kTakeOver)));
  EXPECT_EQ(holder.process, Process::kOutOfSight);
  EXPECT_EQ(holder.pid_namespace, 4026531836);
  pass(61);
  EXPECT_EQ(must(second->take_lease(sweep_))->status, LeaseStatus::kUncertain);
  EXPECT_FALSE(must(second->take_lease(sweep_, kTakeOver)));
}

TEST_F(LeaseTest, AHolderThatLostTheLeaseCanWriteNothing) {
  start(1);
  auto first = as("n1", 1, false), second = as("n1", 2, false);
  store_.reset();
  sql("DELETE FROM lease");
  must(first->take_lease(sweep_));
  alive_.erase(1);
  must(second->take_lease(sweep_));
  Attempt wanted;
  wanted.trial_id = plan_[0].id, wanted.trial = plan_[0].trial;
  IngestBatch batch;
  batch.allocation = allocation_, batch.new_offset = 5;
  EXPECT_THAT(error_in(first->beat(sweep_)), IsError(ErrorKind::kBusy));
  EXPECT_FALSE(first->begin_attempt(sweep_, allocation_, wanted));
  EXPECT_FALSE(first->ingest(batch));
  EXPECT_FALSE(first->sync_plan(sweep_, plan_, {}));
  EXPECT_FALSE(first->reopen(sweep_, {}));
  EXPECT_FALSE(first->create_allocation(sweep_, "local", dir_));
  EXPECT_FALSE(first->allocation_started(allocation_, "x", 1, {}));
  EXPECT_FALSE(first->end_allocation(allocation_, "x"));
  EXPECT_FALSE(first->add_event(sweep_, EventKind::kAgent, "t"));
  EXPECT_TRUE(second->begin_attempt(sweep_, allocation_, wanted));
  must(first->release_lease(sweep_));
  EXPECT_TRUE(second->beat(sweep_)) << "a lost lease cannot be released for its new holder";
}

TEST_F(LeaseTest, NoAttemptBeginsWithoutALease) {
  start(1);
  must(store_->release_lease(sweep_));
  Attempt wanted;
  wanted.trial_id = plan_[0].id, wanted.trial = plan_[0].trial;
  EXPECT_THAT(error_in(store_->begin_attempt(sweep_, allocation_, wanted)), IsError(ErrorKind::kRefused));
}

TEST_F(LeaseTest, AWatcherMayAskToStopAndChangesNothingElse) {
  auto first = as("n1", 1, false), second = as("n1", 2, false);
  must(first->take_lease(sweep_));
  EXPECT_FALSE(second->sync_plan(sweep_, {}, {}));
  SweepRow other;
  other.name = "s", other.question = "changed?";
  EXPECT_EQ(must(second->ensure_sweep(other)).question, "");
  must(second->request_stop(sweep_, true));
  EXPECT_EQ(must(first->stop_requested(sweep_)), std::optional<bool>(true));
  must(first->release_lease(sweep_));
  must(second->take_lease(sweep_));
  EXPECT_FALSE(must(second->stop_requested(sweep_))) << "an old stop request does not stop a new run";
}

TEST_F(LeaseTest, AnotherHostOnANetworkDiskNeedsSilenceAndAnExplicitTakeover) {
  auto first = as("n1", 1, true), second = as("n2", 2, true);
  must(first->take_lease(sweep_));
  EXPECT_TRUE(must(second->take_lease(sweep_, kTakeOver))) << "it has just beaten";
  pass(61);
  const auto holder = must(second->take_lease(sweep_));
  ASSERT_TRUE(holder) << "not without being told to";
  EXPECT_EQ(holder->status, LeaseStatus::kUncertain);
  EXPECT_DOUBLE_EQ(holder->silent_s, 61);
  EXPECT_FALSE(must(second->take_lease(sweep_, kTakeOver)));
}

// Two hosts' clocks differ by more than the silence limit: a person's word is not enough without a look.
TEST_F(LeaseTest, ALivingHolderWithAnotherClockKeepsItsLease) {
  auto first = as("n1", 1, true), second = as("n2", 2, true);
  must(first->take_lease(sweep_));
  now_ += 3600 * kSecond;
  EXPECT_TRUE(must(second->take_lease(sweep_, kTakeOver)));
  for (int i = 0; i < 20; ++i) {
    steady_ += 5, now_ -= 3600 * kSecond;
    must(first->beat(sweep_));
    now_ += 3600 * kSecond;
    const auto holder = must(must(second->take_lease(sweep_, kTakeOver)));
    EXPECT_TRUE(holder.heartbeats);
  }
}

TEST_F(LeaseTest, AfterAClockJumpsBackASilentHolderIsStillReplaced) {
  auto first = as("n1", 1, true), second = as("n2", 2, true);
  must(first->take_lease(sweep_));
  now_ -= 3600 * kSecond;
  EXPECT_TRUE(must(second->take_lease(sweep_, kTakeOver))) << "it was not looked at yet";
  steady_ += 15;
  EXPECT_FALSE(must(second->take_lease(sweep_, kTakeOver)));
}

TEST_F(LeaseTest, AHeartbeatThatGrowsMeansLifeWhateverTheClock) {
  auto first = as("n1", 1, true), second = as("n2", 2, true);
  must(first->take_lease(sweep_));
  EXPECT_TRUE(must(second->take_lease(sweep_)));
  must(first->beat(sweep_));
  now_ += 7200 * kSecond;
  const auto holder = must(must(second->take_lease(sweep_, kTakeOver)));
  EXPECT_TRUE(holder.heartbeats);
  EXPECT_EQ(holder.beat, Beat::kRecent);
}

TEST_F(LeaseTest, AHeartbeatThatDoesNotGrowMeansSilenceWhateverTheClock) {
  auto first = as("n1", 1, true), second = as("n2", 2, true);
  must(first->take_lease(sweep_));
  EXPECT_TRUE(must(second->take_lease(sweep_, kTakeOver)));
  steady_ += 61;
  EXPECT_FALSE(must(second->take_lease(sweep_, kTakeOver)));
}

TEST_F(LeaseTest, TheLeaseOfAnEndedJobIsTakenOnceItsHeartbeatStops) {
  auto first = as("n1", 1, true, "", 77), second = as("n2", 2, true);
  must(first->take_lease(sweep_));
  Claim claim{.job = JobWord::kOver};
  const auto holder = must(must(second->take_lease(sweep_, claim)));
  EXPECT_EQ(holder.slurm_job, 77);
  EXPECT_EQ(holder.slurm_cluster, "main");
  pass(16);
  EXPECT_TRUE(must(second->take_lease(sweep_, claim))) << "of which lease Slurm spoke was not said";
  claim.job_of = holder.token;
  EXPECT_FALSE(must(second->take_lease(sweep_, claim)));
}

// The node failed, Slurm says; if its process lives and goes on, it writes nothing and tells no agent
// anything.
TEST_F(LeaseTest, AHolderOfALostJobIsReplacedWhenSilentAndCannotWriteAfterwards) {
  auto first = as("n1", 1, true, "", 77), second = as("n2", 2, true);
  must(first->take_lease(sweep_));
  const auto token = must(second->take_lease(sweep_))->token;
  const Claim claim{.job = JobWord::kLost, .job_of = token};
  pass(30);
  EXPECT_TRUE(must(second->take_lease(sweep_, claim)));
  pass(31);
  EXPECT_FALSE(must(second->take_lease(sweep_, claim)));
  int done = 0;
  const auto act = [&]() -> Expected<void> { return ++done, Expected<void>(); };
  EXPECT_FALSE(first->lease_lost(sweep_));
  EXPECT_FALSE(first->while_held(sweep_, act));
  EXPECT_TRUE(first->lease_lost(sweep_));
  EXPECT_EQ(done, 0);
  must(second->while_held(sweep_, act));
  EXPECT_EQ(done, 1);
  EXPECT_FALSE(second->lease_lost(sweep_));
}

// An inbox line is appended under the fence: until it is, no other process takes the sweep over.
TEST_F(LeaseTest, NoProcessTakesTheLeaseDuringAnActionUnderIt) {
  auto first = as("n1", 1, true), second = as("n2", 2, true);
  must(first->take_lease(sweep_));
  must(second->take_lease(sweep_));
  pass(61);
  must(first->while_held(sweep_, [&]() -> Expected<void> {
    EXPECT_FALSE(second->take_lease(sweep_, kTakeOver)) << "the file is locked";
    return {};
  }));
  EXPECT_FALSE(must(second->take_lease(sweep_, kTakeOver)));
}

TEST_F(LeaseTest, AHostThatWasStartedAnewHasLostItsHolderOnANetworkDiskToo) {
  auto first = as("n1", 1, true, "old-boot"), second = as("n1", 2, true, "new-boot");
  must(first->take_lease(sweep_));
  EXPECT_TRUE(must(second->take_lease(sweep_))) << "two hosts may have one name: its heartbeat is recent";
  pass(16);
  EXPECT_FALSE(must(second->take_lease(sweep_)));
}

TEST_F(LeaseTest, AContainerThatSharesTheKernelIsJudgedByItsHeartbeat) {
  auto first = as("c1", 1, false, "same-boot"), second = as("c2", 2, false, "same-boot");
  must(first->take_lease(sweep_));
  alive_.erase(1);  // its pids mean nothing here
  EXPECT_TRUE(must(second->take_lease(sweep_)));
}

TEST_F(LeaseTest, AProcessThatProcHidesIsJudgedByItsHeartbeat) {
  auto first = as("n1", 1, false), second = as("n1", 2, false);
  must(first->take_lease(sweep_));
  alive_[1] = kHiddenStart;
  EXPECT_TRUE(must(second->take_lease(sweep_))) << "it is there, whatever its start";
}

TEST(ProcessTable, ThisProcessSaysInWhichNamespaceItsPidCounts) {
  struct stat table {};
  ASSERT_EQ(::stat("/proc/self/ns/pid", &table), 0);
  EXPECT_EQ(this_process().pid_namespace, static_cast<i64>(table.st_ino));
  EXPECT_LT(boot_unix_ns(), unix_ns_now());
}

TEST(ProcessTable, AZombieIsNotAlive) {
  EXPECT_TRUE(living_pid_start(::getpid()));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info;
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);  // dead, not yet reaped
  EXPECT_FALSE(living_pid_start(child));
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(living_pid_start(child));
}

}  // namespace
}  // namespace sweep::store
