#include "worker/agent/evidence/gpu_sampler.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/time.h"

namespace sweep::agent {
namespace {

std::optional<double> mean_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void add(const std::optional<double>& value, std::vector<double>& to) {
  if (value) to.push_back(*value);
}

void append(const std::vector<double>& values, std::vector<double>& to) {
  to.insert(to.end(), values.begin(), values.end());
}

}  // namespace

GpuSampler::GpuSampler(const Nvml& nvml, std::vector<int> gpus)
    : nvml_(nvml), gpus_(std::move(gpus)), thread_([this] { run(); }) {}

GpuSampler::~GpuSampler() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void GpuSampler::measuring(bool now) {
  const std::lock_guard lock(mutex_);
  if (now == measuring_) return;
  measuring_ = now;
  changed_.notify_all();
}

GpuSampler::Samples GpuSampler::samples() const {
  const std::lock_guard lock(mutex_);
  return kept_;
}

NodeLoad GpuSampler::load() const {
  const std::lock_guard lock(mutex_);
  return curve_.load();
}

void GpuSampler::run() {
  const double began_s = steady_s();
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const bool measured = measuring_;
    const bool changed = changed_.wait_for(lock, kPause, [&] { return stop_ || measuring_ != measured; });
    if (changed) continue;
    lock.unlock();
    Answer found = ask();
    lock.lock();
    if (stop_) continue;
    found.look.at_s = steady_s() - began_s;
    curve_.add(found.look);
    if (!measured || !measuring_) continue;
    append(found.samples.util, kept_.util);
    append(found.samples.power_w, kept_.power_w);
    append(found.samples.clock_mhz, kept_.clock_mhz);
    kept_.throttle |= found.samples.throttle;
  }
}

GpuSampler::Answer GpuSampler::ask() const {
  Answer out;
  std::vector<double> util, power, clock, memory;
  for (const int gpu : gpus_) {
    if (const auto value = nvml_.utilisation(gpu)) util.push_back(*value);
    if (const auto value = nvml_.power_w(gpu)) power.push_back(*value);
    if (const auto value = nvml_.sm_clock_mhz(gpu)) clock.push_back(*value);
    if (const auto value = nvml_.memory_used(gpu)) memory.push_back(static_cast<double>(*value));
    out.samples.throttle |= nvml_.throttle_reasons(gpu);
  }
  out.look.util = mean_of(util), out.look.power_w = mean_of(power);
  if (!memory.empty()) out.look.memory_bytes = *std::ranges::max_element(memory);
  add(out.look.util, out.samples.util);
  add(out.look.power_w, out.samples.power_w);
  add(mean_of(clock), out.samples.clock_mhz);
  return out;
}

}  // namespace sweep::agent
