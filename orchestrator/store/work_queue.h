// WorkQueue: what is to be run, the allocations that run it, and the attempts that are under way.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "schema/attempt.h"
#include "schema/outcome.h"
#include "schema/plan_entry.h"

namespace sweep::store {

struct StoreFile;

struct PendingTrial {
  PlanEntry entry;
  i64 attempts = 0;        // earlier attempts that count (not infrastructure)
  i64 infra_attempts = 0;  // earlier attempts that failed for infrastructure reasons
};

// The trials that an allocation can take.
struct Fit {
  i64 nodes = 1;          // most nodes
  std::string hardware;   // exactly
  i64 gpus_per_node = 1;  // most GPUs of a node
  bool whole = false;     // all of its nodes
};
// Pending trials that need the same.
struct Demand {
  std::string hardware;
  i64 nodes = 1, gpus_per_node = 1, trials = 0;
  double predicted_s = 0, longest_s = 0;  // one after another; the longest one
  i64 unpredicted = 0;
};

// A pending trial that a strategy does not run, or only to check that (schema/audit.h).
struct NotRun {
  std::string trial_id, rule, reason;
  bool audited = false;
};

struct GpuSeconds {
  double ended = 0, open = 0;  // time of allocations that have ended; of open ones, until now
};

// A host that gets no work of a sweep in any run by this launcher.
struct ExcludedHost {
  std::string launcher, host, why;
};

struct AttemptRow {
  i64 id = 0;
  std::string trial_id;
  State state = State::kPending;
  Attempt attempt;
  std::string allocation;
};
struct AllocationRow {
  std::string id, spool, where, launcher;
  i64 incarnation = 1;
  std::uint64_t offset = 0;
  bool ended = false;
  i64 pid = 0;
  i64 gpus = 0;       // GPUs, or slots, of all its nodes; 0: it has not started
  double held_s = 0;  // since it started, by the clocks of those who wrote it down; 0: it has not
};
// The resources that an allocation holds from its start on.
struct Held {
  i64 nodes = 1, gpus = 1;  // GPUs, or slots, of each node
  double since_s = 0;       // it started so long ago
};

// When an allocation ended; nothing known: now.
struct AllocationEnd {
  // The seconds since its start by this process's steady clock, which does not jump.
  std::optional<double> held_s{};
  // The last time we heard from it. For an allocation whose end was not observed, this is its latest possible end.
  std::optional<i64> last_message_unix_ns{};
};

class WorkQueue {
 public:
  explicit WorkQueue(StoreFile& file) : file_(file) {}

  // Admitted trials that are not under way and have no final answer by StoreDependencies::decide_trial, in
  // plan order.
  Expected<std::vector<PendingTrial>> pending(i64 sweep, i64 limit);
  // Only what fits, the largest first: smaller ones fit elsewhere too.
  Expected<std::vector<PendingTrial>> pending(i64 sweep, i64 limit, const Fit&);
  Expected<std::vector<Demand>> demand(i64 sweep);  // demand of everything that is pending
  // These trials, where they are pending, are pruned with this rule and reason, until the plan is stored
  // anew; audited ones stay pending with them. The ids of those that were pending.
  Expected<std::vector<std::string>> rule_out(i64 sweep, std::span<const NotRun>);
  // Pending trials that another sweep of this database answered (ok, oom or unsupported) with the same build
  // and measuring plan get that answer, unless it was stopped early; results of the hardware "cpu" count only from `host`, unless it is
  // empty. How many, and the sweeps they come from.
  struct Reused {
    i64 trials = 0;
    std::vector<std::string> sweeps;
  };
  Expected<Reused> reuse(i64 sweep, const std::string& build, const std::string& host);
  // resume --retry: final answers of these outcomes become pending again; they stay visible until the new one
  // is there. What was concluded from them is open again too: the rule `history` stands on trials that ran out
  // of memory, `recompute` on those that ended ok. trial: its answer alone, and nothing that was concluded.
  Expected<void> reopen(i64 sweep, std::span<const Outcome>, const std::optional<std::string>& trial = {});

  Expected<AllocationRow> create_allocation(i64 sweep, const std::string& launcher,
                                            const std::filesystem::path& spool_root);
  // The first start counts: one that is taken over has started already.
  Expected<void> allocation_started(const std::string& id, const std::string& where, i64 pid,
                                    const Held& held);
  Expected<void> end_allocation(const std::string& id, const std::string& reason, const AllocationEnd& = {});
  // Allocated time x nodes x GPUs (or slots), over all runs of the sweep.
  Expected<GpuSeconds> gpu_seconds(i64 sweep);
  Expected<std::vector<AllocationRow>> open_allocations(i64 sweep);  // not ended: left by a crash
  Expected<std::vector<AllocationRow>> allocations(i64 sweep);       // every one there was

  Expected<void> exclude_host(i64 sweep, const ExcludedHost&);
  Expected<std::vector<ExcludedHost>> excluded_hosts(i64 sweep);
  // Error: the host is not excluded.
  Expected<void> readmit_host(i64 sweep, const std::string& host);

  // Committed, state posted, when it returns: append the inbox line afterwards. Needs the sweep's lease.
  Expected<Attempt> begin_attempt(i64 sweep, const std::string& allocation, const Attempt& without_id);
  Expected<std::vector<AttemptRow>> unfinished_attempts(const std::string& allocation);
  Expected<std::vector<AttemptRow>> attempts(i64 sweep, const std::string& trial_id);

 private:
  StoreFile& file_;
};

}  // namespace sweep::store
