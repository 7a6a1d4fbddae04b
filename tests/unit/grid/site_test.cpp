#include "orchestrator/grid/site.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace sweep::grid {
namespace {

using Json = nlohmann::json;

class SiteTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/sweep-site-XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  std::filesystem::path folder_;
};

TEST_F(SiteTest, TheGridWinsOverTheUsersProfileAndThatOverTheClusters) {
  const auto cluster =
      file("cluster.yaml",
           "slurm: {partition: gpu, account: all, prologue: [module load cuda], exclusive: false}\n"
           "limits: {gpu_hours: 100}\n");
  const auto user = file("user.yaml", "slurm: {account: mine, max_pending_minutes: 2.5}\n");
  const auto site = read_site({cluster, folder_ / "absent.yaml", user});
  ASSERT_TRUE(site) << site.error().message;
  EXPECT_EQ(site->files.size(), 2u);
  EXPECT_EQ(site->gpu_hours, 100);
  const auto settings = Json::parse(
      launch_settings(site->launch, R"({"slurm": {"partition": "h100"}, "local": {"slots": 3}})", "slurm"));
  EXPECT_EQ(settings,
            Json::parse(R"({"partition": "h100", "account": "mine", "prologue": ["module load cuda"],
                                      "exclusive": false, "max_pending_minutes": 2.5})"));
  EXPECT_EQ(Json::parse(launch_settings(site->launch, "", "ssh")), Json::object());
}

TEST_F(SiteTest, PricesArePerNodeAndTheUsersWinOverTheClusters) {
  const auto cluster =
      file("cluster.yaml", "prices: {h100-sxm-80gb: {node_hour: 30}, a100-80gb: {gpu_hour: 1.5}}\n");
  const auto user = file("user.yaml", "prices: {h100-sxm-80gb: {gpu_hour: 2}}\n");
  const auto site = read_site({cluster, user});
  ASSERT_TRUE(site) << site.error().message;
  EXPECT_EQ(site->usd_per_node_hour,
            (std::map<std::string, double>{{"h100-sxm-80gb", 16}, {"a100-80gb", 12}}));
}

TEST_F(SiteTest, NoProfileIsNoSettings) {
  const auto site = read_site({folder_ / "absent.yaml"});
  ASSERT_TRUE(site) << site.error().message;
  EXPECT_EQ(site->launch, "{}");
  EXPECT_FALSE(site->gpu_hours);
}

TEST_F(SiteTest, MistakesAreNamedWithTheirPlace) {
  for (const auto& [text, said] :
       {std::pair{"slurm: {partion: gpu}\n", ":1:9: "},
        {"slurn: {partition: gpu}\n", ":1:1: "},
        {"slurm: {container: {runtime: apptainer}}\n", "image"},
        {"slurm: {time: \"99:99:99\"}\n", ":1:"},
        {"slurm: {partition: 'a\"b'}\n", ":1:"},
        {"slurm: {account: \"a\\nb\"}\n", ":1:"},
        {"slurm: {head: {mem: 'a\\b'}}\n", ":1:"},
        {"slurm: {head: {qos: high}}\n", "qos"},
        {"slurm: {exclusive: maybe}\n", "exclusive"},
        {"limits: {gpu_hours: -1}\n", "gpu_hours"},
        {"prices: {h100: {node_hour: 30}}\n", ":1:10: "},
        {"prices: {h100-sxm-80gb: 30}\n", "map"},
        {"prices: {h100-sxm-80gb: {}}\n", "is empty"},
        {"prices: {h100-sxm-80gb: {node_hour: 30, gpu_hour: 4}}\n", "or as gpu_hour"},
        {"prices: {h100-sxm-80gb: {node_hour: 0}}\n", "a price"},
        {"[1, 2]\n", ":1:1: "},
        {"", ":1:1: "}}) {
    const auto site = read_site({file("bad.yaml", text)});
    ASSERT_FALSE(site) << text;
    fprintf(stderr,"ST\t%s\t%s\t%s\t%d\t%d\t%s\n",said,std::string(site.error().code.name()).c_str(),site.error().subject.c_str(),site.error().line,site.error().column,text);
  }
}

TEST_F(SiteTest, OneFileByEnvironment) {
  ::setenv("SWEEP_SITE", "/somewhere/site.yaml", 1);
  EXPECT_EQ(site_files(), std::vector<std::filesystem::path>{"/somewhere/site.yaml"});
  ::unsetenv("SWEEP_SITE");
  EXPECT_EQ(site_files().front(), "/etc/sweep/site.yaml");
}

}  // namespace
}  // namespace sweep::grid
