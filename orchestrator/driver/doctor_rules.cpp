#include "orchestrator/driver/doctor_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/found_gpu.h"
#include "orchestrator/launch/probe_answer.h"
#include "schema/codec.h"

namespace sweep::driver {
namespace {

// "13.0" -> {13, 0}; unreadable parts are 0.
std::pair<int, int> version(const std::string& dotted) {
  const auto dot = dotted.find('.');
  return {std::atoi(dotted.c_str()), dot == std::string::npos ? 0 : std::atoi(dotted.c_str() + dot + 1)};
}

Finding judge_driver(const NodeFacts& node, const RankFacts& rank) {
  const std::string &has = node.driver_cuda, &wants = rank.cuda, &driver = node.driver;
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

shape::FoundGpu gpu_of(const GpuFacts& gpu) {
  return {gpu.name, gpu.compute_capability, gpu.memory_bytes};
}

std::vector<GpuFacts> gpus_of(const NodeFacts& facts) {
  return facts.gpus.value_or(std::vector<GpuFacts>());
}

constexpr double kClockLimit = 2;         // seconds
constexpr double kShmNeeded = 256 << 20;  // bytes

Finding judge_version(const ProbeAnswer& answer, const NodeWants& wants) {
  const std::string what = wants.node + " version";
  const auto wrong = launch::wrong_agent(answer, wants.version);
  if (!wrong) return {what, Health::kGood, answer.version};
  return {what, Health::kBad,
          fmt::format("its sweep-agent {}, this is {}: install the same build there, or name no agent and it "
                      "is copied",
                      *wrong, wants.version)};
}

std::string access_there(const NodeProbe& probe, const std::string& path) {
  const auto found = probe.paths.find(path);
  return found == probe.paths.end() ? std::string() : found->second;
}

// Another disk of the same name is writable too.
Finding judge_file(const NodeProbe& probe, const NodeWants& wants) {
  const std::string is = access_there(probe, wants.file), what = wants.node + " shared disk";
  if (!is.empty() && is != "absent") return {what, Health::kGood, "it sees what is written here"};
  return {what, Health::kBad,
          fmt::format(
              "a file that was written into {} here is not there: the database must lie on a filesystem that "
              "all nodes share: name another place with --db",
              wants.folder)};
}

Finding judge_working_folder(const NodeProbe& probe, const NodeWants& wants) {
  const std::string is = access_there(probe, wants.working), what = wants.node + " working folder";
  if (is == "writable" || is == "readable") return {what, Health::kGood, wants.working};
  return {what, Health::kBad,
          fmt::format("{} is {} there: copy it there, or set workload.folder", wants.working,
                      is.empty() ? "unknown" : is)};
}

Finding judge_path(const NodeProbe& probe, const NodeWants& wants, const std::string& path,
                   const char* wanted) {
  const std::string is = access_there(probe, path);
  const bool folder = std::string(wanted) == "writable";
  const std::string what = wants.node + (folder ? " folder" : " rank program");
  if (is == wanted) return {what, Health::kGood, path};
  const char* way =
      !folder ? "name the program as it is called there (rank, --rank), or bring it with scripts/deploy"
      : wants.shared
          ? "the database must lie on a filesystem that all nodes share: name another place with --db"
          : "name another one with directory";
  return {what, Health::kBad,
          fmt::format("{} is {} there, not {}: {}", path, is.empty() ? "unknown" : is, wanted, way)};
}

// How far its clock is from this machine's, beyond what the question took.
Finding judge_clock(const NodeProbe& probe, const NodeWants& wants) {
  const std::string what = wants.node + " clock";
  if (!probe.unix_ns) return {what, Health::kWarning, "it did not tell the time"};
  const i64 now = *probe.unix_ns;
  const double ahead = static_cast<double>(now - wants.answered_unix_ns) * 1e-9,
               behind = static_cast<double>(wants.asked_unix_ns - now) * 1e-9;
  const double off = std::max({ahead, behind, 0.0});
  if (off <= kClockLimit) return {what, Health::kGood, fmt::format("within {:.1f} s", std::max(off, 0.1))};
  return {
      what, Health::kBad,
      fmt::format("{:.1f} s {} this machine's: stamps of results would be in the wrong order; let chrony or "
                  "ntpd set it",
                  off, ahead > 0 ? "ahead of" : "behind")};
}

std::optional<std::string> other_gpu(const shape::Hardware& declared, const std::vector<GpuFacts>& gpus) {
  for (const GpuFacts& gpu : gpus)
    if (auto why = shape::not_the_declared(declared, gpu_of(gpu))) return why;
  return std::nullopt;
}

Finding judge_declared(const NodeProbe& probe, const NodeWants& wants) {
  const std::string what = wants.node + " GPUs";
  const auto gpus = gpus_of(probe);
  if (wants.hardware.empty() || wants.hardware == "cpu")
    return {what, Health::kGood, gpus.empty() ? "none" : fmt::format("{} x {}", gpus.size(), gpus[0].name)};
  const auto declared = shape::find_hardware(wants.hardware);
  if (!declared) return {what, Health::kBad, declared.error().message};
  if (gpus.empty())
    return {what, Health::kBad,
            fmt::format(
                "{} is declared, and no GPU answers there: look at nvidia-smi, the driver, and what the job "
                "asks for (gres, gpus_per_node)",
                wants.hardware)};
  if (const auto why = other_gpu(*declared, gpus)) return {what, Health::kBad, *why};
  if (static_cast<i64>(gpus.size()) < declared->gpus_per_node)
    return {
        what, Health::kWarning,
        fmt::format("{} of {} GPUs of {} are visible", gpus.size(), declared->gpus_per_node, wants.hardware)};
  return {what, Health::kGood, fmt::format("{} x {}", gpus.size(), gpus[0].name)};
}

}  // namespace

std::vector<Finding> judge_node(const ProbeAnswer& answer, const NodeWants& wants) {
  std::vector<Finding> out{judge_version(answer, wants)};
  if (out[0].health == Health::kBad) return out;  // another version's words mean what they meant to it
  const NodeProbe& probe = *answer.probe;
  if (!wants.folder.empty()) out.push_back(judge_path(probe, wants, wants.folder, "writable"));
  if (!wants.file.empty()) out.push_back(judge_file(probe, wants));
  if (!wants.rank.empty()) out.push_back(judge_path(probe, wants, wants.rank, "executable"));
  if (!wants.working.empty()) out.push_back(judge_working_folder(probe, wants));
  out.push_back(judge_clock(probe, wants));
  out.push_back(judge_declared(probe, wants));
  if (probe.shm_bytes)
    out.push_back(judge_space(wants.node + " /dev/shm", static_cast<double>(*probe.shm_bytes), kShmNeeded));
  return out;
}

std::optional<std::string> unfit_gpus(const NodeFacts& facts, const std::string& hardware,
                                      std::int64_t needed) {
  const auto declared = shape::find_hardware(hardware);
  if (!facts.gpus || !declared || declared->gpu.empty()) return std::nullopt;
  if (auto why = other_gpu(*declared, *facts.gpus)) return why;
  const auto found = std::ssize(*facts.gpus);
  if (found >= needed) return std::nullopt;
  return fmt::format(
      "trials use {} GPUs of a node ({}), and {} {} there: lower gpus_per_node in the grid, or ask for "
      "more (nvidia-smi, gres, CUDA_VISIBLE_DEVICES)",
      needed, hardware, found, found == 1 ? "is" : "are");
}

std::vector<Finding> judge_gpus(const NodeFacts& node, const RankFacts& rank) {
  const auto gpus = gpus_of(node);
  if (gpus.empty()) return {{"GPUs", Health::kGood, "none: trials with hardware cpu run here"}};
  std::vector<Finding> findings{judge_driver(node, rank)};
  std::set<std::string> seen;
  for (const auto& [name, capability, memory, clock, max_clock, errors] : gpus) {
    if (!seen.insert(name).second) continue;
    if (shape::has_code_for(rank.archs, capability))
      findings.push_back({name, Health::kGood, fmt::format("compute capability {}", capability)});
    else
      findings.push_back(
          {name, Health::kBad,
           fmt::format("this build has no code for compute capability {} (it has {}): its trials can be "
                       "predicted but not run",
                       capability.empty() ? "unknown" : capability, nlohmann::json(rank.archs).dump())});
  }
  return findings;
}

Finding judge_space(const std::string& what, double free_bytes, double needed_bytes) {
  const std::string detail = fmt::format("{:.1f} GiB free", free_bytes / (1 << 30));
  if (free_bytes >= needed_bytes) return {what, Health::kGood, detail};
  return {what, Health::kWarning,
          fmt::format("{}; {:.1f} GiB are advised", detail, needed_bytes / (1 << 30))};
}

run::JudgeNode node_judge(const std::vector<PlanEntry>& entries) {
  std::map<std::string, i64> declared;  // the most GPUs that a trial needs of a node, by hardware
  for (const PlanEntry& entry : entries) {
    if (!entry.admitted || entry.trial.hardware == "cpu") continue;
    i64& most = declared[entry.trial.hardware];
    const bool shares = entry.trial.backend == CommBackend::kGloo;  // its ranks may share a GPU
    most = std::max(most, shares ? 1 : entry.trial.gpus_per_node);
  }
  if (declared.empty()) return {};
  return [declared = std::move(declared)](const NodeRecord& node, const std::string& hardware,
                                          i64 gpus) -> std::optional<std::string> {
    for (const auto& [name, most] : declared) {
      if (!hardware.empty() && hardware != name) continue;
      if (auto why = unfit_gpus(node.facts, name, gpus > 0 ? std::min(gpus, most) : most)) return why;
    }
    return std::nullopt;
  };
}

}  // namespace sweep::driver
