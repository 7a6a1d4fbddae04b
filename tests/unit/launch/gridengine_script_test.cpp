#include "orchestrator/launch/gridengine/gridengine_script.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "orchestrator/launch/launch_config.h"
#include "orchestrator/launch/programs.h"
#include "tests/support/temporary_folder.h"

namespace sweep::launch {
namespace {

class GridEngineScriptTest : public ::testing::Test {
 protected:
  void SetUp() override {
    request_.id = "a0001-0badcafe", request_.spool = folder_, request_.seconds = 600;
    programs_ = {folder_ / "agent", "/bin/rank"};
  }

  std::string script(const GridEngineSettings& settings = {}) {
    const auto out = gridengine_script(request_, settings, programs_);
    EXPECT_TRUE(out) << out.error().message;
    return out.value_or("");
  }
  bool has_line(const std::string& text, const std::string& line) {
    return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
  }
  // Runs a script, in a process group of its own, whose agent is this text of shell; what gridengine.log has
  // afterwards.
  std::string run(const std::string& agent, const std::string& before = "") {
    return run_script(script(), agent, before);
  }
  std::string run_script(const std::string& text, const std::string& agent, const std::string& before = "") {
    EXPECT_TRUE(files::write_atomically(programs_.agent, "#!/bin/bash\n" + agent));
    std::filesystem::permissions(programs_.agent, std::filesystem::perms::owner_all);
    EXPECT_TRUE(files::write_atomically(folder_ / "job.sh", text));
    const auto ran = capture("/bin/bash",
                             {"-c", before + " setsid --wait bash \"$0\"; echo code $? >> \"$1\"",
                              folder_ / "job.sh", folder_ / "gridengine.log"},
                             300);
    EXPECT_TRUE(ran) << ran.error().message;
    return files::read_from(folder_ / "gridengine.log", 0).value_or("");
  }

  const TemporaryFolder folder_;
  AllocationRequest request_;
  Programs programs_;
};

TEST_F(GridEngineScriptTest, DirectivesSayWhatTheSettingsAskFor) {
  request_.avoid = {"gpu1", "$(id)"};
  GridEngineSettings settings;
  settings.queue = "long.q", settings.project = "p1";
  settings.parallel_environment = "smp", settings.pe_slots = 8;
  settings.resources = {"gpu=4", "exclusive=true"}, settings.extra = {"-m n"};
  const auto text = script(settings);
  for (const char* line :
       {"#$ -N sweep-a0001-0badcafe", "#$ -l h_rt=600", "#$ -q long.q", "#$ -P p1", "#$ -pe smp 8",
        "#$ -l gpu=4", "#$ -l exclusive=true", "#$ -m n", "#$ -notify", "#$ -r n", "#$ -l h=!(gpu1|gpu1.*)"})
    EXPECT_TRUE(has_line(text, line)) << line << "\n" << text;
}

TEST_F(GridEngineScriptTest, NothingIsAskedForThatTheSettingsDoNotSay) {
  const auto text = script();
  for (const char* option : {"#$ -q", "#$ -P", "#$ -pe"})
    EXPECT_EQ(text.find(option), std::string::npos) << option;
}

TEST_F(GridEngineScriptTest, TheEndOfTheAgentIsTheEndOfTheJob) {
  EXPECT_NE(run("exit 7").find("code 7"), std::string::npos);
}

// qdel and the time limit: SIGUSR2 to every process of the group, here once the script handles it (/proc says
// so).
TEST_F(GridEngineScriptTest, AWarningOfTheSchedulerReachesTheAgentAsSigterm) {
  const auto log =
      run("trap 'echo asked to end; exit 5' TERM\n"
          "until (( 0x$(awk '/SigCgt/ {print $2}' /proc/$PPID/status) & 0x800 )); do sleep 0.05; done\n"
          "kill -USR2 0; for i in {1..2000}; do sleep 0.1; done");
  EXPECT_NE(log.find("asked to end"), std::string::npos) << log;
  EXPECT_NE(log.find("code 5"), std::string::npos) << log;
}

TEST_F(GridEngineScriptTest, AWarningBeforeTheAgentIsThereReachesItToo) {
  std::string text = script();
  const auto start = text.rfind('\n', text.find(programs_.agent.string() + " "));
  ASSERT_NE(start, std::string::npos);
  text.insert(start + 1, "kill -USR2 $$\n");
  const auto log =
      run_script(text, "trap 'exit 5' TERM; for i in {1..2000}; do sleep 0.1; done; echo never asked");
  EXPECT_EQ(log.find("never asked"), std::string::npos) << log;
  EXPECT_NE(log.find("code "), std::string::npos) << log;
}

TEST_F(GridEngineScriptTest, ASecondStartDoesNothing) {
  const auto log = run("echo the agent ran", "RESTARTED=1");
  EXPECT_EQ(log.find("the agent ran"), std::string::npos) << log;
  EXPECT_NE(log.find("code 0"), std::string::npos) << log;
}

TEST_F(GridEngineScriptTest, PathsArePlainTextForTheShell) {
  request_.spool = folder_ / "a 'b' $(touch c); #";
  std::filesystem::create_directory(request_.spool);
  programs_.agent = "/bin/echo";
  EXPECT_TRUE(files::write_atomically(folder_ / "job.sh", script()));
  ASSERT_TRUE(capture("/bin/bash", {folder_ / "job.sh"}));
  EXPECT_NE(files::read_from(request_.spool / "gridengine.log", 0)->find(request_.spool.string()),
            std::string::npos);
  request_.spool = "/a\n#$ -q other";
  EXPECT_FALSE(gridengine_script(request_, {}, programs_));
}

TEST_F(GridEngineScriptTest, OneHostIsWhatAnAllocationMayHave) {
  request_.nodes = 2;
  EXPECT_FALSE(gridengine_script(request_, {}, programs_));
}

TEST(GridEngineConfig, RefusesSettingsThatDoNotFitTogether) {
  const auto configured = [](const auto& change) {
    LaunchSettings settings;
    change(settings.gridengine.emplace());
    return configure_gridengine(settings, 0).has_value();
  };
  EXPECT_FALSE(configured([](auto& s) { s.time = "00:01:00", s.signal_seconds = 60; }));
  EXPECT_TRUE(configured([](auto& s) { s.time = "00:02:00", s.signal_seconds = 60; }));
  EXPECT_FALSE(configured([](auto& s) { s.pe_slots = 4; }));
  EXPECT_TRUE(configured([](auto& s) { s.pe_slots = 4, s.parallel_environment = "smp"; }));
}

}  // namespace
}  // namespace sweep::launch
