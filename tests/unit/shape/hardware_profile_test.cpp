// Hardware profiles: nccl-tests' bandwidths, the fits, what is read from a file.
#include "bench_kernels/shape/hardware_profile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "bench_kernels/shape/nonnegative_fit.h"
#include "tests/support/must.h"

namespace sweep::shape {
namespace {

CollectiveRow row(const char* kind, i64 ranks, i64 bytes, double seconds) {
  return {kind, "nccl", ranks, 1, bytes, seconds, 0};
}

// nccl-tests, doc/PERFORMANCE.md: all-reduce 2 (n-1)/n, all-gather, reduce-scatter and all-to-all (n-1)/n,
// point to point 1.
TEST(HardwareProfile, BandwidthsAreThoseOfNcclTests) {
  const CollectiveRow r = row("all_reduce", 8, 8'000'000, 1e-3);
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(r), 8e9);
  EXPECT_DOUBLE_EQ(bus_bandwidth(r), 14e9);
  for (const char* kind : {"all_gather", "reduce_scatter", "all_to_all"})
    EXPECT_DOUBLE_EQ(bus_bandwidth(row(kind, 8, 8'000'000, 1e-3)), 7e9) << kind;
  EXPECT_DOUBLE_EQ(bus_bandwidth(row("send", 8, 8'000'000, 1e-3)), 8e9);
  EXPECT_DOUBLE_EQ(bus_factor("all_reduce", 2), 1);
}

TEST(HardwareProfile, ALinksLatencyAndBandwidthComeBackFromItsTimes) {
  HardwareProfile p;
  for (i64 bytes = 1024; bytes <= 16 << 20; bytes *= 4)
    p.collectives.push_back(row("all_reduce", 4, bytes, 20e-6 + 1.5 * static_cast<double>(bytes) / 3e9));
  p.fit();
  ASSERT_EQ(p.links.size(), 1u);
  EXPECT_NEAR(p.links[0].latency_s, 20e-6, 1e-9);
  EXPECT_NEAR(p.links[0].bandwidth, 3e9, 1e5);
  EXPECT_NEAR(p.links[0].error, 0, 1e-6);
  EXPECT_NEAR(p.links[0].seconds(1 << 20), 20e-6 + 1.5 * (1 << 20) / 3e9, 1e-9);
}

TEST(HardwareProfile, AProductsRateComesBackFromItsTimes) {
  HardwareProfile p;
  for (const i64 w : {64, 256, 1024})
    for (const i64 m : {32, 512, 4096}) {
      const double a = static_cast<double>(m), b = static_cast<double>(w);
      p.matmul.push_back({"bf16", m, w, w, 5e-6 + 2 * a * b * b / 4e13 + 2 * (2 * a * b + b * b) / 1e12});
    }
  p.fit();
  ASSERT_EQ(p.products.size(), 1u);
  EXPECT_NEAR(p.products[0].overhead_s, 5e-6, 1e-10);
  EXPECT_NEAR(p.products[0].flops / 4e13, 1, 1e-6);
  EXPECT_NEAR(p.products[0].bandwidth / 1e12, 1, 1e-6);
}

TEST(HardwareProfile, AProductIsNotSlowerInMemoryThanACopy) {
  HardwareProfile p;
  p.copies = {{1 << 26, (1 << 26) / 1e10}};
  for (const i64 m : {32, 512, 4096}) {  // times that bytes explain, at a tenth of a copy's bandwidth
    const double a = static_cast<double>(m);
    p.matmul.push_back({"fp32", m, 64, 64, 4 * (2 * a * 64 + 64 * 64) / 1e9});
  }
  p.fit();
  EXPECT_TRUE(std::isinf(p.products[0].bandwidth));
  EXPECT_TRUE(std::isfinite(p.products[0].flops));
}

TEST(NonnegativeFit, ATermThatWouldBeNegativeIsLeftOut) {
  NonnegativeFit<2> fit;
  for (const double x : {1.0, 2.0, 4.0}) fit.add({1, x}, 3 * x - 0.5);
  const auto found = fit.solve();
  EXPECT_EQ(found[0], 0);
  EXPECT_GT(found[1], 2);
  EXPECT_EQ(NonnegativeFit<2>().solve()[1], 0);
}

TEST(HardwareProfile, TheNearestGroupAnswersForOneThatWasNotMeasured) {
  HardwareProfile p;
  for (const i64 ranks : {2, 8}) p.collectives.push_back(row("all_reduce", ranks, 1024, 1e-5));
  CollectiveRow far = row("all_reduce", 8, 1024, 1e-4);
  far.nodes = 2;
  p.collectives.push_back(far);
  p.fit();
  EXPECT_EQ(p.link("all_reduce", "nccl", 2, 1)->ranks, 2);
  EXPECT_EQ(p.link("all_reduce", "nccl", 6, 1)->ranks, 8);
  EXPECT_EQ(p.link("all_reduce", "nccl", 2, 4)->nodes, 2);
  EXPECT_EQ(p.link("all_reduce", "gloo", 2, 1), nullptr);
  EXPECT_EQ(p.link("send", "nccl", 2, 1), nullptr);
}

TEST(HardwareProfile, ReadsWhatItWrites) {
  HardwareProfile p;
  p.name = "lab", p.hardware = "cpu", p.hosts = "n1, n2", p.build = "1", p.date = "2026-11-23", p.threads = 2;
  p.matmul = {{"fp32", 32, 64, 128, 1e-5}};
  p.copies = {{1 << 20, 1e-4}, {1 << 26, 1e-2}};
  p.launch_s = 1e-6;
  p.collectives = {row("send", 2, 4096, 2e-5)};
  const auto read = must(hardware_profile_from_json(to_json(p)));
  EXPECT_EQ(read.name, "lab");
  EXPECT_EQ(read.hosts, "n1, n2");
  EXPECT_EQ(read.threads, 2);
  EXPECT_EQ(read.matmul, p.matmul);
  EXPECT_EQ(read.copies, p.copies);
  EXPECT_EQ(read.collectives, p.collectives);
  EXPECT_DOUBLE_EQ(read.copy_bandwidth, (1 << 26) / 1e-2);
  EXPECT_EQ(read.links.size(), 1u);
}

TEST(HardwareProfile, RefusesWhatCannotBe) {
  for (
      const char* text :
      {"", "[]", "{}", R"({"name": "a"})",
       R"({"name": "a", "hardware": "cpu", "matmul": [{"precision": "fp32", "m": 0, "n": 1, "k": 1, "seconds": 1}]})",
       R"({"name": "a", "hardware": "cpu", "matmul": 3})",
       R"({"name": "a", "hardware": "cpu", "copies": [{"bytes": 8, "seconds": -1}]})",
       R"({"name": "a", "hardware": "cpu", "collectives": [{"kind": "send", "ranks": 1, "nodes": 1, "bytes": 8, "seconds": 1}]})"})
    EXPECT_FALSE(hardware_profile_from_json(text)) << text;
}

}  // namespace
}  // namespace sweep::shape
