// What ranks and agents testify about an attempt. Raw measurements only: nothing here is derived.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schema/outcome.h"
#include "schema/progress.h"
#include "schema/trial.h"

namespace sweep {

// One optimizer step of one rank. Times are spans of the steady clock in nanoseconds.
struct StepSample {
  i64 repeat = 0;
  i64 step = 0;         // 0-based within the repeat, warm-up included
  bool warmup = false;  // stored and marked, never averaged in
  i64 step_ns = 0;
  i64 forward_ns = 0;
  i64 backward_ns = 0;
  i64 optimizer_ns = 0;
  std::optional<i64> exposed_comm_ns;
  i64 tokens = 0;         // of this rank
  double loss = 0;        // mean over this rank's tokens of the step
  i64 alloc_retries = 0;  // in this step
  bool operator==(const StepSample&) const = default;
};

// What a rank sent in one step through the groups of one strategy.
struct SentTraffic {
  std::string strategy;  // dp, tp, pp, cp, ep; world: what all ranks agree on
  i64 calls = 0;         // collectives and sends it took part in
  i64 bytes = 0;         // by the ring algorithms' lower bound (docs/metrics.md)
  bool operator==(const SentTraffic&) const = default;
};

// A rank's own testimony, written by the rank to its file (temp, sync, rename) before it exits.
struct RankRecord {
  i64 attempt = 0;
  i64 rank = 0;
  Outcome outcome = Outcome::kCrash;  // ok, oom, invalid, crash, unsupported
  std::optional<OomKind> oom_kind;
  std::optional<Phase> phase;  // where it ended
  std::string part;  // of an oom, what was going on: build, forward, backward, optimizer, communication
  i64 step = 0;
  std::string message;  // of anything but ok
  std::optional<i64> oom_asked_bytes;
  i64 ended_unix_ns = 0;       // to find the earliest; peers fail later with consequential errors
  bool consequential = false;  // a communication error caused by a peer's end
  std::vector<StepSample> samples;
  std::optional<i64> startup_ns;  // process start to the first measured step
  std::optional<i64> peak_allocated_bytes, peak_reserved_bytes, baseline_bytes;
  std::optional<i64> alloc_retries, ooms;
  std::optional<i64> host_peak_rss_bytes;
  std::optional<double> cpu_percent;  // process CPU over the timed steps
  std::vector<SentTraffic> sent;      // of the last step; a strategy of one rank is not listed
  std::optional<double> expert_load;  // busiest expert's rows over the mean; mean over the timed steps
  std::optional<i64> skipped_steps;   // timed steps without an update; absent without a loss scale
  std::optional<double> loss_scale;   // after the last step
  // It ran on a phantom GPU (docs/phantom.md), whose kernels compute nothing.
  bool phantom = false;
  // From NCCL's log; absent: nothing went between nodes, or the log does not tell.
  std::optional<Transport> transport;
  // JSON object: what was really used (attention, backend, device, ...)
  std::string effective;
};

// The agent's testimony on how a rank process ended.
struct RankExit {
  i64 attempt = 0;
  i64 rank = 0;
  i64 pid = 0;
  std::optional<int> exit_code;
  std::optional<int> signal;
  bool killed_by_agent = false;  // ended by us (peer failed, hang, cancel), not by itself
  bool oom_killed = false;       // kernel or cgroup OOM kill recognised
  i64 ended_unix_ns = 0;
  std::string log_tail;  // last lines of its log, when it did not end well
};

// An error of one of the attempt's GPUs, as its driver reported it meanwhile.
struct GpuError {
  std::string host;         // the node
  std::string gpu;          // UUID
  std::optional<i64> rank;  // that computes on it
  i64 xid = 0;              // schema/xid.h
  bool operator==(const GpuError&) const = default;
};

// What the agent says when an attempt has ended: its last message on it.
struct AttemptEnd {
  i64 attempt = 0;
  EndCause cause = EndCause::kDone;
  // JSON: of a hang, each rank's phase, step, seconds without progress, stack where possible.
  std::string evidence;
  // No process of the attempt is left, and device memory is at its baseline.
  bool clean = true;
  // Of an unclean one: what was left, for people, and the nodes of the allocation on which it was left.
  std::string cleanup_failure;
  std::vector<i64> unclean_nodes;
  // Sampled while measuring.
  std::optional<double> util_mean, util_sd, power_mean_w, sm_clock_mhz;
  std::string throttle;
  std::vector<GpuError> gpu_errors;
  // Other attempts that ran on its nodes at the same time.
  i64 neighbours = 0;
  i64 started_unix_ns = 0;
  i64 ended_unix_ns = 0;
};

// Facts of the machine and the build, once per allocation. Values are an allow-list; keys are stable.
struct NodeRecord {
  i64 node = 0;
  std::string host;
  std::string facts;  // JSON object: kernel, cpu, cores, memory_bytes, gpus, driver, cuda, nccl, libtorch,
                      // build, clocks
};

}  // namespace sweep
