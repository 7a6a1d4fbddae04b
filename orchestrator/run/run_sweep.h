// run_sweep: runs a sweep to its end. It keeps a few attempts queued in the inbox of each allocation, ingests
// the results, retries what may be retried, and ends when every trial has a final state, or with the reason
// why not. It owns no database and no process: Store and Launcher do. REQUIRES: the caller holds the sweep's
// lease.
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
#include "schema/strategy.h"

namespace sweep::run {

// Why a node is not the hardware that the sweep's trials declare, by its agent's record; nullopt: it may be.
// hardware: of its allocation, empty for any. gpus: the most that a trial of the allocation uses of a node;
// 0: not known.
using JudgeNode =
    std::function<std::optional<std::string>(const NodeRecord&, const std::string& hardware, i64 gpus)>;

struct Settings {
  i64 sweep = 0;
  MeasurePlan measure;
  // Absolute; each allocation has a folder in it.
  std::filesystem::path spool_root;
  std::string launcher = "local";
  // How ranks are started: "zygote" or "exec".
  RankStart start = RankStart::kZygote;
  // CPU ranks or GPUs of a node that are busy at once; 1: every trial has its nodes to itself.
  i64 slots = 1;
  // Allocations by the nodes and the hardware that trials need; else one allocation of this machine takes
  // them all.
  bool allocate_per_shape = false;
  Bounds bounds;
  // Attempts in the inbox beyond one for each slot; more where trials are short.
  i64 ahead = 2;
  // Allocations in a row that were lost without a result, more than are at work, at which the run ends.
  int max_consecutive_losses = 3;
  // The same for those that were preempted or cancelled long before their time was up.
  int max_consecutive_preemptions = 10;
  // Hosts that were slower than the others when they were measured get no more work.
  bool exclude_slow_hosts = false;
  // Seconds before a host that lost an allocation is requested again.
  double host_cooldown_s = 10;
  // First quarantine of a host that keeps losing allocations; it doubles each time.
  double quarantine_initial_s = 300;
  // The trials that are run, and their order.
  Strategy strategy;
  // Bound on one attempt; nullopt: from the predicted time.
  std::optional<double> trial_seconds;
  // The longest without progress, in any phase; nullopt: from the predicted time.
  std::optional<double> hang_seconds;
  // The same before the first step is done; nullopt: hang_seconds.
  std::optional<double> start_seconds;
  // Bound on allocated time x GPUs (or slots), over all runs of the sweep.
  std::optional<double> gpu_hours;
  // The limit in USD that it was computed from; nullopt: it was given in GPU-hours.
  std::optional<double> usd;
  // The limit is that of the site profile: no option raises it.
  bool limit_of_site = false;
  // A rehearsal on phantom GPUs: up to this many ranks, all are started; above it, one per role. nullopt: a
  // real run.
  std::optional<i64> rehearse_most;
  // Called before an allocation's first trial; empty: nodes are not judged.
  JudgeNode judge_node{};
  // The site's own prices; the key is the hardware.
  std::map<std::string, double> usd_per_node_hour;
  // The folder where checkpoints are written; empty: the folder for temporary files of each node.
  std::string checkpoint_folder;
  // Rewritten atomically for watchers that cannot open the database.
  std::optional<std::filesystem::path> status_file;
  // This process is a job that its scheduler ends: the next one takes over what it holds.
  bool leave_on_signal = false;
  Clock* clock = &steady_clock();
};

enum class End {
  // Nothing is left to run.
  kDone,
  // `sweep stop`, or the GPU-hour limit.
  kStopped,
  // A signal.
  kInterrupted,
  // Too many lost allocations, or nothing that can be requested fits: trials stay pending.
  kBroken,
  // A signal that ends this process alone; nothing was written since.
  kLeft,
  // watch() only: the process that runs the sweep is gone without releasing it, or silent.
  kSilent,
};

// A limit that is used up: until it is raised, the next run would end at once.
enum class Limit { kGpuHours, kUsd, kSite };

struct RunEnd {
  End end = End::kDone;
  std::string why;
  // The limit that ended the run.
  std::optional<Limit> used_up{};
};

using MakeLauncher =
    std::function<std::unique_ptr<launch::Launcher>(boost::asio::io_context&, launch::Launcher::Sink)>;

Expected<RunEnd> run_sweep(store::Store&, const Settings&, const MakeLauncher&, Observer&);

// Asks the scheduler about the job that a holder is part of.
using AskJob = std::function<store::JobWord(const store::LeaseHolder&)>;

// The command to type where the process that runs a sweep stands still (store::stands_still()).
std::string still_holder_advice(const store::LeaseHolder&);

// Follows a sweep that another process runs, until it ends or a signal asks to stop watching. A holder that stands still
// is a note of the observer. `ask` is called
// now and then while no heartbeat comes from a holder that is part of a job.
Expected<RunEnd> watch(store::Store&, i64 sweep, Observer&, const AskJob& ask);

// The snapshot `status`, `run` and `watch` show.
Expected<Snapshot> take_snapshot(store::Store&, i64 sweep, double elapsed_s);
// The snapshot for watchers that cannot open the database (another host of a network filesystem). The file is
// replaced atomically; a failure is not worth ending a run for and is dropped.
void write_status_file(const std::filesystem::path&, const Snapshot&);

// 0 when every trial has a final answer, else 1.
int exit_code_for(const store::Progress&);

}  // namespace sweep::run
