// run_sweep: runs a sweep to its end. It keeps a few attempts queued in the inbox of each allocation, ingests the results,
// retries what may be retried, and ends when every trial has a final state, or with the reason why not. It owns no
// database and no process: Store and Launcher do. REQUIRES: the caller holds the sweep's lease.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/expected.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/run/clock.h"
#include "orchestrator/run/demand.h"
#include "orchestrator/run/observer.h"
#include "orchestrator/store/store.h"
#include "schema/attempt.h"

namespace sweep::run {

// Why a node, by its agent's record, is not the hardware that the sweep's trials declare; absent: it may be. hardware: of its
// allocation, empty for any. gpus: the most that a trial of the allocation uses of a node; 0: no bound is known.
using JudgeNode =
    std::function<std::optional<std::string>(const NodeRecord&, const std::string& hardware, i64 gpus)>;

struct Settings {
  i64 sweep = 0;
  MeasurePlan measure;
  std::filesystem::path spool_root;  // absolute; each allocation makes a folder of its own in it
  std::string launcher = "local";
  std::string start = "zygote";  // zygote | exec
  i64 slots = 1;  // CPU ranks or GPUs of a node at once; 1: every trial has its nodes to itself
  // Allocations by what trials need of nodes and hardware; else one allocation of this machine takes them all.
  bool allocate_per_shape = false;
  Bounds bounds;
  i64 ahead = 2;  // attempts in the inbox beyond one for each slot; more where trials are short
  // Allocations lost without one result, and more than are at work, before the circuit breaker opens.
  int max_consecutive_losses = 3;
  int max_consecutive_preemptions =
      10;  // the same of those that were preempted or cancelled long before their time was up
  bool exclude_slow_hosts = false;  // hosts that stood out in the look at the nodes get no more work
  double host_cooldown_s = 10;      // a host by which an allocation was lost is not asked for, for so long
  double quarantine_initial_s =
      300;  // one that is out for that is asked for again after so long, then twice that, ...
  std::optional<double> trial_seconds;  // bound on one attempt; absent: from the predicted time
  std::optional<double> hang_seconds;   // without progress, in any phase; absent: from the predicted time
  std::optional<double> gpu_hours;  // bound on allocated time x GPUs (or slots), over all runs of the sweep
  // A rehearsal on phantom GPUs: every rank of a trial of at most so many is started, of larger ones one for each
  // role. Absent: a real run.
  std::optional<i64> rehearse_most;
  JudgeNode judge_node{};  // asked before an allocation's first trial; empty: nodes are not judged
  std::map<std::string, double> usd_per_node_hour;  // by hardware, where the site has prices of its own
  std::optional<std::filesystem::path>
      status_file;  // rewritten atomically for watchers that cannot open the database
  bool leave_on_signal =
      false;  // this process is a job that its scheduler ends: what it holds is the next one's
  Clock* clock = &steady_clock();
};

enum class End {
  kDone,         // nothing left to run
  kStopped,      // `sweep stop`, or the GPU-hour limit
  kInterrupted,  // a signal
  kBroken,       // circuit breaker, or nothing that may be asked for fits: trials stay pending
  kLeft,         // a signal that ends this process alone; nothing was written since
  kSilent,       // of watch(): nothing is heard of who runs it
};

struct RunEnd {
  End end = End::kDone;
  std::string why;
};

using MakeLauncher =
    std::function<std::unique_ptr<launch::Launcher>(boost::asio::io_context&, launch::Launcher::Sink)>;

Expected<RunEnd> run_sweep(store::Store&, const Settings&, const MakeLauncher&, Observer&);

// Follows a sweep that another process runs, until it ends or a signal asks to stop watching.
Expected<RunEnd> watch(store::Store&, i64 sweep, Observer&);

// The snapshot `status`, `run` and `watch` show.
Expected<Snapshot> take_snapshot(store::Store&, i64 sweep, double elapsed_s);

// 0 when every trial has a final answer, else 1.
int exit_code_for(const store::Progress&);

}  // namespace sweep::run
