// Samples of load, OOM kills and GPU memory during an attempt.
#include "worker/agent/node_watch.h"

#include <fmt/format.h>
#include <time.h>

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <sstream>

#include "worker/agent/clock.h"

namespace sweep::agent {

namespace {

constexpr std::uint64_t kBaselineSlack = 64ull << 20;  // drivers keep a little

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

std::optional<double> deviation(const std::vector<double>& values) {  // of a sample: n - 1
  if (values.size() < 2) return std::nullopt;
  double squares = 0;
  for (const double value : values) squares += (value - *mean(values)) * (value - *mean(values));
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

// The NVML indices of local ranks 0..n-1, through CUDA_VISIBLE_DEVICES where it lists numbers.
std::vector<int> devices_of(i64 ranks, int count) {
  std::vector<int> visible;
  const char* listed = std::getenv("CUDA_VISIBLE_DEVICES");
  std::istringstream items(listed == nullptr ? "" : listed);
  for (std::string item; std::getline(items, item, ',');)
    if (!item.empty() && item.find_first_not_of("0123456789") == std::string::npos)
      visible.push_back(std::atoi(item.c_str()));
  if (listed == nullptr)
    for (int i = 0; i < count; ++i) visible.push_back(i);
  std::vector<int> out;
  for (const int gpu : visible)
    if (gpu < count && static_cast<i64>(out.size()) < ranks) out.push_back(gpu);
  return out;
}

}  // namespace

NodeWatch::NodeWatch(std::unique_ptr<Nvml> nvml) : nvml_(std::move(nvml)) {}
NodeWatch::~NodeWatch() = default;

NodeWatch::Span::Span(NodeWatch& node, i64 ranks) : node_(node), oom_kills_before_(node.oom_.kills()) {
  if (!node_.nvml_) return;
  gpus_ = devices_of(ranks, node_.nvml_->count());
  for (const int gpu : gpus_) baseline_.push_back(node_.nvml_->memory_used(gpu).value_or(0));
}

void NodeWatch::Span::sample(const std::vector<pid_t>& pids, bool measuring) {
  if (!measuring) {
    last_.reset();
    return;
  }
  if (node_.nvml_ && !gpus_.empty())
    sample_gpus();
  else
    sample_cpu(pids);
}

void NodeWatch::Span::sample_cpu(const std::vector<pid_t>& pids) {
  CpuPoint now{steady_s(), 0};
  for (const pid_t pid : pids) {
    const auto used = cpu_s(pid);
    if (!used) return last_.reset();
    now.cpu_s += *used;
  }
  if (last_ && now.wall_s > last_->wall_s)
    util_.push_back(100 * (now.cpu_s - last_->cpu_s) / (now.wall_s - last_->wall_s) /
                    static_cast<double>(pids.size()));
  last_ = now;
}

void NodeWatch::Span::sample_gpus() {
  std::vector<double> util, power, clock;
  for (const int gpu : gpus_) {
    if (const auto value = node_.nvml_->utilisation(gpu)) util.push_back(*value);
    if (const auto value = node_.nvml_->power_w(gpu)) power.push_back(*value);
    if (const auto value = node_.nvml_->sm_clock_mhz(gpu)) clock.push_back(*value);
    throttle_ |= node_.nvml_->throttle_reasons(gpu);
  }
  if (const auto value = mean(util)) util_.push_back(*value);
  if (const auto value = mean(power)) power_w_.push_back(*value);
  if (const auto value = mean(clock)) clock_mhz_.push_back(*value);
}

i64 NodeWatch::Span::oom_kills() const {
  return node_.oom_.kills() - oom_kills_before_;
}

bool NodeWatch::Span::oom_killed(i64 outside_pid) {
  return node_.oom_.kernel_named(outside_pid) || oom_kills() > 0;
}

std::string NodeWatch::Span::not_at_baseline() const {
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    const auto used = node_.nvml_->memory_used(gpus_[i]);
    if (used && *used > baseline_[i] + kBaselineSlack)
      return fmt::format("GPU {} holds {} bytes, {} before the attempt", gpus_[i], *used, baseline_[i]);
  }
  return {};
}

void NodeWatch::Span::report(AttemptEnd& end) const {
  end.util_mean = mean(util_);
  end.util_sd = deviation(util_);
  end.power_mean_w = mean(power_w_);
  end.sm_clock_mhz = mean(clock_mhz_);
  end.throttle = throttle_names(throttle_);
}

}  // namespace sweep::agent
