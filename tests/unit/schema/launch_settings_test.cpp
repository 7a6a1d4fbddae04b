#include "schema/launch_settings.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sweep {
namespace {

using Json = nlohmann::json;

// Settings in the form that programs of earlier versions stored.
const char* const kStored =
    R"({"gridengine":{"extra":["-m n"],"pe_slots":8,"time":"02:00:00"},"local":{},)"
    R"("slurm":{"colocate":true,"container":{"arguments":["--nv"],"image":"/i.sif"},"cpus_per_task":96,)"
    R"("hardware":{"h100-sxm-80gb":{"gres":"gpu:h100:8"}},"head":{"mem":"1T"},"signal_seconds":120.0},)"
    R"("ssh":{"hosts":["a",{"host":"b","price_per_hour":12.5,"slots":4}],"port":22}})";

TEST(LaunchSettings, TheStoredTextIsThatOfEarlierVersions) {
  const auto read = launch_settings_from(Json::parse(kStored));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json(*read).dump(), kStored);
  EXPECT_EQ(*read->slurm->signal_seconds, 120);
  EXPECT_EQ(*read->slurm->container->runtime, "apptainer");
  EXPECT_EQ(*read->ssh->hosts->front().host, "a");
  EXPECT_EQ(*read->ssh->hosts->back().price_per_hour, 12.5);
  EXPECT_EQ(to_json(LaunchSettings()), Json::object());
}

TEST(LaunchSettings, WhatIsNotStatedHasItsDefault) {
  const SlurmSettings slurm;
  EXPECT_EQ(*slurm.idle_seconds, 300);
  EXPECT_TRUE(*slurm.exclusive);
  EXPECT_FALSE(slurm.exclusive.stated);
  EXPECT_EQ(slurm.max_allocations.if_stated(), std::nullopt);
  EXPECT_EQ(*SshSettings().directory, "~/.cache/sweep");
}

TEST(LaunchSettings, ReadingRefusesWrongTypesAndPassesOverWhatItDoesNotKnow) {
  for (const char* text :
       {"[]", R"({"slurm": 3})", R"({"slurm": {"partition": 3}})", R"({"slurm": {"extra": "a"}})",
        R"({"slurm": {"hardware": []}})", R"({"slurm": {"hardware": {"cpu": 1}}})",
        R"({"slurm": {"head": {"mem": 1}}})", R"({"ssh": {"hosts": "a"}})", R"({"ssh": {"hosts": [3]}})",
        R"({"local": {"slots": "four"}})"})
    EXPECT_FALSE(launch_settings_from(Json::parse(text))) << text;
  const auto later =
      launch_settings_from(Json::parse(R"({"pigeon": {}, "slurm": {"of a later version": 1}})"));
  ASSERT_TRUE(later) << later.error().message;
  EXPECT_EQ(to_json(*later).dump(), R"({"slurm":{}})");
}

TEST(LaunchSettings, TheUpperStatementWinsSettingBySetting) {
  const auto below = launch_settings_from(
      Json::parse(R"({"slurm": {"partition": "a", "mem": "1G", "head": {"mem": "1T"}}})"));
  const auto above =
      launch_settings_from(Json::parse(R"({"slurm": {"partition": "b", "head": {"gres": "x"}}, "ssh": {}})"));
  EXPECT_EQ(to_json(merged(*below, *above)),
            Json::parse(R"({"slurm": {"partition": "b", "mem": "1G", "head": {"gres": "x"}}, "ssh": {}})"));
  EXPECT_EQ(launchers_in(merged(*below, *above)), (std::vector<std::string>{"slurm", "ssh"}));
}

}  // namespace
}  // namespace sweep
