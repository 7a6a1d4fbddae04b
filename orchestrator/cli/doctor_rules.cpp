#include "orchestrator/cli/doctor_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

namespace sweep::cli {
namespace {

using nlohmann::json;

std::string text(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

// "13.0" -> {13, 0}; unreadable parts are 0.
std::pair<int, int> version(const std::string& dotted) {
  const auto dot = dotted.find('.');
  return {std::atoi(dotted.c_str()), dot == std::string::npos ? 0 : std::atoi(dotted.c_str() + dot + 1)};
}

Finding judge_driver(const json& node, const json& rank) {
  const std::string has = text(node, "driver_cuda"), wants = text(rank, "cuda"),
                    driver = text(node, "driver");
  if (has.empty() || wants.empty())
    return {"GPU driver", Health::kWarning,
            fmt::format("driver {}: which CUDA it supports is not known", driver)};
  // A newer minor version of the same major one runs on an older driver (CUDA minor version compatibility).
  if (version(has).first < version(wants).first)
    return {"GPU driver", Health::kBad,
            fmt::format(
                "driver {} supports CUDA {}, this build needs CUDA {}: install a newer driver, or build with "
                "-DSWEEP_TORCH naming a LibTorch of that CUDA",
                driver, has, wants)};
  return {"GPU driver", Health::kGood, fmt::format("driver {} supports CUDA {}", driver, has)};
}

// Code for X.y runs on X.z, z >= y (binary compatibility within a major version).
bool has_code_for(const json& archs, const std::string& capability) {
  const auto gpu = version(capability);
  return std::any_of(archs.begin(), archs.end(), [&](const json& arch) {
    if (!arch.is_string()) return false;
    const auto code = version(arch.get<std::string>());
    return code.first == gpu.first && code.second <= gpu.second;
  });
}

}  // namespace

std::vector<Finding> judge_gpus(const json& node, const json& rank) {
  const json none = json::array();
  const json& gpus = node.contains("gpus") && node["gpus"].is_array() ? node["gpus"] : none;
  if (gpus.empty()) return {{"GPUs", Health::kGood, "none: trials with hardware cpu run here"}};
  std::vector<Finding> findings{judge_driver(node, rank)};
  const json& archs = rank.contains("archs") && rank["archs"].is_array() ? rank["archs"] : none;
  std::set<std::string> seen;
  for (const json& gpu : gpus) {
    const std::string name = text(gpu, "name"), capability = text(gpu, "compute_capability");
    if (!seen.insert(name).second) continue;
    if (has_code_for(archs, capability))
      findings.push_back({name, Health::kGood, fmt::format("compute capability {}", capability)});
    else
      findings.push_back(
          {name, Health::kBad,
           fmt::format("this build has no code for compute capability {} (it has {}): its trials can be "
                       "predicted but not run",
                       capability.empty() ? "unknown" : capability, archs.dump())});
  }
  return findings;
}

Finding judge_space(const std::string& what, double free_bytes, double needed_bytes) {
  const std::string detail = fmt::format("{:.1f} GiB free", free_bytes / (1 << 30));
  if (free_bytes >= needed_bytes) return {what, Health::kGood, detail};
  return {what, Health::kWarning,
          fmt::format("{}; {:.1f} GiB are advised", detail, needed_bytes / (1 << 30))};
}

}  // namespace sweep::cli
