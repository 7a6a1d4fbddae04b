// Samples of load, OOM kills and GPU memory during an attempt.
#include "worker/agent/evidence/node_watch.h"

#include <fmt/format.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <utility>

#include "base/time.h"
#include "runtime/visible_gpus.h"
#include "worker/agent/evidence/proc_facts.h"

namespace sweep::agent {

namespace {

// CPU seconds a process has used, all its threads; none: it is gone.
std::optional<double> cpu_s(pid_t pid) {
  clockid_t clock = 0;
  timespec used{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return std::nullopt;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

std::optional<double> mean(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> deviation(const std::vector<double>& values) {  // the sample's: it divides by n - 1
  if (values.size() < 2) return std::nullopt;
  double squares = 0;
  for (const double value : values) squares += (value - *mean(values)) * (value - *mean(values));
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

// NVML's numbers of these slots' GPUs; empty: it does not know one of them.
std::vector<int> gpus_of(const Nvml& nvml, const std::vector<i64>& slots) {
  const auto visible = visible_gpus(nvml.count());
  std::vector<int> out;
  for (const i64 slot : slots) {
    const bool listed = slot < static_cast<i64>(visible.size());
    const auto gpu = listed ? nvml.named(visible[static_cast<std::size_t>(slot)]) : std::nullopt;
    if (!gpu) return {};
    out.push_back(*gpu);
  }
  return out;
}

}  // namespace

NodeWatch::NodeWatch(std::unique_ptr<Nvml> nvml) : nvml_(std::move(nvml)) {}
NodeWatch::~NodeWatch() = default;

std::string NodeWatch::devices_of(const std::vector<i64>& slots) const {
  const auto visible = visible_gpus(nvml_ ? nvml_->count() : 0);
  std::string out;
  for (const i64 slot : slots) {
    if (slot >= static_cast<i64>(visible.size())) return {};
    out += (out.empty() ? "" : ",") + visible[static_cast<std::size_t>(slot)];
  }
  return out;
}

std::string NodeWatch::without_gpu(const std::vector<i64>& slots) const {
  const auto gpus = visible_gpus(nvml_ ? nvml_->count() : 0).size();
  const i64 last = slots.empty() ? 0 : *std::max_element(slots.begin(), slots.end());
  if (gpus == 0 || last < static_cast<i64>(gpus)) return {};
  return fmt::format("slot {} needs a GPU of its own, but this node has only {}; make `slots` {} or fewer",
                     last + 1, gpus, gpus);
}

std::string cores_of_slot(i64 slot, i64 slots) {
  cpu_set_t mine;
  if (slot < 0 || slot >= slots || ::sched_getaffinity(0, sizeof mine, &mine) != 0) return {};
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(static_cast<std::size_t>(core), &mine)) cores.push_back(core);
  const auto count = static_cast<i64>(cores.size());
  std::string out;
  for (i64 i = slot * count / slots; count >= slots && i < (slot + 1) * count / slots; ++i)
    out += fmt::format("{}{}", out.empty() ? "" : ",", cores[static_cast<std::size_t>(i)]);
  return out;
}

NodeWatch::Span::Span(NodeWatch& node, const std::vector<i64>& slots, bool on_gpu, bool runs_command)
    : node_(node),
      on_gpu_(on_gpu),
      runs_command_(runs_command),
      oom_kills_before_(node.oom_.kills()),
      began_s_(steady_s()) {
  if (!on_gpu || !node_.nvml_) return;
  gpus_ = gpus_of(*node_.nvml_, slots);
  if (gpus_.empty()) return;
  sampler_ = std::make_unique<GpuSampler>(*node_.nvml_, gpus_);
  xids_ = node_.nvml_->xids_of(gpus_);
}

void NodeWatch::Span::sample(const std::vector<pid_t>& pids, bool measuring) {
  if (sampler_) sampler_->measuring(measuring);
  if (on_gpu_ || runs_command_) return;
  look_at_cpu(pids);
  if (measuring)
    sample_cpu(pids);
  else
    last_.reset();
}

void NodeWatch::Span::sample_cpu(const std::vector<pid_t>& pids) {
  if (const auto util = util_since(last_, pids)) util_.push_back(*util);
}

std::optional<double> NodeWatch::Span::util_since(std::optional<CpuPoint>& last,
                                                  const std::vector<pid_t>& pids) {
  const auto before = std::exchange(last, std::nullopt);
  CpuPoint now{steady_s(), 0};
  for (const pid_t pid : pids) {
    const auto used = cpu_s(pid);
    if (!used) return std::nullopt;
    now.cpu_s += *used;
  }
  last = now;
  if (!before || now.wall_s <= before->wall_s) return std::nullopt;
  return 100 * (now.cpu_s - before->cpu_s) / (now.wall_s - before->wall_s) / static_cast<double>(pids.size());
}

std::optional<double> NodeWatch::Span::largest_resident(const std::vector<pid_t>& pids) {
  std::optional<double> out;
  const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  for (const pid_t pid : pids) {
    if (pid <= 0) continue;
    const auto [at, added] = entries_.try_emplace(pid);
    if (added) at->second = entry_of(pid);
    if (at->second.empty()) continue;
    std::ifstream file("/proc/" + at->second + "/statm");
    double pages = 0, resident = 0;
    if (file >> pages >> resident) out = std::max(out.value_or(0), resident * page);
  }
  return out;
}

// The CPU is looked at as often as the GPUs are.
void NodeWatch::Span::look_at_cpu(const std::vector<pid_t>& pids) {
  const double now = steady_s();
  const double pause = std::chrono::duration<double>(GpuSampler::kPause).count();
  if (last_look_ && now - last_look_->wall_s < pause) return;
  const auto util = util_since(last_look_, pids);
  const auto memory = largest_resident(pids);
  if (util || memory) curve_.add({now - began_s_, util, memory, {}});
}

i64 NodeWatch::Span::oom_kills() const {
  return node_.oom_.kills() - oom_kills_before_;
}

bool NodeWatch::Span::oom_killed(i64 outside_pid) {
  return node_.oom_.kernel_named(outside_pid) || oom_kills() > 0;
}

std::string NodeWatch::Span::still_on_gpu(const std::vector<i64>& pids) const {
  for (const int gpu : gpus_)
    for (const i64 pid : node_.nvml_->processes(gpu))
      if (std::find(pids.begin(), pids.end(), pid) != pids.end())
        return fmt::format("GPU {} still holds memory of process {}, which has ended", gpu, pid);
  return {};
}

std::vector<GpuError> NodeWatch::Span::gpu_errors() {
  std::vector<GpuError> out;
  if (!xids_) return out;
  for (const auto& [gpu, xid] : xids_->take()) {
    GpuError& error = out.emplace_back();
    error.gpu = node_.nvml_->uuid(gpu);
    error.rank = std::find(gpus_.begin(), gpus_.end(), gpu) - gpus_.begin();
    error.xid = xid;
  }
  return out;
}

void NodeWatch::Span::report(AttemptEnd& end) const {
  const GpuSampler::Samples of_gpus = sampler_ ? sampler_->samples() : GpuSampler::Samples{};
  const std::vector<double>& util = on_gpu_ ? of_gpus.util : util_;
  end.util_mean = mean(util);
  end.util_sd = deviation(util);
  end.power_mean_w = mean(of_gpus.power_w);
  end.sm_clock_mhz = mean(of_gpus.clock_mhz);
  end.throttle = throttle_names(of_gpus.throttle);
  if (NodeLoad load = sampler_ ? sampler_->load() : curve_.load(); !load.at_s.empty())
    end.load.nodes = {std::move(load)};
}

}  // namespace sweep::agent
