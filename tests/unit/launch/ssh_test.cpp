// The SSH launcher with a program in ssh's place that runs the line here, or reaches no host.
#include "orchestrator/launch/ssh/ssh.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "orchestrator/launch/ssh/banner_skipper.h"
#include "orchestrator/launch/ssh/ssh_leftovers.h"
#include "schema/spool.h"
#include "tests/support/must.h"
#include "tests/support/temporary_folder.h"

namespace sweep::launch {
namespace {

constexpr const char* kSshHere = R"(#!/bin/sh
while [ "$1" != -- ]; do shift; done
case $2 in dead*) echo "ssh: connect to host $2 port 22: Connection refused" >&2; exit 255 ;; esac
[ "$#" -gt 2 ] || exit 0
exec /bin/sh -c "$3"
)";

class SshTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);  // sweep does so too: an ssh may end before it has read its input
    std::ofstream(home_ / "ssh") << kSshHere;
    std::filesystem::permissions(home_ / "ssh", std::filesystem::perms::owner_all);
    path_ = ::getenv("PATH");
    ::setenv("PATH", (home_.string() + ":" + path_).c_str(), 1);
  }
  void TearDown() override {
    launcher_.reset();
    ::setenv("PATH", path_.c_str(), 1);
  }
  void begin(const std::vector<std::string>& hosts) {
    SshOptions& options = options_;
    for (const auto& name : hosts) options.all_hosts.push_back({name, "", 1, {}, "", "", ""});
    options.directory = (home_ / "far").string();
    const std::filesystem::path bin = SWEEP_BIN_DIR;
    launcher_ = make_ssh(io_, options, {bin / "sweep-agent", bin / "fake_rank"}, [this](const Event& event) {
      if (const auto* started = std::get_if<Started>(&event)) started_ = *started;
      if (const auto* ended = std::get_if<Ended>(&event)) ended_ = *ended;
      if (const auto* notice = std::get_if<Notice>(&event)) notices_.push_back(notice->text);
      if (const auto* outbox = std::get_if<Outbox>(&event)) {
        outbox_.resize(outbox->offset);
        outbox_ += outbox->bytes;
        launcher_->acknowledge(outbox->id, outbox_.size());
      }
    });
  }
  Expected<void> request(i64 nodes, std::vector<std::string> avoid = {}) {
    AllocationRequest wanted;
    wanted.id = "a0001";
    wanted.spool = home_ / "a0001";
    wanted.nodes = nodes;
    wanted.avoid = std::move(avoid);
    std::filesystem::create_directories(wanted.spool);
    return launcher_->request(wanted);
  }
  // One host whose agent serves.
  void serve() {
    begin({"here"});
    ASSERT_TRUE(request(1));
    ASSERT_TRUE(run_until([&] { return started_ || ended_; }));
    ASSERT_TRUE(started_) << ended_->reason;
  }
  // The folder on the host; empty: it is gone.
  std::filesystem::path far_spool() const {
    const auto far = far_nodes(home_ / "a0001", "a0001");
    return !far.empty() && std::filesystem::exists(far[0].folder) ? far[0].folder : "";
  }
  template <class Done>
  ::testing::AssertionResult run_until(Done&& done) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    while (!done()) {
      if (std::chrono::steady_clock::now() > limit) return ::testing::AssertionFailure() << "waited too long";
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(20));
    }
    return ::testing::AssertionSuccess();
  }

  const TemporaryFolder home_;
  std::string path_, outbox_;
  SshOptions options_;
  boost::asio::io_context io_;
  std::unique_ptr<Launcher> launcher_;
  std::optional<Started> started_;
  std::optional<Ended> ended_;
  std::vector<std::string> notices_;
};

TEST_F(SshTest, AnAllocationIsLostByTheHostThatCannotBeReached) {
  begin({"here", "dead", "there"});
  ASSERT_TRUE(request(2));
  const auto busy = must(launcher_->room("cpu", {}));
  EXPECT_EQ(busy.now, 1);
  EXPECT_EQ(busy.ever, 3);
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_TRUE(ended_->lost);
  EXPECT_EQ(ended_->host, "dead");
  EXPECT_NE(ended_->reason.find("dead: ssh: connect to host dead port 22: Connection refused"),
            std::string::npos)
      << ended_->reason;
  EXPECT_EQ(launcher_->room("cpu", {"dead"})->now, 2);
  EXPECT_FALSE(request(3, {"dead"})) << "two are left";
}

TEST_F(SshTest, EachReasonWhyNoConnectionIsMadeIsTold) {
  const std::string why = home_ / "why", bridge = home_ / "bridge";
  std::string script = kSshHere;
  script.insert(script.find("exec "), "case $3 in *bridge*) [ -e " + why + " ] && { cat " + why +
                                          " >&2; exit 255; }; echo $$ >" + bridge + " ;; esac\n");
  std::ofstream(home_ / "ssh") << script;
  serve();
  const auto told = [&](std::string_view what) {
    return std::ranges::any_of(notices_,
                               [&](const std::string& each) { return each.find(what) != std::string::npos; });
  };
  ASSERT_TRUE(files::write_atomically(why, "ssh: connect to host here port 22: No route to host\n"));
  ::kill(std::stoi(files::read(bridge).value()), SIGKILL);
  ASSERT_TRUE(run_until([&] { return told("No route to host"); }));
  ASSERT_TRUE(files::write_atomically(why, "Host key verification failed.\n"));
  ASSERT_TRUE(run_until([&] { return told("known_hosts"); }));
  std::filesystem::remove(why);
  ASSERT_TRUE(run_until([&] { return told("connected to here again"); }));
  ASSERT_TRUE(launcher_->finish("a0001", false));
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
}

TEST_F(SshTest, HostsAreNamedAsTheyWereGiven) {
  begin({"dead", "an-alias"});
  ASSERT_TRUE(request(1, {"dead"}));
  ASSERT_TRUE(run_until([&] { return started_ || ended_; }));
  ASSERT_TRUE(started_) << ended_->reason;
  EXPECT_EQ(started_->hosts, std::vector<std::string>{"an-alias"});
  ASSERT_TRUE(launcher_->finish("a0001", false));
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_EQ(ended_->reason, "finished");
  EXPECT_EQ(ended_->host, "");
}

// The order to start an agent makes its folder, and may arrive after another host has failed.
TEST_F(SshTest, ALateOrderToStartLeavesNoFolder) {
  const std::string gate = home_ / "gate", joined = home_ / "joined";
  std::string script = kSshHere;
  script.insert(script.find("case $2 in dead"),
                "case \"$2 $3\" in\n"
                "'slow '*--join*) until [ -e " +
                    gate +
                    " ]; do sleep 0.01; done; /bin/sh -c \"$3\"; code=$?\n"
                    "  touch " +
                    joined +
                    "; exit $code ;;\n"
                    "'fails '*--join*) echo refused >&2; exit 3 ;;\n"
                    "'fails '*' end --spool '*) /bin/sh -c \"$3\"; touch " +
                    gate +
                    "; exit 0 ;;\n"
                    "esac\n");
  std::ofstream(home_ / "ssh") << script;
  begin({"here", "slow", "fails"});
  ASSERT_TRUE(request(3));
  ASSERT_TRUE(run_until([&] { return ended_ && std::filesystem::exists(joined); }));
  EXPECT_TRUE(ended_->lost);
  EXPECT_EQ(ended_->host, "fails");
  EXPECT_TRUE(std::filesystem::is_empty(home_ / "far" / "spool"));
}

TEST_F(SshTest, AFolderThatCannotBeRemovedIsSaid) {
  std::string script = kSshHere;
  script.insert(script.find("case $2 in dead"), "case $3 in *' end --spool '*) exit 5 ;; esac\n");
  std::ofstream(home_ / "ssh") << script;
  begin({"here"});
  ASSERT_TRUE(request(1));
  ASSERT_TRUE(run_until([&] { return started_ || ended_; }));
  ASSERT_TRUE(launcher_->finish("a0001", false));
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_EQ(notices_.size(), 1u);
}

// The agent wrote this while the connection was gone.
TEST_F(SshTest, TheRestOfTheOutboxIsBroughtBeforeItsFolderIsRemoved) {
  const std::string gate = home_ / "gate", rest = home_ / "rest";
  const std::string line = spool::frame("a0001", 1, 99, spool::kStarted, {{"attempt", 7}});
  std::ofstream(rest) << line;
  std::string script = kSshHere;
  script.insert(script.find("case $2 in dead"),
                "case $3 in *' bridge --spool '*) exec 3<&0; /bin/sh -c \"$3\" <&3 & bridge=$!\n"
                "  until [ -e " +
                    gate +
                    " ]; do sleep 0.01; done\n"
                    "  kill $bridge; wait $bridge; for outbox in " +
                    (home_ / "far").string() + "/spool/*/n0/outbox.jsonl; do cat " + rest +
                    " >> $outbox; done; exit 9 ;;\n"
                    "esac\n");
  std::ofstream(home_ / "ssh") << script;
  serve();
  EXPECT_EQ(outbox_.find(line), std::string::npos);
  std::ofstream(gate) << "open";
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_NE(outbox_.find(line), std::string::npos);
  EXPECT_EQ(far_spool(), "");
}

TEST_F(SshTest, AFolderStaysOnItsHostWhenTheOutboxCannotBeKeptHere) {
  serve();
  const auto copy = spool::outbox(home_ / "a0001");
  std::filesystem::remove(copy);
  std::filesystem::create_directory(copy);
  ASSERT_TRUE(launcher_->finish("a0001", false));
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_TRUE(ended_->lost);
  EXPECT_EQ(notices_.size(), 1u);
  EXPECT_GT(files::size_of(spool::outbox(far_spool())), 0u);
}

TEST_F(SshTest, AFolderStaysOnItsHostWhenItsLogsDoNotArrive) {
  serve();
  std::ofstream(home_ / "tar") << "#!/bin/sh\nexit 2\n";
  std::filesystem::permissions(home_ / "tar", std::filesystem::perms::owner_all);
  ASSERT_TRUE(launcher_->finish("a0001", false));
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_FALSE(ended_->lost);
  EXPECT_EQ(notices_.size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(spool::agent_log(far_spool())));
}

// Whether this process may still end the agents is not known: they live on.
TEST_F(SshTest, AFenceThatFailsEndsTheAllocationHere) {
  std::optional<Error> fence;
  begin({"here"});
  launcher_->use_fence([&](const std::function<Expected<void>()>& act) {
    return fence ? Expected<void>(tl::unexpected(*fence)) : act();
  });
  ASSERT_TRUE(request(1));
  ASSERT_TRUE(run_until([&] { return started_ || ended_; }));
  ASSERT_TRUE(started_);
  fence = Error{"the database is locked", ErrorKind::kBusy};
  EXPECT_FALSE(launcher_->finish("a0001", true));
  launcher_->kill("a0001");
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_TRUE(ended_->lost);
  EXPECT_NE(far_spool(), "");
  const auto far = far_nodes(home_ / "a0001", "a0001");
  EXPECT_TRUE(end_far(options_, {{far.at(0), {}}}).empty());
  EXPECT_EQ(far_spool(), "");
}

TEST_F(SshTest, AHostWithEndlessOutputIsLostAndUsesLittleMemory) {
  std::ofstream(home_ / "ssh") << "#!/bin/sh\necho '"
                               << BannerSkipper::kMark.substr(0, BannerSkipper::kMark.size() - 1)
                               << "'\nexec head -c 200000000 /dev/zero\n";
  begin({"here"});
  ASSERT_TRUE(request(1));
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_NE(ended_->reason.find("it says more than"), std::string::npos) << ended_->reason.substr(0, 200);
}

}  // namespace
}  // namespace sweep::launch
