#include "orchestrator/grid/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/expected.h"
#include "tests/support/error_matchers.h"
#include "tests/support/temporary_folder.h"

namespace sweep::grid {
namespace {

using Json = nlohmann::json;

class SiteTest : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  const TemporaryFolder folder_;
};

TEST_F(SiteTest, TheGridWinsOverTheUsersProfileAndThatOverTheClusters) {
  const auto cluster =
      file("cluster.yaml",
           "slurm: {partition: gpu, account: all, prologue: [module load cuda], exclusive: false}\n"
           "limits: {gpu_hours: 100}\n");
  const auto user = file("user.yaml", "slurm: {account: mine, max_pending_minutes: 2.5}\n");
  const auto site = must(read_site({cluster, folder_ / "absent.yaml", user}));
  EXPECT_EQ(site.files.size(), 2u);
  EXPECT_EQ(site.gpu_hours, 100);
  LaunchSettings grid;
  grid.slurm.emplace().partition = "h100";
  grid.local.emplace().slots = 3;
  EXPECT_EQ(
      to_json(merged(site.launch, grid)),
      Json::parse(R"({"slurm": {"partition": "h100", "account": "mine", "prologue": ["module load cuda"],
                                      "exclusive": false, "max_pending_minutes": 2.5}, "local": {"slots": 3}})"));
}

TEST_F(SiteTest, PricesArePerNodeAndTheUsersWinOverTheClusters) {
  const auto cluster =
      file("cluster.yaml", "prices: {h100-sxm-80gb: {node_hour: 30}, a100-80gb: {gpu_hour: 1.5}}\n");
  const auto user = file("user.yaml", "prices: {h100-sxm-80gb: {gpu_hour: 2}}\n");
  const auto site = must(read_site({cluster, user}));
  EXPECT_EQ(site.usd_per_node_hour,
            (std::map<std::string, double>{{"h100-sxm-80gb", 16}, {"a100-80gb", 12}}));
}

TEST_F(SiteTest, TheUsersCheckpointFolderWinsOverTheClusters) {
  const auto cluster = file("cluster.yaml", "checkpoint_folder: /scratch/all\n");
  const auto user = file("user.yaml", "checkpoint_folder: /scratch/mine\n");
  EXPECT_EQ(read_site({cluster})->checkpoint_folder, "/scratch/all");
  EXPECT_EQ(read_site({cluster, user})->checkpoint_folder, "/scratch/mine");
}

TEST_F(SiteTest, NoProfileIsNoSettings) {
  const auto site = must(read_site({folder_ / "absent.yaml"}));
  EXPECT_EQ(site.launch, LaunchSettings());
  EXPECT_FALSE(site.gpu_hours);
}

TEST_F(SiteTest, MistakesAreNamedWithTheirPlace) {
  for (const Refused& each : std::initializer_list<Refused>{
           {"slurm: {partion: gpu}\n", 1, 9, ErrorKind::kUnknownName, "partion"},
           {"slurn: {partition: gpu}\n", 1, 1, ErrorKind::kUnknownName, "slurn"},
           {"slurm: {container: {runtime: apptainer}}\n", 1, 9, ErrorKind::kMissing, "image"},
           {"slurm: {time: \"99:99:99\"}\n", 1, 15, ErrorKind::kInvalidValue, "time"},
           {"slurm: {partition: 'a\"b'}\n", 1, 20, ErrorKind::kInvalidValue, "partition"},
           {"slurm: {account: \"a\\nb\"}\n", 1, 18, ErrorKind::kInvalidValue, "account"},
           {"slurm: {head: {mem: 'a\\b'}}\n", 1, 21, ErrorKind::kInvalidValue, "mem"},
           {"slurm: {head: {qos: high}}\n", 1, 16, ErrorKind::kUnknownName, "qos"},
           {"slurm: {time: \"00:00:59\"}\n", 1, 15, ErrorKind::kInvalidValue, "time"},
           {"slurm: {interface: \"a\\nb\"}\n", 1, 20, ErrorKind::kInvalidValue, "interface"},
           {"slurm: {hardware: {cpu: {gres: 'a\"b'}}}\n", 1, 32, ErrorKind::kInvalidValue, "gres"},
           {"slurm: {hardware: {gpu9: {gres: a}}}\n", 1, 20, ErrorKind::kUnknownName, "gpu9"},
           {"slurm: {container: {runtime: docker, image: x}}\n", 1, 30, ErrorKind::kInvalidValue, "docker"},
           {"slurm: {prologue: [\"a\\nb\"]}\n", 1, 20, ErrorKind::kInvalidValue, "prologue"},
           {"slurm: {prologue: []}\n", 1, 19, ErrorKind::kInvalidValue, "prologue"},
           {"slurm: {extra: [uid=0]}\n", 1, 17, ErrorKind::kInvalidValue, "uid=0"},
           {"slurm: {extra: [--mail-type=END, --array=0-3]}\n", 1, 34, ErrorKind::kInvalidValue, "--array"},
           {"slurm: {extra: [--job-name=mine]}\n", 1, 17, ErrorKind::kInvalidValue, "--job-name"},
           {"slurm: {extra: [--clusters=other]}\n", 1, 17, ErrorKind::kInvalidValue, "--clusters"},
           {"slurm: {extra: [--wait]}\n", 1, 17, ErrorKind::kInvalidValue, "--wait"},
           {"gridengine: {extra: [\"-t 1-3\"]}\n", 1, 22, ErrorKind::kInvalidValue, "-t"},
           {"gridengine: {extra: [\"-N other\"]}\n", 1, 22, ErrorKind::kInvalidValue, "-N"},
           {"gridengine: {extra: [queue]}\n", 1, 22, ErrorKind::kInvalidValue, "queue"},
           {"gridengine: {extra: [\"-m n\\n#$ -q x\"]}\n", 1, 22, ErrorKind::kInvalidValue, "extra"},
           {"gridengine: {time: \"00:00:30\"}\n", 1, 20, ErrorKind::kInvalidValue, "time"},
           {"gridengine: {time: \"7200\"}\n", 1, 20, ErrorKind::kInvalidValue, "time"},  // seconds for qsub
           {"ssh: {hosts: [{slots: 2}]}\n", 1, 15, ErrorKind::kMissing, "host"},
           {"slurm: {exclusive: maybe}\n", 1, 20, ErrorKind::kInvalidValue, "exclusive"},
           {"limits: {gpu_hours: -1}\n", 1, 21, ErrorKind::kInvalidValue, "gpu_hours"},
           {"prices: {h100: {node_hour: 30}}\n", 1, 10, ErrorKind::kUnknownName, "h100"},
           {"prices: {h100-sxm-80gb: 30}\n", 1, 10, ErrorKind::kInvalidValue, "h100-sxm-80gb"},
           {"prices: {h100-sxm-80gb: {}}\n", 1, 10, ErrorKind::kInvalidValue, "h100-sxm-80gb"},
           {"prices: {h100-sxm-80gb: {node_hour: 30, gpu_hour: 4}}\n", 1, 10, ErrorKind::kConflict,
            "node_hour"},
           {"prices: {h100-sxm-80gb: {node_hour: 0}}\n", 1, 37, ErrorKind::kInvalidValue, "a price"},
           {"[1, 2]\n", 1, 1, ErrorKind::kInvalidValue, ""},
           {"", 1, 1, ErrorKind::kInvalidValue, ""},
       }) {
    const Error error = error_in(read_site({file("bad.yaml", each.text)}));
    EXPECT_TRUE(error.file.ends_with("bad.yaml")) << error.file;
    EXPECT_THAT(error, each.error()) << each.text;
  }
}

TEST_F(SiteTest, BeginningsOfOptionsAndWhatOnlyAShellFillsInAreRefused) {
  struct Refusal {
    const char* text;
    int column;
    const char* subject;
  };
  for (const auto& [text, column, subject] : std::initializer_list<Refusal>{
           {"slurm: {extra: [--arra=0-3]}\n", 17, "--arra"},
           {"slurm: {extra: [\"--time 10\"]}\n", 17, "--time"},
           {"slurm: {extra: [--requeue]}\n", 17, "--requeue"},
           {"slurm: {extra: [--node=2]}\n", 17, "--node"},
           {"ssh: {directory: $HOME/x}\n", 18, "directory"},
           {"ssh: {directory: ~me/x}\n", 18, "directory"},
           {"ssh: {hosts: [{host: a, agent: ~me/x}]}\n", 32, "agent"},
       }) {
    const Error error = error_in(read_site({file("bad.yaml", text)}));
    EXPECT_THAT(error, ::testing::AllOf(At(1, column), IsError(ErrorKind::kInvalidValue, subject))) << text;
  }
}

TEST_F(SiteTest, ATabEndsTheNameOfAnOption) {
  const Error error = error_in(read_site({file("bad.yaml", "gridengine: {extra: [\"-N\\tother\"]}\n")}));
  EXPECT_THAT(error, ::testing::AllOf(At(1, 22), IsError(ErrorKind::kInvalidValue, "-N")));
}

TEST_F(SiteTest, OptionsThatOnlyBeginLikeOneOfOursAreTaken) {
  const auto site =
      read_site({file("site.yaml", "slurm: {extra: [--wait-all-nodes=1, --mail-type=END, --time-min=5]}\n")});
  ASSERT_TRUE(site) << site.error().message;
  EXPECT_EQ(*site->launch.slurm->extra,
            (std::vector<std::string>{"--wait-all-nodes=1", "--mail-type=END", "--time-min=5"}));
}

TEST_F(SiteTest, OneFileByEnvironment) {
  ::setenv("SWEEP_SITE", "/somewhere/site.yaml", 1);
  EXPECT_EQ(site_files(), std::vector<std::filesystem::path>{"/somewhere/site.yaml"});
  ::unsetenv("SWEEP_SITE");
  EXPECT_EQ(site_files().front(), "/etc/sweep/site.yaml");
}

}  // namespace
}  // namespace sweep::grid
