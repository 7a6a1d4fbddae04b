#include "worker/agent/evidence/gpu_sampler.h"

#include <numeric>
#include <optional>
#include <utility>

namespace sweep::agent {
namespace {

void add_mean_of(const std::vector<double>& values, std::vector<double>& to) {
  if (values.empty()) return;
  to.push_back(std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()));
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

void GpuSampler::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    changed_.wait(lock, [this] { return stop_ || measuring_; });
    const bool interrupted = changed_.wait_for(lock, kPause, [this] { return stop_ || !measuring_; });
    if (interrupted) continue;
    lock.unlock();
    const Samples found = ask();
    lock.lock();
    if (stop_ || !measuring_) continue;
    append(found.util, kept_.util);
    append(found.power_w, kept_.power_w);
    append(found.clock_mhz, kept_.clock_mhz);
    kept_.throttle |= found.throttle;
  }
}

GpuSampler::Samples GpuSampler::ask() const {
  Samples out;
  std::vector<double> util, power, clock;
  for (const int gpu : gpus_) {
    if (const auto value = nvml_.utilisation(gpu)) util.push_back(*value);
    if (const auto value = nvml_.power_w(gpu)) power.push_back(*value);
    if (const auto value = nvml_.sm_clock_mhz(gpu)) clock.push_back(*value);
    out.throttle |= nvml_.throttle_reasons(gpu);
  }
  add_mean_of(util, out.util);
  add_mean_of(power, out.power_w);
  add_mean_of(clock, out.clock_mhz);
  return out;
}

}  // namespace sweep::agent
