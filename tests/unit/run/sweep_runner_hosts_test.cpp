// Hosts that are given by name: dead ones, resting ones, ones of another hardware.
#include "tests/unit/run/sweep_runner_fixture.h"

namespace sweep::run {
namespace {

// So many allocations of one node at once.
Bounds one_node_each(i64 hosts) {
  Bounds out{hosts, hosts, {}, 1};
  out.min_work_per_node_s = 60;
  return out;
}

TEST_F(SweepRunnerTest, ADeadHostIsTriedTwiceAndTheOtherHostsGoOn) {
  named_ = {{{"a", "cpu"}, {"b", "cpu"}, {"c", "cpu"}}, {"b"}, {}};
  plan(8, {1, 2, 1, 3, 2, 1, 3, 1});
  settings_.host_cooldown_s = 0;
  const auto end = run_by_shape([](const Attempt&) { return FakeOutcome::kOk; }, {3, 3, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kBroken);
  EXPECT_NE(end->why.find("2 that need 3 cpu hosts, of which 2 can be used. In quarantine: b"),
            std::string::npos)
      << end->why;
  EXPECT_EQ(count(Outcome::kOk), 6);
  EXPECT_EQ(store_->progress(sweep_)->pending, 2);
  EXPECT_EQ(asked_for("b"), 2);
  const auto out = events(EventKind::kQuarantine);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_NE(out[0].find("node b gets no more work"), std::string::npos) << out[0];
  EXPECT_NE(out[0].find("b: refused"), std::string::npos) << out[0];
  EXPECT_EQ(events(EventKind::kPending).size(), 1u) << "said once";
}

TEST_F(SweepRunnerTest, AnotherGpuThanTheDeclaredEndsTheRunOnceBeforeItsFirstTrial) {
  named_ = {{{"a", "h100"}, {"b", "h100"}}, {}, {}, {{"b", NodeFacts{.cpu = "other"}}}};
  plan(6, {2, 2, 2, 2, 2, 2}, std::vector<std::string>(6, "h100"));
  settings_.judge_node = [](const NodeRecord& node, const std::string& hardware,
                            i64 gpus) -> std::optional<std::string> {
    EXPECT_EQ(hardware, "h100");
    EXPECT_EQ(gpus, 1);
    return node.facts.cpu == "other" ? std::optional<std::string>("h100 is declared; another is there")
                                     : std::nullopt;
  };
  const auto end = run_by_shape([](const Attempt&) { return FakeOutcome::kOk; }, {3, 3, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kBroken);
  EXPECT_EQ(end->why.find("node b: h100 is declared; another is there"), 0u) << end->why;
  EXPECT_EQ(store_->progress(sweep_)->pending, 6);
  EXPECT_TRUE(where_.empty()) << "no trial was handed out";
  EXPECT_EQ(events(EventKind::kHardware).size(), 1u);
}

TEST_F(SweepRunnerTest, NodesThatAreTheDeclaredOnesGetTheirTrialsOnceTheyAreKnown) {
  named_ = {{{"a", "h100"}, {"b", "h100"}}, {}, {}};
  plan(6, {2, 1, 2, 1, 2, 1}, std::vector<std::string>(6, "h100"));
  settings_.judge_node = [](const NodeRecord&, const std::string&, i64) {
    return std::optional<std::string>();
  };
  const auto end = run_by_shape([](const Attempt&) { return FakeOutcome::kOk; }, {3, 3, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone);
  EXPECT_EQ(count(Outcome::kOk), 6);
}

TEST_F(SweepRunnerTest, AnExcludedHostIsTriedAgainLater) {
  named_ = {{{"a", "cpu"}, {"b", "cpu"}}, {"b"}, {}};
  plan(40);
  settings_.host_cooldown_s = settings_.quarantine_initial_s = 0;
  int posted = 0;
  const auto end = run_by_shape(
      [&](const Attempt&) {
        if (++posted == 10) named_.dead.clear();
        return FakeOutcome::kOk;
      },
      {2, 2, {}, 1});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone) << end->why;
  EXPECT_EQ(count(Outcome::kOk), 40);
  const auto back = static_cast<int>(events(EventKind::kRequestedAgain).size());
  EXPECT_GE(back, 1);
  for (const auto& text : events(EventKind::kQuarantine))
    EXPECT_EQ(text.find("requested once more"), std::string::npos) << "a notice says that a host is excluded";
  EXPECT_EQ(asked_for("b"), back + 2) << "and after that it is not lost again";
}

TEST_F(SweepRunnerTest, AHostThatEndsEveryTrialGetsNoMoreOfThemInThisRunAndTheNext) {
  named_ = {{{"a", "cpu"}, {"b", "cpu"}, {"c", "cpu"}}, {}, {}};
  named_.broken = {"a"};
  settings_.host_cooldown_s = 0;
  const auto run = [&](int trials) {
    named_.asked.clear();
    plan(trials);
    return run_by_shape([](const Attempt&) { return FakeOutcome::kOk; }, one_node_each(3));
  };
  auto end = run(30);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone) << end->why;
  EXPECT_EQ(count(Outcome::kOk), 30) << "a retry goes elsewhere";
  EXPECT_EQ(events(EventKind::kQuarantine).size(), 1u);
  const auto excluded = store_->excluded_hosts(sweep_);
  ASSERT_TRUE(excluded && excluded->size() == 1);
  EXPECT_EQ(excluded->front().host, "a");
  EXPECT_EQ(excluded->front().launcher, "fake");
  end = run(40);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(asked_for("a"), 0) << "a later run knows it";
  EXPECT_EQ(count(Outcome::kOk), 40);

  named_.broken.clear();
  EXPECT_EQ(store_->readmit_host(sweep_, "b").error().kind, ErrorKind::kNotFound);
  ASSERT_TRUE(store_->readmit_host(sweep_, "a"));
  end = run(50);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_GE(asked_for("a"), 1);
  EXPECT_EQ(count(Outcome::kOk), 50);
}

TEST_F(SweepRunnerTest, ATrialThatFailsOnEveryHostIsToBlameAndNoHostIs) {
  named_ = {{{"a", "cpu"}, {"b", "cpu"}}, {}, {}};
  named_.broken = {"a", "b"};
  settings_.host_cooldown_s = 0;
  plan(12);
  const auto end = run_by_shape([](const Attempt&) { return FakeOutcome::kOk; }, one_node_each(2));
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone) << end->why;
  EXPECT_EQ(count(Outcome::kCrash), 12);
  EXPECT_TRUE(store_->excluded_hosts(sweep_)->empty());
}

TEST_F(SweepRunnerTest, TheRunDoesNotWaitForAHostInQuarantine) {
  named_ = {{{"a", "cpu"}, {"b", "cpu"}}, {"a"}, {}};
  plan(3, {1, 2, 1});
  settings_.host_cooldown_s = 0, settings_.quarantine_initial_s = 3600;
  const auto end = run_by_shape([](const Attempt&) { return FakeOutcome::kOk; }, {2, 2, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kBroken);
  EXPECT_EQ(count(Outcome::kOk), 2);
  EXPECT_EQ(asked_for("a"), 2);
}

TEST_F(SweepRunnerTest, AHostThatFailedCoolsDownWhileOthersWork) {
  named_ = {{{"a", "cpu"}, {"b", "cpu"}}, {"a"}, {}};
  plan(2);
  settings_.host_cooldown_s = 1000;
  const auto end = run_by_shape([](const Attempt&) { return FakeOutcome::kOk; }, {2, 1, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone) << "the run does not wait for it";
  EXPECT_EQ(named_.asked, (std::vector<std::vector<std::string>>{{"a"}, {"b"}}));
}

TEST_F(SweepRunnerTest, WithNoOtherWorkTheRunWaitsForACoolingHost) {
  named_ = {{{"a", "cpu"}, {"b", "cpu"}}, {"a"}, {}};
  plan(1, {2});
  settings_.host_cooldown_s = 0.1;
  const auto end = run_by_shape([](const Attempt&) { return FakeOutcome::kOk; }, {2, 2, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kBroken);
  EXPECT_EQ(asked_for("a"), 2);
}

TEST_F(SweepRunnerTest, DeadHostsOneAfterAnotherOpenNoCircuitBreaker) {
  named_ = {{{"a", "cpu"}, {"b", "cpu"}, {"c", "cpu"}, {"d", "cpu"}}, {"a", "b", "c"}, {}};
  plan(3);
  settings_.host_cooldown_s = 0;
  const auto end = run_by_shape([](const Attempt&) { return FakeOutcome::kOk; }, {4, 1, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone) << end->why;
  EXPECT_EQ(count(Outcome::kOk), 3);
  EXPECT_EQ(asked_for("a") + asked_for("b") + asked_for("c"), 6);
}

TEST_F(SweepRunnerTest, WithNoHostLeftTheTrialsArePendingAndThatIsSaid) {
  named_ = {{{"a", "cpu"}, {"b", "cpu"}}, {"a", "b"}, {}};
  plan(2);
  settings_.host_cooldown_s = 0;
  const auto end = run_by_shape([](const Attempt&) { return FakeOutcome::kOk; }, {2, 2, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kBroken);
  EXPECT_NE(end->why.find("of which 0 can be used. In quarantine: a, b"), std::string::npos) << end->why;
  EXPECT_EQ(store_->progress(sweep_)->pending, 2);
}

TEST_F(SweepRunnerTest, HostsWithOtherHardwareDoNotRunATrial) {
  named_ = {{{"a", "cpu"}, {"b", "cpu"}, {"g", "h100-sxm-80gb"}}, {}, {}, {}};
  const std::string gpu = "h100-sxm-80gb";
  plan(5, {1, 2, 1, 2, 1}, {"cpu", "cpu", gpu, gpu, "cpu"});
  const auto end = run_by_shape([](const Attempt&) { return FakeOutcome::kOk; }, {3, 3, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kBroken);
  EXPECT_NE(end->why.find("1 that need 2 h100-sxm-80gb hosts, of which 1 can be used. Name more"),
            std::string::npos)
      << end->why;
  EXPECT_EQ(count(Outcome::kOk), 4);
}

TEST_F(SweepRunnerTest, AHostIsAvoidedByTheNameItWasGivenBy) {
  named_ = {{{"a", "cpu"}, {"b", "cpu"}}, {}, {}, {}};
  plan(2);
  bool left_processes = false;
  const auto end = run_by_shape(
      [&](const Attempt&) {
        return std::exchange(left_processes, true) ? FakeOutcome::kOk : FakeOutcome::kUnclean;
      },
      {1, 1, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(count(Outcome::kOk), 2);
  ASSERT_GE(requests_.size(), 2u);
  EXPECT_EQ(requests_.back().avoid, std::vector<std::string>{"a"}) << "its agent calls it box";
}

}  // namespace
}  // namespace sweep::run
