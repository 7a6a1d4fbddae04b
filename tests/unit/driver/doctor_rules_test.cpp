#include "orchestrator/driver/doctor_rules.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sweep::driver {
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

TEST(Doctor, GpusOfANodeAreHeldAgainstTheDeclaredOnes) {
  const GpuFacts h100{
      .name = "NVIDIA H100 80GB HBM3", .compute_capability = "9.0", .memory_bytes = 85520809984};
  NodeFacts facts;
  facts.gpus = {h100, h100};
  EXPECT_FALSE(unfit_gpus(facts, "h100-sxm-80gb", 2));
  EXPECT_NE(unfit_gpus(facts, "h100-sxm-80gb", 8)->find("8 GPUs"), std::string::npos);
  EXPECT_NE(unfit_gpus(facts, "a100-80gb", 1)->find("compute capability 8.0"), std::string::npos);
  EXPECT_FALSE(unfit_gpus(facts, "cpu", 8));
  EXPECT_FALSE(unfit_gpus(NodeFacts(), "h100-sxm-80gb", 8)) << "no NVML there: nothing is known";
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

const json kProbe = {{"version", "1"},
                     {"unix_ns", 1'000'000'000'000},
                     {"shm_bytes", 1e12},
                     {"paths", {{"/f", "writable"}, {"/r", "executable"}}}};
const NodeWants kWants{"n1", "1", "/f", "", "/r", "cpu", "", true, 999'000'000'000, 1'001'000'000'000};

std::string bad_of(const json& probe, const NodeWants& wants) {
  std::string bad;
  for (const auto& finding : judge_node(probe, wants))
    if (finding.health == Health::kBad) bad += finding.what + ": " + finding.detail + "\n";
  return bad;
}

TEST(DoctorOfNodes, AHealthyNodeIsGood) {
  EXPECT_EQ(bad_of(kProbe, kWants), "");
}

TEST(DoctorOfNodes, OfAnotherVersionNothingElseIsBelieved) {
  const auto findings = judge_node(json{{"version", "0"}}, kWants);
  ASSERT_EQ(findings.size(), 1u) << "what it leaves unsaid is no fault of the node";
  EXPECT_EQ(findings[0].what, "n1 version");
}

TEST(DoctorOfNodes, EachFaultHasItsRowAndTheWayOut) {
  const auto with = [](const char* key, const json& value) {
    json probe = kProbe;
    probe[key] = value;
    return probe;
  };
  EXPECT_NE(bad_of(with("version", "2"), kWants).find("n1 version"), std::string::npos);
  EXPECT_NE(bad_of(with("unix_ns", 1'010'000'000'000), kWants).find("9.0 s ahead of"), std::string::npos);
  EXPECT_NE(bad_of(with("unix_ns", 900'000'000'000), kWants).find("99.0 s behind"), std::string::npos);
  EXPECT_NE(bad_of(with("paths", {{"/f", "absent"}, {"/r", "executable"}}), kWants).find("--db"),
            std::string::npos);
  EXPECT_NE(bad_of(with("paths", {{"/f", "writable"}, {"/r", "readable"}}), kWants).find("n1 rank program"),
            std::string::npos);
  NodeWants shared = kWants;
  shared.file = "/f/written-here";
  EXPECT_NE(bad_of(kProbe, shared).find("n1 shared disk"), std::string::npos)
      << "another disk of the same name";
  json sees = kProbe;
  sees["paths"][shared.file] = "readable";
  EXPECT_EQ(bad_of(sees, shared), "");
  NodeWants command = kWants;
  command.working = "/project";
  EXPECT_NE(bad_of(kProbe, command).find("workload.folder"), std::string::npos);
  NodeWants gpus = kWants;
  gpus.hardware = "h100-sxm-80gb";
  EXPECT_NE(bad_of(kProbe, gpus).find("no GPU answers there"), std::string::npos);
  EXPECT_NE(
      bad_of(with("gpus", {{{"name", "A100"}, {"compute_capability", "8.0"}}}), gpus).find("a A100 is there"),
      std::string::npos);
  EXPECT_NE(bad_of(json::object(), kWants).find("n1 version"), std::string::npos);
}

}  // namespace
}  // namespace sweep::driver
