// GpuSampler: load, power and clock of an attempt's GPUs while its ranks measure, and their load and memory from its
// start on. It asks NVML on a thread of its own: some drivers take milliseconds for an answer, and the agent's event loop must not wait for them.
// It owns that thread and the samples; NVML must outlive it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "worker/agent/evidence/load_curve.h"
#include "worker/agent/evidence/nvml.h"

namespace sweep::agent {

class GpuSampler {
 public:
  struct Samples {
    // One value a sample: the mean over the GPUs.
    std::vector<double> util, power_w, clock_mhz;
    std::uint64_t throttle = 0;
  };
  // NVML averages utilisation over up to this time before the question, so a shorter pause tells nothing new.
  static constexpr auto kPause = std::chrono::milliseconds(100);

  GpuSampler(const Nvml& nvml, std::vector<int> gpus);
  ~GpuSampler();
  GpuSampler(const GpuSampler&) = delete;
  GpuSampler& operator=(const GpuSampler&) = delete;

  // These samples are taken once the ranks have measured for a whole pause, and only if they still do when NVML has
  // answered.
  void measuring(bool);
  Samples samples() const;
  // All of its time, measuring or not.
  NodeLoad load() const;

 private:
  struct Answer {
    Samples samples;
    LoadLook look;
  };
  void run();
  Answer ask() const;

  const Nvml& nvml_;
  const std::vector<int> gpus_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool measuring_ = false, stop_ = false;
  Samples kept_;
  LoadCurve curve_;
  std::thread thread_;
};

}  // namespace sweep::agent
