// NodeWatch: what the agent observes of its node beside the ranks' own words: OOM kills of the kernel, the
// load while measuring, GPU memory back at its baseline. It owns counters and NVML, never a process.
#pragma once
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schema/records.h"
#include "worker/agent/nvml.h"
#include "worker/agent/oom_watch.h"

namespace sweep::agent {

class NodeWatch {
 public:
  explicit NodeWatch(std::unique_ptr<Nvml> nvml);  // null: no GPU
  ~NodeWatch();

  // What is observed during one attempt.
  class Span {
   public:
    Span(NodeWatch& node, const std::vector<i64>& slots);
    // Called at every look; samples are taken only between two looks that both saw every rank measuring.
    void sample(const std::vector<pid_t>& pids, bool measuring);
    bool oom_killed(
        i64 outside_pid);  // whether the kernel names it, or counted an OOM kill since the span began
    i64 oom_kills() const;
    std::string not_at_baseline() const;  // which GPU still holds memory; empty: none
    void report(AttemptEnd& end) const;   // util_mean, util_sd, power_mean_w, sm_clock_mhz, throttle

   private:
    void sample_cpu(const std::vector<pid_t>& pids);
    void sample_gpus();
    NodeWatch& node_;
    i64 oom_kills_before_;
    std::vector<int> gpus_;                // NVML indices of the attempt's devices
    std::vector<std::uint64_t> baseline_;  // bytes used before it
    struct CpuPoint {
      double wall_s = 0, cpu_s = 0;
    };
    std::optional<CpuPoint> last_;
    std::vector<double> util_, power_w_, clock_mhz_;
    std::uint64_t throttle_ = 0;
  };
  // slots: of the node, those the attempt holds.
  Span begin(const std::vector<i64>& slots) { return Span(*this, slots); }
  // These slots' GPUs as CUDA_VISIBLE_DEVICES names them; empty: the node has fewer.
  std::string devices_of(const std::vector<i64>& slots) const;
  // Why these slots have no GPUs of their own on a node that has some; empty: they have, or there is none.
  std::string without_gpu(const std::vector<i64>& slots) const;
  Nvml* nvml() const { return nvml_.get(); }

 private:
  std::unique_ptr<Nvml> nvml_;
  OomWatch oom_;
};

// The cores of one slot of several, of those this process may use: numbers with commas; empty: there are fewer
// cores than slots, and nobody has any alone.
std::string cores_of_slot(i64 slot, i64 slots);

}  // namespace sweep::agent
