// From the lease to its release: what a SweepDriver does, and leaves behind when something goes wrong.
#include <csignal>

#include "tests/support/error_matchers.h"
#include "tests/support/must.h"
#include "tests/unit/driver/driver_fixture.h"

namespace sweep::driver {
namespace {

using SweepDriverTest = DriverTest;

TEST_F(SweepDriverTest, RunsThePlanAndReleasesTheLease) {
  auto driver = open();
  const auto holder = driver.take_lease();
  ASSERT_TRUE(holder && !*holder);
  ASSERT_TRUE(driver.sync_plan(plan(3), {0, 2, 1}));
  const auto report = run_all(driver);
  ASSERT_TRUE(report) << report.error().error.message;
  EXPECT_EQ(report->end.end, run::End::kDone);
  EXPECT_FALSE(leased(driver));
  const auto finish = must(driver.finish(report->end));
  EXPECT_EQ(finish, Finish::kAnswered);
  ASSERT_FALSE(requests_.empty());
  EXPECT_EQ(requests_[0].spool.parent_path(), driver.db().string() + ".spool");
}

TEST_F(SweepDriverTest, TrialsWithoutAnAnswerAreUnanswered) {
  auto driver = open();
  ASSERT_TRUE(driver.take_lease());
  ASSERT_TRUE(driver.sync_plan(plan(1), {0, 2, 1}));
  const auto report = must(run_all(driver, FakeOutcome::kCrash));
  EXPECT_EQ(driver.finish(report.end).value(), Finish::kUnanswered);
}

TEST_F(SweepDriverTest, ASecondDriverIsToldWhoHoldsTheLease) {
  auto first = open(), second = open();
  ASSERT_TRUE(first.take_lease());
  const auto holder = second.take_lease();
  ASSERT_TRUE(holder && *holder);
  EXPECT_EQ((*holder)->pid, ::getpid());
  const auto entries = plan(1);
  const auto report =
      run_with_lease(second, {entries, {0, 2, 1}}, [&](SweepDriver& own) { return run_all(own); });
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().problem, DriveProblem::kBusy);
  ASSERT_TRUE(report.error().holder);
  EXPECT_TRUE(requests_.empty());
}

TEST_F(SweepDriverTest, TheLeaseGoesWithTheDriver) {
  {
    auto first = open();
    ASSERT_TRUE(first.take_lease());
    auto moved = std::move(first);
    EXPECT_TRUE(leased(moved));
  }
  auto second = open();
  const auto holder = must(second.take_lease());
  EXPECT_FALSE(holder) << "it was released by the destructor";
}

TEST_F(SweepDriverTest, ChoosingAnotherSweepReleasesTheLeaseOfTheFirst) {
  auto driver = open("one");
  const auto one = driver.sweep().id;
  ASSERT_TRUE(driver.take_lease());
  ASSERT_TRUE(driver.make(row("two")));
  const auto lease = must(driver.store().lease(one));
  EXPECT_FALSE(lease);
}

TEST_F(SweepDriverTest, WhatDecidesAboutAHolderMayWaitAndTake) {
  auto driver = open();
  int asked = 0;
  const auto holder = driver.take_lease([&](store::Store& store, const store::SweepRow& sweep) {
    ++asked;
    return store.take_lease(sweep.id);
  });
  ASSERT_TRUE(holder && !*holder);
  EXPECT_TRUE(leased(driver));
  ASSERT_TRUE(driver.take_lease([&](store::Store&, const store::SweepRow&) {
    ++asked;
    return Expected<Holder>();
  }));
  EXPECT_EQ(asked, 1) << "a lease that is held already is not taken again";
}

TEST_F(SweepDriverTest, ALeasedRunReopensAndRunsAnew) {
  auto driver = open();
  const auto entries = plan(2);
  const auto once = [&](SweepDriver& own) { return run_all(own); };
  ASSERT_TRUE(run_with_lease(driver, {entries, {0, 2, 1}}, once));
  ASSERT_TRUE(run_with_lease(driver, {entries, {0, 2, 1}}, once));
  EXPECT_EQ(driver.store().attempts(driver.sweep().id, entries[0].id)->size(), 1u) << "it has an answer";
  ASSERT_TRUE(run_with_lease(driver, {entries, {0, 2, 1}, outcomes_of_runs()}, once));
  EXPECT_EQ(driver.store().attempts(driver.sweep().id, entries[0].id)->size(), 2u);
}

TEST_F(SweepDriverTest, ASignalEndsTheRunAndReleasesTheLease) {
  auto driver = open();
  ASSERT_TRUE(driver.take_lease());
  ASSERT_TRUE(driver.sync_plan(plan(2), {0, 2, 1}));
  run::Settings settings;
  settings.launcher = "fake";
  const auto report = driver.run(settings, launcher([](const Attempt&) {
                                   ::raise(SIGINT);
                                   return FakeOutcome::kHold;
                                 }),
                                 observer_);
  ASSERT_TRUE(report) << report.error().error.message;
  EXPECT_EQ(report->end.end, run::End::kInterrupted);
  EXPECT_EQ(driver.finish(report->end).value(), Finish::kInterrupted);
  EXPECT_FALSE(driver.store().lease(driver.sweep().id).value());
}

TEST_F(SweepDriverTest, AnOrchestratorJobThatIsEndedKeepsTheLeaseForItsNextStart) {
  auto driver = open();
  ASSERT_TRUE(driver.take_lease());
  ASSERT_TRUE(driver.sync_plan(plan(1), {0, 2, 1}));
  run::Settings settings;
  settings.launcher = "fake", settings.leave_on_signal = true;
  const auto report = driver.run(settings, launcher([](const Attempt&) {
                                   ::raise(SIGTERM);
                                   return FakeOutcome::kHold;
                                 }),
                                 observer_);
  ASSERT_TRUE(report) << report.error().error.message;
  EXPECT_EQ(report->end.end, run::End::kLeft);
  EXPECT_EQ(driver.finish(report->end).value(), Finish::kInterrupted);
  EXPECT_TRUE(driver.store().lease(driver.sweep().id).value().has_value());
}

TEST_F(SweepDriverTest, ALeaseThatAnotherProcessTookIsTypedAndNotReleased) {
  auto driver = open();
  ASSERT_TRUE(driver.take_lease());
  ASSERT_TRUE(driver.sync_plan(plan(1), {0, 2, 1}));
  store::LeaseHolder other = driver.store().lease(driver.sweep().id).value().value();
  other.pid = 1, other.boot_id = "the boot after, which took the first holder along";
  store::StoreDependencies dependencies;
  dependencies.self = other;
  dependencies.boot_unix_ns = [] { return unix_ns_now(); };
  auto second = must(SweepDriver::open(driver.db(), std::move(dependencies)));
  second.use(driver.sweep());
  run::Settings settings;
  settings.launcher = "fake";
  const auto report = driver.run(settings, launcher([&](const Attempt&) {
                                   const auto taken = second.take_lease();
                                   EXPECT_TRUE(taken && !*taken) << "the first holder looks dead";
                                   return FakeOutcome::kOk;
                                 }),
                                 observer_);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().problem, DriveProblem::kLeaseLost);
  EXPECT_TRUE(second.store().beat(driver.sweep().id)) << "the other process has the lease still";
}

TEST_F(SweepDriverTest, ProgramsThatAreMissingAreALauncherProblem) {
  auto driver = open();
  ASSERT_TRUE(driver.take_lease());
  ASSERT_TRUE(driver.sync_plan(plan(1), {0, 2, 1}));
  LaunchRequest request;
  request.on = "local", request.agent = (dir_ / "no-agent").string();
  const auto choice = must(choose_launcher({}, request));
  bool observed = false;
  const auto report = driver.run(choice, request, [&](store::Store&, const store::SweepRow&) {
    observed = true;
    return Expected<std::unique_ptr<run::Observer>>(std::make_unique<QuietObserver>());
  });
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().problem, DriveProblem::kLauncher);
  EXPECT_FALSE(observed);
  EXPECT_FALSE(leased(driver));
}

// A launcher of the registry's kind, with a FakeLauncher behind it.
class FakeConfig final : public launch::LaunchConfig {
 public:
  explicit FakeConfig(std::vector<launch::AllocationRequest>& requests) : requests_(requests) {}
  Expected<launch::SlotLimit> slot_limit(i64) const override { return launch::SlotLimit{}; }
  Expected<launch::RunLimits> prepare(const launch::RunRequest& request) override {
    launch::RunLimits limits;
    limits.allocate_per_shape = true;
    limits.slots = request.slots > 0 ? request.slots : 7;
    return limits;
  }
  std::unique_ptr<launch::Launcher> make(boost::asio::io_context& io, const launch::Programs&,
                                         launch::Launcher::Sink sink) const override {
    auto made =
        std::make_unique<FakeLauncher>(io, std::move(sink), [](const Attempt&) { return FakeOutcome::kOk; });
    made->requests_seen = &requests_;
    return made;
  }

 private:
  std::vector<launch::AllocationRequest>& requests_;
};

TEST_F(SweepDriverTest, ARunUsesWhatItsLauncherDecides) {
  auto driver = open();
  ASSERT_TRUE(driver.take_lease());
  ASSERT_TRUE(driver.sync_plan(plan(2), {0, 2, 1}));
  LaunchRequest request;
  request.agent = request.rank = "/bin/true";
  LaunchChoice choice;
  choice.on = "fake", choice.config = std::make_shared<FakeConfig>(requests_);
  const auto report = driver.run(choice, request, [](store::Store&, const store::SweepRow& sweep) {
    EXPECT_EQ(sweep.name, "test");
    return Expected<std::unique_ptr<run::Observer>>(std::make_unique<QuietObserver>());
  });
  ASSERT_TRUE(report) << report.error().error.message;
  EXPECT_EQ(report->end.end, run::End::kDone);
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(requests_[0].slots, 7);
  const auto allocations = driver.store().allocations(driver.sweep().id);
  ASSERT_TRUE(allocations && allocations->size() == 1);
  EXPECT_EQ(allocations->front().launcher, "fake");
}

TEST_F(SweepDriverTest, TheReportHasTheHostsOfEachAllocation) {
  named_.all = {{"gpu1", "cpu"}, {"gpu2", "cpu"}};
  auto driver = open();
  auto entries = plan(1);
  entries[0].trial.nodes = 2, entries[0].trial.dp = 2;
  entries[0].id = trial_id(entries[0].trial);
  ASSERT_TRUE(driver.take_lease());
  ASSERT_TRUE(driver.sync_plan(entries, {0, 2, 1}));
  const auto report = run_all(driver);
  ASSERT_TRUE(report) << report.error().error.message;
  ASSERT_EQ(report->hosts.size(), 1u);
  EXPECT_EQ(report->hosts.begin()->second, (std::vector<std::string>{"gpu1", "gpu2"}));
}

TEST_F(SweepDriverTest, AfterAWatchedRunThereIsWorkWhereTheSweepLacksWhatIsWanted) {
  auto driver = open();
  const i64 sweep = driver.sweep().id;
  const auto has = plan(2), wants = plan(3);
  const auto work = [&](std::span<const PlanEntry> wanted, bool reopens) {
    return own_work(driver.store(), sweep, wanted, reopens).value();
  };
  ASSERT_TRUE(driver.take_lease());
  ASSERT_TRUE(driver.sync_plan(has, {0, 2, 1}));
  EXPECT_EQ(work(has, false), OwnWork::kNone);
  EXPECT_EQ(work({}, false), OwnWork::kNone);
  EXPECT_EQ(work(wants, false), OwnWork::kBlocked) << "that run was stopped: its trials are pending";
  EXPECT_EQ(work({}, true), OwnWork::kBlocked);
  ASSERT_TRUE(run_all(driver));
  EXPECT_EQ(work(has, false), OwnWork::kNone);
  EXPECT_EQ(work(wants, false), OwnWork::kNow);
  EXPECT_EQ(work(std::span(has).first(1), false), OwnWork::kNow) << "the other trial retires";
  EXPECT_EQ(work({}, true), OwnWork::kNow);
}

TEST_F(SweepDriverTest, AnotherLimitOfGpuHoursIsKept) {
  auto driver = open();
  store::SweepRow limited = row();
  limited.options.gpu_hours = 2, limited.options.usd = 5;
  ASSERT_TRUE(driver.make(limited));
  ASSERT_TRUE(driver.take_lease());
  ASSERT_TRUE(driver.keep_gpu_hours(7));
  const auto kept = driver.store().find_sweep("test")->options;
  EXPECT_EQ(kept.gpu_hours, 7);
  EXPECT_FALSE(kept.usd);
  EXPECT_EQ(kept.retries_crash, limited.options.retries_crash);
}

TEST_F(SweepDriverTest, AnImportedSweepIsNotRun) {
  auto driver = open("own");
  ImportedRow measured{plan(1).front(), Result()};
  measured.result->trial_id = measured.entry.id;
  measured.result->outcome = Outcome::kOk;
  const std::vector<ImportedRow> rows{measured};
  store::SweepRow wanted;
  wanted.name = "brought";
  ASSERT_TRUE(driver.store().import_rows(wanted, rows, store::Earlier::kRefuse));
  EXPECT_THAT(error_in(driver.make(row("brought"))),
              IsError(ErrorKind::kRefused, "brought"));  // as `sweep run` does
  const auto brought = driver.store().find_sweep("brought").value();
  EXPECT_TRUE(brought.options.imported);
  driver.use(brought);  // as `sweep resume` does
  EXPECT_THAT(error_in(driver.take_lease()), IsError(ErrorKind::kRefused, "brought"));
}

}  // namespace
}  // namespace sweep::driver
