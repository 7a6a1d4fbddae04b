#include "orchestrator/driver/doctor_rules.h"

#include <gtest/gtest.h>

namespace sweep::driver {
namespace {

const RankFacts kRank{.cuda = "13.0", .archs = {"7.5", "8.0", "8.6", "9.0", "10.0", "12.0"}};

NodeFacts node(const char* driver_cuda, const char* capability) {
  NodeFacts out;
  out.driver = "1.2.3", out.driver_cuda = driver_cuda;
  out.gpus.emplace(2, GpuFacts{.name = "GPU", .compute_capability = capability});
  return out;
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
  const auto findings = judge_gpus(NodeFacts(), kRank);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].health, Health::kGood);
}

TEST(Doctor, LittleSpaceIsAWarning) {
  EXPECT_EQ(judge_space("x", 1e6, 1e9).health, Health::kWarning);
  EXPECT_EQ(judge_space("x", 2e9, 1e9).health, Health::kGood);
}

NodeProbe healthy_node() {
  NodeProbe out;
  out.version = "1", out.unix_ns = 1'000'000'000'000, out.shm_bytes = 1'000'000'000'000;
  out.paths = {{"/f", "writable"}, {"/r", "executable"}};
  return out;
}
const NodeWants kWants{"n1", "1", "/f", "", "/r", "cpu", "", true, 999'000'000'000, 1'001'000'000'000};

std::string bad_of(const NodeProbe& probe, const NodeWants& wants) {
  std::string bad;
  for (const auto& finding : judge_node({probe.host, probe.version, probe}, wants))
    if (finding.health == Health::kBad) bad += finding.what + ": " + finding.detail + "\n";
  return bad;
}

TEST(DoctorOfNodes, AHealthyNodeIsGood) {
  EXPECT_EQ(bad_of(healthy_node(), kWants), "");
}

TEST(DoctorOfNodes, OfAnotherVersionNothingElseIsBelieved) {
  NodeProbe older;
  older.version = "0";
  for (const ProbeAnswer& answer : {ProbeAnswer{"n1", "0", older}, ProbeAnswer{"n1", "0", fail("damage")},
                                    ProbeAnswer{"n1", "1", fail("damage")}}) {
    const auto findings = judge_node(answer, kWants);
    ASSERT_EQ(findings.size(), 1u) << "what it leaves unsaid is no fault of the node";
    EXPECT_EQ(findings[0].what, "n1 version");
    EXPECT_EQ(findings[0].health, Health::kBad);
  }
}

TEST(DoctorOfNodes, EachFaultHasItsRowAndTheWayOut) {
  const auto with = [](auto&& change) {
    NodeProbe probe = healthy_node();
    change(probe);
    return bad_of(probe, kWants);
  };
  EXPECT_NE(with([](NodeProbe& p) { p.version = "2"; }).find("n1 version"), std::string::npos);
  EXPECT_NE(with([](NodeProbe& p) { p.unix_ns = 1'010'000'000'000; }).find("9.0 s ahead of"),
            std::string::npos);
  EXPECT_NE(with([](NodeProbe& p) { p.unix_ns = 900'000'000'000; }).find("99.0 s behind"), std::string::npos);
  EXPECT_NE(with([](NodeProbe& p) { p.paths["/f"] = "absent"; }).find("--db"), std::string::npos);
  EXPECT_NE(with([](NodeProbe& p) { p.paths["/r"] = "readable"; }).find("n1 rank program"),
            std::string::npos);
  NodeWants shared = kWants;
  shared.file = "/f/written-here";
  EXPECT_NE(bad_of(healthy_node(), shared).find("n1 shared disk"), std::string::npos)
      << "another disk of the same name";
  NodeProbe sees = healthy_node();
  sees.paths[shared.file] = "readable";
  EXPECT_EQ(bad_of(sees, shared), "");
  NodeWants command = kWants;
  command.working = "/project";
  EXPECT_NE(bad_of(healthy_node(), command).find("workload.folder"), std::string::npos);
  NodeWants gpus = kWants;
  gpus.hardware = "h100-sxm-80gb";
  EXPECT_NE(bad_of(healthy_node(), gpus).find("no GPU answers there"), std::string::npos);
  NodeProbe other = healthy_node();
  other.gpus.emplace(1, GpuFacts{.name = "A100", .compute_capability = "8.0"});
  EXPECT_NE(bad_of(other, gpus).find("a A100 is there"), std::string::npos);
  EXPECT_NE(bad_of(NodeProbe(), kWants).find("n1 version"), std::string::npos);
}

}  // namespace
}  // namespace sweep::driver
