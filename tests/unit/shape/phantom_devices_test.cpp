// worker/phantom/devices describes every GPU of the catalogue to phantom GPUs, with the catalogue's figures.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "bench_kernels/shape/catalogue.h"

namespace sweep::shape {
namespace {

TEST(PhantomDevices, AreTheCataloguesGpus) {
  for (const Hardware& hardware : all_hardware()) {
    if (hardware.gpu.empty()) continue;
    std::ifstream file(SWEEP_SOURCE_DIR "/worker/phantom/devices/" + hardware.name + ".json");
    ASSERT_TRUE(file) << hardware.name << " has no file in worker/phantom/devices";
    const auto json = nlohmann::json::parse(file);
    EXPECT_EQ(json.at("hardware"), hardware.name);
    EXPECT_EQ(json.at("name"), hardware.gpu) << hardware.name;
    EXPECT_EQ(json.at("memory_bytes").get<std::int64_t>(), hardware.memory_bytes) << hardware.name;
    EXPECT_EQ(json.at("compute_capability"), hardware.compute_capability) << hardware.name;
    EXPECT_DOUBLE_EQ(json.at("memory_bandwidth").get<double>(), hardware.memory_bandwidth) << hardware.name;
    EXPECT_DOUBLE_EQ(json.at("intra_node_bandwidth").get<double>(), hardware.intra_node_bandwidth);
    EXPECT_DOUBLE_EQ(json.at("inter_node_bandwidth").get<double>(), hardware.inter_node_bandwidth);
    const auto peaks = json.at("peak_flops").get<std::map<std::string, double>>();
    ASSERT_EQ(peaks.size(), hardware.peak_flops.size()) << hardware.name;
    for (const auto& [precision, peak] : hardware.peak_flops)
      EXPECT_DOUBLE_EQ(peaks.at(precision), peak) << hardware.name << " " << precision;
  }
}

}  // namespace
}  // namespace sweep::shape
