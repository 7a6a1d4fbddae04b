// Reads the machine's facts from uname, /proc and NVML.
#include "worker/agent/node_probe.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "schema/codec.h"
#include "schema/version.h"

namespace sweep::agent {

namespace {

// The value after "key :" of the first line of a /proc file that starts with key.
std::string first_value(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const auto colon = line.find(':');
    const auto from = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
    return from == std::string::npos ? std::string() : line.substr(from);
  }
  return {};
}

std::string whole(const char* file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

nlohmann::json gpus(const Nvml& nvml) {
  nlohmann::json out = nlohmann::json::array();
  for (int i = 0; i < nvml.count(); ++i) {
    nlohmann::json gpu = {{"name", nvml.name(i)}, {"compute_capability", nvml.compute_capability(i)}};
    if (const auto bytes = nvml.memory_total(i)) gpu["memory_bytes"] = *bytes;
    if (const auto mhz = nvml.sm_clock_mhz(i)) gpu["sm_clock_mhz"] = *mhz;
    if (const auto mhz = nvml.max_sm_clock_mhz(i)) gpu["max_sm_clock_mhz"] = *mhz;
    out.push_back(std::move(gpu));
  }
  return out;
}

}  // namespace

NodeRecord probe_node(const Nvml* nvml) {
  NodeRecord out;
  nlohmann::json facts = nlohmann::json::object();
  utsname names{};
  if (::uname(&names) == 0) {
    out.host = names.nodename;
    facts["kernel"] = std::string(names.sysname) + " " + names.release;
    facts["machine"] = names.machine;
  }
  if (const auto model = first_value("/proc/cpuinfo", "model name"); !model.empty()) facts["cpu"] = model;
  if (const auto mhz = first_value("/proc/cpuinfo", "cpu MHz"); !mhz.empty())
    facts["clocks"] = {{"cpu_mhz", mhz}};
  facts["cores"] = std::thread::hardware_concurrency();  // those this process may use
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) facts["memory_bytes"] = static_cast<std::int64_t>(pages) * page;
  if (const auto boot = whole("/proc/sys/kernel/random/boot_id"); !boot.empty()) facts["boot_id"] = boot;
  if (nvml != nullptr) {
    facts["gpus"] = gpus(*nvml);
    facts["driver"] = nvml->driver();
    facts["driver_cuda"] = nvml->driver_cuda();
  }
  facts["version"] = kVersion;
  facts["build"] = kBuild;
  out.facts = dump(facts);
  return out;
}

}  // namespace sweep::agent
