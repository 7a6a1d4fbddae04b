#include "orchestrator/launch/slurm/slurm_script.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "base/time.h"
#include "orchestrator/launch/programs.h"
#include "orchestrator/launch/slurm/orchestrator_script.h"
#include "schema/agent_call.h"
#include "schema/spool.h"
#include "tests/support/must.h"
#include "tests/support/temporary_folder.h"

namespace sweep::launch {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

AllocationRequest request(i64 nodes = 1) {
  AllocationRequest out;
  out.id = "a0001-0badcafe";
  out.spool = "/shared/my sweeps/r.db.spool/a0001-0badcafe";
  out.nodes = nodes;
  out.seconds = 1700;
  return out;
}

SlurmOptions options(const char* json) {
  const auto settings = launch_settings_from({{"slurm", Json::parse(json)}});
  EXPECT_TRUE(settings) << settings.error().message;
  if (!settings) return {};
  auto read = slurm_options_from(*settings->slurm);
  EXPECT_TRUE(read) << read.error().message;
  return read.value_or(SlurmOptions{});
}

const Programs kPrograms{"/opt/sweep/bin/sweep-agent", "/opt/sweep/bin/sweep-rank", true};

std::string script_of(const AllocationRequest& wanted, const SlurmOptions& slurm, const Programs& programs) {
  auto script = slurm_script(wanted, slurm, programs);
  EXPECT_TRUE(script) << script.error().message;
  return script.value_or("");
}

// SWEEP_UPDATE_GOLDEN=1 writes the file anew.
void expect_golden(const std::string& name, std::string text) {
  const auto mark = text.find("export SWEEP_ATTEMPT=");  // hashes the spool's canonical path
  if (mark != std::string::npos) text.replace(mark, text.find('\n', mark) - mark, "export SWEEP_ATTEMPT=...");
  const auto path = std::filesystem::path(SWEEP_SOURCE_DIR) / "tests/golden" / name;
  if (std::getenv("SWEEP_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(files::write_atomically(path, text));
  }
  const auto golden = must(files::read(path));
  EXPECT_EQ(text, golden) << path;
}

TEST(SlurmScript, Plain) {
  expect_golden("slurm_plain.sh", script_of(request(), options("{}"), kPrograms));
}

TEST(SlurmScript, EverythingASiteCanSay) {
  auto wanted = request(4);
  wanted.hardware = "h100-sxm-80gb", wanted.gpus = 8, wanted.avoid = {"n7", "n9"};
  const auto all = options(R"({"partition": "batch", "account": "lab", "qos": "high", "constraint": "ib&nvme",
    "reservation": "bench", "nodelist": "n[1-16]", "exclude": "n3", "licenses": "x:2", "switches": "1@10:00",
    "wckey": "k", "mem": "0", "nice": 100, "cpus_per_task": 96, "interface": "ib0", "signal_seconds": 120,
    "hardware": {"h100-sxm-80gb": {"partition": "h100", "gres": "gpu:h100:8"}},
    "extra": ["--mail-type=END", "--comment=\"a b\""], "prologue": ["module load cuda/13", "export NCCL_DEBUG=INFO"]})");
  expect_golden("slurm_everything.sh", script_of(wanted, all, kPrograms));
}

TEST(SlurmScript, AHeadWithMoreMemoryIsAPartOfItsOwn) {
  auto wanted = request(4);
  wanted.hardware = "h100-sxm-80gb", wanted.gpus = 8;
  expect_golden("slurm_head.sh", script_of(wanted, options(R"({"partition": "h100", "mem": "200G",
    "head": {"mem": "1T", "constraint": "bigmem"}})"),
                                           kPrograms));
}

TEST(SlurmScript, LicencesAreTakenOnceByAJobInParts) {
  const auto lines =
      slurm_directives(request(4), options(R"({"licenses": "x:2", "mem": "1G", "head": {"mem": "1T"}})"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "--licenses=x:2"), 1);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "hetjob"), 1);
}

TEST(SlurmScript, RanksGoIntoTheContainerAndTheAgentStaysOutside) {
  const auto apptainer = options(R"({"container": {"image": "/images/torch 2.sif", "arguments": ["--nv"]}})");
  expect_golden("slurm_apptainer.sh",
                script_of(request(), apptainer, kPrograms) + "--- rank-in-container\n" +
                    container_wrapper(*apptainer.container, kPrograms.rank, request().spool));
  const auto pyxis = options(R"({"container": {"runtime": "pyxis", "image": "torch"}})");
  expect_golden("slurm_pyxis.sh", container_wrapper(*pyxis.container, kPrograms.rank, request().spool));
}

TEST(SlurmScript, NoValueEscapesItsWord) {
  EXPECT_EQ(shell_word("/a/b-c_1.2"), "/a/b-c_1.2");
  for (const std::string text : {"", "a b", "$(touch /tmp/x)", "it's", "`id`", "a\nb", "\\", "-n;|&<>*?~#"}) {
    const auto said = must(capture("/bin/sh", {"-c", "printf %s " + shell_word(text)}));
    EXPECT_EQ(said, text);
  }
}

TEST(SlurmScript, ALimitThatTheWarningUsesUpIsRefused) {
  SlurmSettings settings;
  settings.time = "00:02:00", settings.signal_seconds = 120;
  EXPECT_FALSE(slurm_options_from(settings));
  settings.signal_seconds = 119;
  EXPECT_EQ(slurm_options_from(settings)->time_s, 120);
}

TEST(SlurmScript, AHostNameCannotBecomeADirectiveOrACommand) {
  auto wanted = request();
  wanted.avoid = {"n1\"\ntouch /tmp/owned\n#", "n2.cluster-a", "n3,n[4-9]", ""};
  const auto script = script_of(wanted, options("{}"), {"/bin/agent", "/bin/rank", true});
  EXPECT_EQ(script.find("owned"), std::string::npos) << script;
  EXPECT_NE(script.find("#SBATCH --exclude=n2.cluster-a\n"), std::string::npos) << script;
}

// A folder in which each script is run, with a program in the agent's place that writes down its words.
class RunScript : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(home_ / "cwd"); }

  fs::path recorder(const fs::path& folder) {
    fs::create_directories(folder);
    const auto file = folder / "agent";
    EXPECT_TRUE(files::write_atomically(
        file, "#!/bin/sh\nprintf '%s\\0' \"$0\" \"$@\" >" + shell_word((home_ / "words").string()) + "\n"));
    fs::permissions(file, fs::perms::owner_all);
    return file;
  }
  // The words that reach the agent, and "not empty" where the script created anything else.
  std::vector<std::string> run(const std::string& script) {
    EXPECT_TRUE(files::write_atomically(home_ / "job.sh", script));
    const auto said =
        capture("/bin/bash", {"-c", "cd \"$0\" && bash \"$1\"", home_ / "cwd", home_ / "job.sh"}, 300);
    EXPECT_TRUE(said) << said.error().message;
    std::vector<std::string> out;
    const auto words = files::read(home_ / "words").value_or("");
    for (std::size_t at = 0, end; (end = words.find('\0', at)) != std::string::npos; at = end + 1)
      out.push_back(words.substr(at, end - at));
    if (!fs::is_empty(home_ / "cwd")) out.emplace_back("not empty");
    return out;
  }
  const TemporaryFolder home_;
};

TEST_F(RunScript, EveryPathReachesTheAgentAsItIs) {
  for (const char* name : {"plain", "a b", "-dash", "it's", "a\"b", "'\"", "$(touch owned)", "`touch owned`",
                           "back\\slash", "\\\"; touch owned; \"", "x;touch owned", "#x", "50%j", "*"}) {
    auto wanted = request(2);
    wanted.spool = home_ / name / "r.db.spool";
    auto slurm = options("{}");
    slurm.interface = name;
    const Programs programs{recorder(home_ / name), home_ / name / "rank", true};
    auto words = run(script_of(wanted, slurm, programs));
    ASSERT_GE(words.size(), 2u);
    EXPECT_EQ(words[words.size() - 2], "--time-limit");
    words.resize(words.size() - 2);
    EXPECT_EQ(words, head_agent_words(wanted, slurm, programs)) << name;
    const OrchestratorJob job{"n",
                              "p",
                              {{"account", name}},
                              home_ / name / "r.db.log",
                              {programs.agent.string(), "resume", name, "--db", home_ / name / "r.db"}};
    const auto script = must(orchestrator_script(job));
    EXPECT_EQ(run(script), job.words) << name;
  }
}

TEST_F(RunScript, APrologueThatTakesAllOfTheTimeEndsTheJob) {
  auto wanted = request();
  wanted.spool = home_ / "r.db.spool";
  auto slurm = options(R"({"prologue": ["SECONDS=100000"]})");
  const Programs programs{recorder(home_ / "bin"), home_ / "rank", true};
  EXPECT_TRUE(files::write_atomically(home_ / "job.sh", script_of(wanted, slurm, programs)));
  EXPECT_FALSE(capture("/bin/bash", {home_ / "job.sh"}, 300)) << "exit code 1";
  EXPECT_FALSE(fs::exists(home_ / "words")) << "no agent is started";
}

// A run may start its agents long after it has asked how long the job lasts.
TEST(SlurmScript, AnAgentInAnExistingJobGetsTheTimeThatIsLeftThen) {
  auto slurm = options("{}");
  slurm.existing_job = 9;
  const auto limit_at = [&](double ends_s) {
    slurm.existing_job_ends_s = ends_s;
    const auto words = head_agent_words(request(), slurm, {});
    const auto found = std::ranges::find(words, kTimeLimitOption);
    return found == words.end() || found + 1 == words.end() ? -1.0 : std::atof((found + 1)->c_str());
  };
  const double now = steady_s(), most = 1000 - reserved_seconds(slurm);
  EXPECT_LE(limit_at(now + 1000), most);
  EXPECT_GT(limit_at(now + 1000), most - 100);
  EXPECT_NEAR(limit_at(now + 1000) - limit_at(now + 500), 500, 10);
}

// A line break in a directive begins a line of shell.
TEST_F(RunScript, NoPathOrSettingStartsALineOfItsOwn) {
  for (const std::string name : {"a\ntouch owned;#", "a\rb", "a\x01", "a\x7f"}) {
    auto wanted = request();
    wanted.spool = home_ / name / "r.db.spool";
    EXPECT_FALSE(slurm_script(wanted, options("{}"), kPrograms)) << name;
    const fs::path log = home_ / name / "r.db.log";
    EXPECT_FALSE(orchestrator_script({"n", "p", {}, log, {"/bin/true"}})) << name;
    EXPECT_FALSE(orchestrator_script({"n", name, {}, "/x", {"/bin/true"}})) << name;
    EXPECT_FALSE(orchestrator_script({name, "p", {}, "/x", {"/bin/true"}})) << name;
    EXPECT_FALSE(orchestrator_script({"n", "p", {{"account", name}}, "/x", {"/bin/true"}})) << name;
  }
}

TEST(SlurmScript, AFolderListOfAContainerTakesNoPathThatWouldBeTwo) {
  auto wanted = request();
  const auto contained = options(R"({"container": {"image": "/i.sif"}})");
  EXPECT_TRUE(slurm_script(wanted, contained, kPrograms));
  wanted.spool = "/data/a:b/r.db.spool";
  EXPECT_FALSE(slurm_script(wanted, contained, kPrograms));
}

}  // namespace
}  // namespace sweep::launch
