#include "worker/phantom/description.h"

#include <gtest/gtest.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

namespace sweep::phantom {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

TEST(Description, WithoutATextItIsAnH100) {
  const Description d = described("", "");
  EXPECT_EQ(d.device.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(d.device.major, 9);
  EXPECT_EQ(d.gpus, 1);
}

TEST(Description, MembersReplaceTheDefaultsOneByOne) {
  const Description d = described(
      R"({"name": "Tesla T4", "gpus": 4, "memory_bytes": 16000000000, "multiprocessors": 40, "compute_capability": "7.5",
          "peak_flops": {"fp32": 8.1e12}, "context_bytes": 0})",
      R"({"launch_host_ns": 0, "kernel_floor_ns": 7, "far_message_ns": 9, "all_reduce_share": [1, 0.5]})");
  EXPECT_EQ(d.device.name, "Tesla T4");
  EXPECT_EQ(d.profile.far_message, 9);
  EXPECT_EQ(d.gpus, 4);
  EXPECT_EQ(d.device.memory_bytes, 16'000'000'000u);
  EXPECT_EQ(d.device.major * 10 + d.device.minor, 75);
  EXPECT_EQ(d.device.peak_flops.size(), 1u);
  EXPECT_EQ(d.device.context_bytes, 0u);
  EXPECT_EQ(d.device.nccl_bytes, Device().nccl_bytes);
  EXPECT_EQ(d.profile.launch_host, 0);
  EXPECT_EQ(d.profile.kernel_floor, 7);
  EXPECT_EQ(d.profile.all_reduce_share, (std::vector<double>{1, 0.5}));
  EXPECT_EQ(d.profile.other_share, Profile().other_share);
}

// The catalogue's entry of the description's GPUs.
nlohmann::json catalogue() {
  return nlohmann::json::parse(text_of(SWEEP_SOURCE_DIR "/bench_kernels/shape/hardware.json"));
}

TEST(Description, EveryGpuOfTheCatalogueIsRead) {
  for (const auto& entry : catalogue())
    EXPECT_EQ(described(entry.dump(), "").device.hardware, entry["hardware"]);
}

TEST(Description, WhatIsNoDeviceIsRefused) {
  for (const char* text : {"{",
                           "[]",
                           "7",
                           "null",
                           R"("h100")",
                           R"({"memory": 1})",
                           R"({"name": 7})",
                           R"({"name": null})",
                           R"({"gpus": -1})",
                           R"({"gpus": 17})",
                           R"({"gpus": 1.5})",
                           R"({"gpus": "8"})",
                           R"({"gpus": 4294967297})",
                           R"({"memory_bytes": -1})",
                           R"({"memory_bytes": 1e300})",
                           R"({"memory_bytes": 18446744073709551615})",
                           R"({"multiprocessors": 0})",
                           R"({"multiprocessors": true})",
                           R"({"memory_bandwidth": 0})",
                           R"({"memory_bandwidth": -1})",
                           R"({"memory_bandwidth": 1e999})",
                           R"({"compute_capability": 9.0})",
                           R"({"compute_capability": "9"})",
                           R"({"compute_capability": "9.0a"})",
                           R"({"compute_capability": "-9.0"})",
                           R"({"compute_capability": "1.23"})",
                           R"({"compute_capability": "123.4"})",
                           R"({"compute_capability": "9."})",
                           R"({"compute_capability": ".1"})",
                           R"({"compute_capability": "9.0."})",
                           R"({"compute_capability": ""})",
                           R"({"compute_capability": "9\u00000"})",
                           R"({"compute_capability": "999999999999.0"})",
                           R"({"peak_flops": {"bf16": 0}})",
                           R"({"peak_flops": {"bf16": "fast"}})",
                           R"({"peak_flops": [1]})",
                           R"({"context_bytes": {}})",
                           "{\"name\": \"\xff\"}"})
    EXPECT_THROW(described(text, ""), std::exception) << text;
  EXPECT_THROW(described(R"({"name": ")" + std::string(300, 'x') + "\"}", ""), std::exception);
  EXPECT_THROW(described(std::string(100'000, '['), ""), std::exception);
}

TEST(Description, WhatIsNoProfileIsRefused) {
  for (const char* text :
       {"[]", R"({"launch_host": 1})", R"({"launch_host_ns": -1})", R"({"launch_host_ns": 1.5})",
        R"({"launch_host_ns": 9e18})", R"({"bytes_per_thread": -1})", R"({"matmul_efficiency": 0})",
        R"({"attention_efficiency": -0.1})", R"({"pcie_bandwidth": 0})", R"({"all_reduce_share": []})",
        R"({"other_share": [0]})", R"({"other_share": ["a"]})", R"({"other_share": 1})"})
    EXPECT_THROW(described("", text), std::exception) << text;
}

// One byte changed, taken out or doubled: a description or an exception, never more memory than a petabyte.
TEST(Description, ADamagedTextIsReadOrRefused) {
  const std::string whole = catalogue().back().dump();
  std::mt19937 dice(7);
  for (int i = 0; i < 1'000; ++i) {
    std::string text = whole;
    const auto at = dice() % text.size();
    const auto kind = dice() % 3;
    if (kind == 0)
      text[at] = static_cast<char>(dice());
    else if (kind == 1)
      text.erase(at, 1);
    else
      text.insert(at, 1, text[at]);
    try {
      const Description d = described(text, "");
      EXPECT_LE(d.device.memory_bytes, 1'000'000'000'000'000u) << text;
      EXPECT_GT(d.device.memory_bandwidth, 0) << text;
      EXPECT_TRUE(d.gpus >= 0 && d.gpus <= 16) << text;
    } catch (const std::exception&) {
      continue;
    }
  }
}

}  // namespace
}  // namespace sweep::phantom
