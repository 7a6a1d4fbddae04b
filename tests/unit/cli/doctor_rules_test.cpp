#include "orchestrator/cli/doctor_rules.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sweep::cli {
namespace {

using nlohmann::json;

const json kRank = {{"cuda", "13.0"}, {"archs", {"7.5", "8.0", "8.6", "9.0", "10.0", "12.0"}}};

json node(const char* driver_cuda, const char* capability) {
  return {{"driver", "1.2.3"},
          {"driver_cuda", driver_cuda},
          {"gpus",
           {{{"name", "GPU"}, {"compute_capability", capability}},
            {{"name", "GPU"}, {"compute_capability", capability}}}}};
}

TEST(Doctor, ADriverOfAnOlderCudaIsBadAndTheWayOutIsNamed) {
  const auto findings = judge_gpus(node("12.8", "9.0"), kRank);
  EXPECT_EQ(findings[0].health, Health::kBad);
  EXPECT_NE(findings[0].detail.find("SWEEP_TORCH"), std::string::npos);
}

TEST(Doctor, ANewEnoughDriverAndAKnownGpuAreGoodAndSaidOnce) {
  const auto findings = judge_gpus(node("13.1", "9.0"), kRank);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].health, Health::kGood);
  EXPECT_EQ(findings[1].health, Health::kGood);
}

TEST(Doctor, AVoltaHasNoCodeAndAnAdaRunsAmpereCode) {
  EXPECT_EQ(judge_gpus(node("13.0", "7.0"), kRank)[1].health, Health::kBad);
  EXPECT_EQ(judge_gpus(node("13.0", "8.9"), kRank)[1].health, Health::kGood);
  EXPECT_EQ(judge_gpus(node("13.0", ""), kRank)[1].health, Health::kBad);
}

TEST(Doctor, NoGpuIsNoFault) {
  const auto findings = judge_gpus(json::object(), kRank);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].health, Health::kGood);
  EXPECT_EQ(judge_gpus(json{{"gpus", "nonsense"}}, json::object()).size(), 1u);
}

TEST(Doctor, LittleSpaceIsAWarning) {
  EXPECT_EQ(judge_space("x", 1e6, 1e9).health, Health::kWarning);
  EXPECT_EQ(judge_space("x", 2e9, 1e9).health, Health::kGood);
}

}  // namespace
}  // namespace sweep::cli
