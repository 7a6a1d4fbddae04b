// Slots of trials side by side against the GPUs that are known of a node.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "orchestrator/driver/launchers.h"

namespace sweep::driver {
namespace {

LaunchChoice configured(const std::string& on, const std::string& settings) {
  LaunchChoice choice;
  choice.on = on;
  const auto read = launch_settings_from({{on, nlohmann::json::parse(settings)}});
  EXPECT_TRUE(read) << read.error().message;
  auto config = find_launcher(on)->configure(*read, 0);
  EXPECT_TRUE(config) << config.error().message;
  choice.config = std::move(*config);
  return choice;
}

std::string refusal(const std::string& on, const std::string& settings, const std::string& hardware,
                    i64 slots = 0) {
  LaunchRequest request;
  request.slots = slots;
  const auto fits = slots_fit(configured(on, settings), request, {hardware});
  return fits ? "" : fits.error().message;
}

TEST(Slots, TheCatalogueSaysHowManyGpusANodeHas) {
  const char* sixteen = R"({"colocate": true, "slots": 16})";
  EXPECT_NE(refusal("slurm", sixteen, "h100-sxm-80gb")
                .find("launch.slurm.slots is 16, but a node of h100-sxm-80gb has 8 GPUs"),
            std::string::npos)
      << refusal("slurm", sixteen, "h100-sxm-80gb");
  EXPECT_EQ(refusal("slurm", sixteen, "cpu"), "") << "CPU ranks are free";
  EXPECT_EQ(refusal("slurm", R"({"colocate": true, "slots": 8})", "h100-sxm-80gb"), "");
  EXPECT_EQ(refusal("slurm", R"({"slots": 16})", "h100-sxm-80gb"), "") << "trials have their nodes alone";
  EXPECT_NE(refusal("slurm", R"({"colocate": true, "slots": 2})", "h100-sxm-80gb", 9), "") << "--slots wins";
}

TEST(Slots, MoreRanksThanCoresAreWarnedOfOnThisMachineOnly) {
  PlanEntry entry;
  entry.trial.hardware = "cpu", entry.trial.dp = 100000;
  const std::vector<PlanEntry> crowded{entry};
  EXPECT_TRUE(ranks_beyond_cores(configured("local", "{}"), crowded).has_value());
  EXPECT_FALSE(ranks_beyond_cores(configured("slurm", "{}"), crowded).has_value());
  entry.trial.dp = 1;
  EXPECT_FALSE(ranks_beyond_cores(configured("local", "{}"), std::vector{entry}).has_value());
}

TEST(Slots, GpusRequestedFromSlurmWinOverTheCatalogue) {
  for (const char* gpus : {R"_("gres": "gpu:h100:4(S:0-1)")_", R"_("gres": "tmp:20,gpu:4")_",
                           R"_("gpus_per_node": "h100:4")_", R"_("gpus_per_node": "4")_",
                           R"_("gres": "gpu:1", "hardware": {"h100-sxm-80gb": {"gres": "gpu:4"}})_"}) {
    const auto with = [&](int slots) {
      return refusal(
          "slurm",
          R"({"colocate": true, )" + std::string(gpus) + R"(, "slots": )" + std::to_string(slots) + "}",
          "h100-sxm-80gb");
    };
    EXPECT_EQ(with(4), "") << gpus;
    EXPECT_NE(with(5).find("has 4 GPUs (by g"), std::string::npos) << gpus << ": " << with(5);
  }
  EXPECT_EQ(refusal("slurm", R"({"colocate": true, "slots": 16, "gres": "gpu:16"})", "h100-sxm-80gb"), "");
}

TEST(Slots, HostsOverSshAreHeldToTheSame) {
  const char* hosts = R"({"hosts": [{"host": "one"}, {"host": "two", "slots": 9}]})";
  EXPECT_NE(refusal("ssh", hosts, "h100-sxm-80gb").find("slots of two"), std::string::npos);
  EXPECT_EQ(refusal("ssh", hosts, "cpu"), "");
}

}  // namespace
}  // namespace sweep::driver
