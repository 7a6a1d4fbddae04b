#include "orchestrator/launch/slurm_script.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "orchestrator/launch/capture.h"
#include "schema/spool.h"

namespace sweep::launch {
namespace {

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
  auto read = slurm_options_from(Json::parse(json));
  EXPECT_TRUE(read) << read.error().message;
  return read.value_or(SlurmOptions{});
}

const Programs kPrograms{"/opt/sweep/bin/sweep-agent", "/opt/sweep/bin/sweep-rank", true};

// SWEEP_UPDATE_GOLDEN=1 writes the file anew.
void expect_golden(const std::string& name, std::string text) {
  const auto mark = text.find("export SWEEP_ATTEMPT=");  // hashes the spool's canonical path
  if (mark != std::string::npos) text.replace(mark, text.find('\n', mark) - mark, "export SWEEP_ATTEMPT=...");
  const auto path = std::filesystem::path(SWEEP_SOURCE_DIR) / "tests/golden" / name;
  if (std::getenv("SWEEP_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(spool::write_atomically(path, text));
  }
  const auto golden = spool::read_file(path);
  ASSERT_TRUE(golden) << golden.error().message;
  EXPECT_EQ(text, *golden) << path;
}

TEST(SlurmScript, Plain) {
  expect_golden("slurm_plain.sh", slurm_script(request(), options("{}"), kPrograms));
}

TEST(SlurmScript, EverythingASiteCanSay) {
  auto wanted = request(4);
  wanted.hardware = "h100-sxm-80gb", wanted.gpus = 8, wanted.avoid = {"n7", "n9"};
  const auto all = options(R"({"partition": "batch", "account": "lab", "qos": "high", "constraint": "ib&nvme",
    "reservation": "bench", "nodelist": "n[1-16]", "exclude": "n3", "licenses": "x:2", "switches": "1@10:00",
    "wckey": "k", "mem": "0", "nice": 100, "cpus_per_task": 96, "interface": "ib0", "signal_seconds": 120,
    "hardware": {"h100-sxm-80gb": {"partition": "h100", "gres": "gpu:h100:8"}},
    "extra": ["--mail-type=END", "--comment=\"a b\""], "prologue": ["module load cuda/13", "export NCCL_DEBUG=INFO"]})");
  expect_golden("slurm_everything.sh", slurm_script(wanted, all, kPrograms));
}

TEST(SlurmScript, AHeadWithMoreMemoryIsAPartOfItsOwn) {
  auto wanted = request(4);
  wanted.hardware = "h100-sxm-80gb", wanted.gpus = 8;
  expect_golden("slurm_head.sh", slurm_script(wanted, options(R"({"partition": "h100", "mem": "200G",
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
                slurm_script(request(), apptainer, kPrograms) + "--- rank-in-container\n" +
                    container_wrapper(apptainer.container, kPrograms.rank, request().spool));
  const auto pyxis = options(R"({"container": {"runtime": "pyxis", "image": "torch"}})");
  expect_golden("slurm_pyxis.sh", container_wrapper(pyxis.container, kPrograms.rank, request().spool));
}

TEST(SlurmScript, NoValueEscapesItsWord) {
  EXPECT_EQ(shell_word("/a/b-c_1.2"), "/a/b-c_1.2");
  for (const std::string text : {"", "a b", "$(touch /tmp/x)", "it's", "`id`", "a\nb", "\\", "-n;|&<>*?~#"}) {
    const auto said = capture("/bin/sh", {"-c", "printf %s " + shell_word(text)});
    ASSERT_TRUE(said) << said.error().message;
    EXPECT_EQ(*said, text);
  }
}

TEST(SlurmScript, WhatCouldEndADirectiveIsRefused) {
  for (const char* bad : {R"({"partition": "a\n#SBATCH --uid=0"})", R"({"account": "a\"b"})",
                          R"({"qos": "a\\b"})", R"({"extra": ["uid=0"]})", R"({"prologue": ["a\nb"]})",
                          R"({"time": "00:00:10"})", R"({"container": {"runtime": "docker", "image": "x"}})",
                          R"({"hardware": {"cpu": {"gres": "a\"b"}}})"}) {
    const auto read = slurm_options_from(Json::parse(bad));
    EXPECT_FALSE(read) << bad;
    if (!read) {
      EXPECT_NE(read.error().message.find("launch.slurm"), std::string::npos) << read.error().message;
    }
  }
}

TEST(SlurmScript, ANodesWordForItselfCannotBecomeADirectiveOrACommand) {
  auto wanted = request();
  wanted.avoid = {"n1\"\ntouch /tmp/owned\n#", "n2.cluster-a", "n3,n[4-9]", ""};
  const auto script = slurm_script(wanted, options("{}"), {"/bin/agent", "/bin/rank", true});
  EXPECT_EQ(script.find("owned"), std::string::npos) << script;
  EXPECT_NE(script.find("#SBATCH --exclude=n2.cluster-a\n"), std::string::npos) << script;
}

TEST(SlurmScript, WhatWouldMakeAnotherKindOfJobIsRefused) {
  for (const char* line : {"--array=0-3", "--job-name=mine", "--clusters=other", "--wait"})
    EXPECT_FALSE(slurm_options_from(Json{{"extra", {line}}})) << line;
  EXPECT_TRUE(slurm_options_from(Json{{"extra", {"--wait-all-nodes=1", "--mail-type=END"}}}));
}

}  // namespace
}  // namespace sweep::launch
