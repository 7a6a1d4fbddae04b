// --notify-command: which events of a run become a notice.
#include "orchestrator/cli/run_notices.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/unit/cli/command_fixture.h"

namespace sweep::cli {
namespace {

class Notices : public CommandTest {
 protected:
  // The bodies that the command got after `tell` told the observer of a run of `count` trials.
  std::vector<nlohmann::json> told(const std::function<void(run::Observer&)>& tell, int count = 1) {
    start(count);
    std::ostringstream out, err;
    Io io{out, err};
    const std::string file = dir_ / "told.jsonl";
    {
      RunNotices notices(io, {"", "cat >>" + file}, path_);
      store::SweepRow row;
      row.id = sweep_, row.name = "s";
      const auto made = notices.with([](store::Store&, const store::SweepRow&) {
        return Expected<std::unique_ptr<run::Observer>>(std::make_unique<driver::QuietObserver>());
      })(*store_, row);
      if (!made) throw std::runtime_error(made.error().message);
      tell(**made);
    }  // everything is delivered here
    EXPECT_EQ(err.str(), "");
    std::vector<nlohmann::json> bodies;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) bodies.push_back(nlohmann::json::parse(line));
    return bodies;
  }
};

TEST_F(Notices, TrialsDoNotInheritTheAddress) {
  ::setenv("SWEEP_NOTIFY", "https://hooks.example/secret", 1);
  ::setenv("SWEEP_NOTIFY_COMMAND", "cat", 1);
  EXPECT_TRUE(told([](run::Observer&) {}).empty());
  EXPECT_EQ(std::getenv("SWEEP_NOTIFY"), nullptr);
  EXPECT_EQ(std::getenv("SWEEP_NOTIFY_COMMAND"), nullptr);
}

TEST_F(Notices, ALostNodeIsTold) {
  const auto bodies =
      told([](run::Observer& run) { run.on_event(EventKind::kNodeLost, "allocation a lost node 1 (b)"); });
  ASSERT_EQ(bodies.size(), 1);
  EXPECT_EQ(bodies[0]["event"], "node_lost");
}

TEST_F(Notices, AnExcludedHostIsToldAndOtherEventsAreNot) {
  const auto bodies = told([](run::Observer& run) {
    run.on_event(EventKind::kPending, "trial 1 again");
    run.on_event(EventKind::kQuarantine, "node7 gets no work for 600 s");
  });
  ASSERT_EQ(bodies.size(), 1);
  EXPECT_EQ(bodies[0]["event"], "host_excluded");
  EXPECT_EQ(bodies[0]["sweep"], "s");
  EXPECT_EQ(bodies[0]["database"], path_.string());
  EXPECT_NE(bodies[0]["text"].get<std::string>().find("node7"), std::string::npos);
}

TEST_F(Notices, ARunThatAnErrorEndsIsToldWithWhatIsKnown) {
  start(2);
  finish(plan_[0], Outcome::kOk);
  std::ostringstream out, err;
  Io io{out, err};
  const std::string file = dir_ / "told.jsonl";
  store::SweepRow row;
  row.id = sweep_, row.name = "s";
  RunNotices(io, {"", "cat >>" + file}, path_).ended(*store_, row, {run::End::kBroken, "no such partition"});
  const auto body = nlohmann::json::parse(std::ifstream(file));
  EXPECT_EQ(body["event"], "end");
  EXPECT_EQ(body["end"], "broken");
  EXPECT_EQ(body["why"], "no such partition");
  EXPECT_EQ(body["answered"], 1);
}

TEST_F(Notices, ABodyHasTheFormThatTheReceiverTakes) {
  start(1);
  std::ostringstream out, err;
  Io io{out, err};
  const std::string file = dir_ / "told.json";
  store::SweepRow row;
  row.id = sweep_, row.name = "a \"quoted\" name";
  const std::string form = R"({{"msgtype": "m.text", "body": {text}, "trial": {trial}, "of": {trials}}})";
  RunNotices(io, {"", "cat >" + file, form}, path_).ended(*store_, row, {run::End::kDone, ""});
  const auto body = nlohmann::json::parse(std::ifstream(file));
  EXPECT_EQ(body["msgtype"], "m.text");
  EXPECT_NE(body["body"].get<std::string>().find(row.name), std::string::npos);
  EXPECT_EQ(body["trial"], nullptr) << "no trial is at fault for an end";
  EXPECT_EQ(body["of"], 1);
  EXPECT_TRUE(check_notify({"", "cat", form}, false));
  EXPECT_THAT(check_notify({"", "cat", R"({{"body": {words}}})"}, false).error(),
              IsError(ErrorKind::kUnknownName, "words"));
  EXPECT_THAT(check_notify({"", "cat", R"({{"body": {text})"}, false).error(),
              IsError(ErrorKind::kInvalidValue, "--notify-form"));
}

TEST_F(Notices, OfHostsThatAreExcludedNothingMoreIsToldOnceItDoesNotArrive) {
  const std::string file = dir_ / "told";
  const std::string pipe = dir_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  // The first one goes on once all are waiting.
  const std::string waits =
      fmt::format("; test -e {0}.begun || {{ : >{0}.begun; cat {1}; }}; exit 7", file, pipe);
  {
    exports::Notifier notifier({"", "cat >>" + file + waits}, [](const std::string&) {});
    notifier.send("first", exports::Notifier::Weight::kMinor);
    for (int i = 0; i < 50; ++i) notifier.send("host", exports::Notifier::Weight::kMinor);
    notifier.send("end");
    std::ofstream(pipe) << "";
  }
  std::ostringstream told;
  told << std::ifstream(file).rdbuf();
  EXPECT_EQ(told.str(), "first\nend\n");
}

TEST_F(Notices, AJobTakesTheAddressFromItsEnvironmentAlone) {
  ::unsetenv("SWEEP_NOTIFY"), ::unsetenv("SWEEP_NOTIFY_COMMAND");
  const exports::NotifyTargets web{"https://hooks.example/secret", ""}, command{"", "cat"};
  EXPECT_TRUE(check_notify(web, false));
  EXPECT_THAT(check_notify(web, true).error(), IsError(ErrorKind::kConflict, "--notify"));
  EXPECT_THAT(check_notify(command, true).error(), IsError(ErrorKind::kConflict, "--notify-command"));
  ::setenv("SWEEP_NOTIFY", web.url.c_str(), 1);
  EXPECT_TRUE(check_notify(web, true));
  ::unsetenv("SWEEP_NOTIFY");
}

TEST_F(Notices, OnlyTheFirstFailureThatStandsIsTold) {
  const auto bodies = told(
      [this](run::Observer& run) {
        const auto ends = [&](std::size_t trial, Outcome outcome) {
          finish(plan_[trial], outcome);
          Result result;
          result.trial_id = plan_[trial].id, result.outcome = outcome;
          run.on_result(plan_[trial], result);
        };
        ends(0, Outcome::kOom);
        ends(1, Outcome::kCancelled);  // Ctrl-C
        ends(2, Outcome::kCrash);      // is run again
        ends(2, Outcome::kOk);
        ends(3, Outcome::kCrash);
        ends(3, Outcome::kCrash);
        ends(4, Outcome::kHang);
      },
      5);
  ASSERT_EQ(bodies.size(), 1);
  EXPECT_EQ(bodies[0]["event"], "first_failure");
  EXPECT_EQ(bodies[0]["trial"], plan_[3].id);
}

TEST_F(Notices, OfACommandThatWritesWithoutEndOnlyTheBeginningIsShown) {
  start(1);
  std::ostringstream out, err;
  Io io{out, err};
  ::testing::internal::CaptureStderr();
  {
    RunNotices notices(io, {"", "yes | head -c 4000000"}, path_);
    store::SweepRow row;
    row.id = sweep_, row.name = "s";
    notices.ended(*store_, row, {});
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr().size(), 64u << 10u);
  EXPECT_NE(err.str(), "") << "the rest is left out, which is said";
}

}  // namespace
}  // namespace sweep::cli
