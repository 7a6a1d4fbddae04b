// NodeWatch: what the agent observes of its node beside what ranks report: OOM kills of the kernel, the load
// while measuring, GPU memory that an ended rank still holds. It owns counters and NVML, never a process.
#pragma once
#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schema/records.h"
#include "worker/agent/evidence/gpu_sampler.h"
#include "worker/agent/evidence/load_curve.h"
#include "worker/agent/evidence/nvml.h"
#include "worker/agent/evidence/oom_watch.h"

namespace sweep::agent {

class NodeWatch {
 public:
  // null: no GPU.
  explicit NodeWatch(std::unique_ptr<Nvml> nvml);
  ~NodeWatch();

  // The observation of one attempt.
  class Span {
   public:
    // on_gpu: the load is that of the slots' GPUs, and not known where NVML does not know them; else the
    // ranks' own of the processor, and not known of a command, which is a child of its rank.
    Span(NodeWatch& node, const std::vector<i64>& slots, bool on_gpu, bool runs_command);
    // Called at every look; the samples behind the means are taken only between two looks that both saw every rank
    // measuring.
    void sample(const std::vector<pid_t>& pids, bool measuring);
    // Whether the kernel names it, or counted an OOM kill since the span began.
    bool oom_killed(i64 outside_pid);
    i64 oom_kills() const;
    // A GPU that still holds memory of one of these processes, which have ended; empty: none does. Other
    // processes are not looked at.
    std::string still_on_gpu(const std::vector<i64>& pids) const;
    // Errors that the driver has reported for these GPUs since the span began or this was asked last. The
    // rank is that of the slot that the GPU is of: its place among them.
    std::vector<GpuError> gpu_errors();
    // Sets util_mean, util_sd, power_mean_w, sm_clock_mhz, throttle and load.
    void report(AttemptEnd& end) const;

   private:
    void sample_cpu(const std::vector<pid_t>& pids);
    void look_at_cpu(const std::vector<pid_t>& pids);
    // The largest resident memory of the processes that are there; absent: none is.
    std::optional<double> largest_resident(const std::vector<pid_t>& pids);
    NodeWatch& node_;
    bool on_gpu_, runs_command_;
    i64 oom_kills_before_;
    // The attempt's GPUs, by NVML's numbers.
    std::vector<int> gpus_;
    std::unique_ptr<GpuSampler> sampler_;
    std::unique_ptr<Nvml::Xids> xids_;
    struct CpuPoint {
      double wall_s = 0, cpu_s = 0;
    };
    // Percent of a core for each process since that point, which becomes now; absent: a process is gone, or no
    // time has passed.
    static std::optional<double> util_since(std::optional<CpuPoint>& last, const std::vector<pid_t>& pids);
    std::optional<CpuPoint> last_, last_look_;
    std::vector<double> util_;
    double began_s_;
    LoadCurve curve_;
    // The names of the ranks in /proc; empty: not listed there.
    std::map<pid_t, std::string> entries_;
  };
  // slots: of the node, those the attempt holds.
  Span begin(const std::vector<i64>& slots, bool on_gpu, bool runs_command = false) {
    return Span(*this, slots, on_gpu, runs_command);
  }
  // These slots' GPUs as CUDA_VISIBLE_DEVICES names them; empty: the node has fewer.
  std::string devices_of(const std::vector<i64>& slots) const;
  // Why these slots have no GPUs of their own on a node that has some; empty: they have, or there is none.
  std::string without_gpu(const std::vector<i64>& slots) const;
  Nvml* nvml() const { return nvml_.get(); }

 private:
  std::unique_ptr<Nvml> nvml_;
  OomWatch oom_;
};

// The cores of one slot of several, of those this process may use: numbers with commas; empty: there are
// fewer cores than slots, and no slot has any alone.
std::string cores_of_slot(i64 slot, i64 slots);

}  // namespace sweep::agent
