// Store: every result in one SQLite file. One writer per sweep, holding its lease; any number of readers.
// Migrations go forward only: an older file is upgraded after a backup, a newer one is refused.
// REQUIRES: one thread at a time. Each writing call is one transaction: after an error nothing of it was
// stored.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/expected.h"
#include "base/time.h"
#include "orchestrator/store/holder.h"
#include "orchestrator/store/trial_history.h"
#include "schema/attempt.h"
#include "schema/imported_row.h"
#include "schema/plan_entry.h"
#include "schema/provenance.h"
#include "schema/records.h"
#include "schema/result.h"
#include "schema/result_columns.h"
#include "schema/result_row.h"

namespace sweep::store {

enum class Mode { kReadWrite, kReadOnly };

struct SweepRow {
  i64 id = 0;
  std::string name, question, grid_path, grid_text, options_json;  // options: launch kind, measure, limits
  i64 created_unix_ns = 0;
};

struct SyncCounts {
  i64 added = 0, kept = 0, retired = 0, reopened = 0, pruned = 0;
};

struct ImportCounts {
  i64 trials = 0;    // distinct configurations of the file
  i64 added = 0;     // results that were not there yet
  i64 known = 0;     // results that were there already
  i64 repeated = 0;  // configurations measured more than once; the last one counts
};

// What a merge brought; all zero but for `known` and `unfinished`: it changed nothing.
struct MergeCounts {
  i64 sweeps = 0, trials = 0, attempts = 0, events = 0;  // new here
  i64 replaced = 0;                // answered only by the machine's fault here, by testimony there
  i64 known = 0;                   // attempts that were here already
  i64 unfinished = 0;              // attempts without a verdict there: left out
  std::vector<std::string> notes;  // what of the other file does not agree with this one
};

struct PendingTrial {
  PlanEntry entry;
  i64 attempts = 0;        // earlier attempts that count (not infrastructure)
  i64 infra_attempts = 0;  // earlier attempts that failed for infrastructure reasons
};

// Which trials an allocation can take.
struct Fit {
  i64 nodes = 1;          // at most
  std::string hardware;   // exactly
  i64 gpus_per_node = 1;  // at most
};
// Pending trials that need the same.
struct Demand {
  std::string hardware;
  i64 nodes = 1, gpus_per_node = 1, trials = 0;
  double predicted_s = 0, longest_s = 0;  // one after another; the longest one
  i64 unpredicted = 0;
};

// What is left to run of a sweep, how long the last trials took, and on what.
struct Workload {
  struct Group {  // by nodes
    i64 nodes = 1, trials = 0, running = 0;
    double predicted_s = 0;
    i64 unpredicted = 0;
  };
  struct Done {
    std::optional<double> predicted_s;
    double started_s = 0, ended_s = 0;  // by one allocation's clock
    i64 nodes = 1;
    std::string allocation;
    double took_s() const { return ended_s - started_s; }
  };
  std::vector<Group> to_do;
  std::vector<Done> done;                           // that were measured: the last ones, newest first
  std::vector<std::pair<std::string, i64>> open{};  // allocations at work, with their nodes
};

struct GpuSeconds {
  double ended = 0, open = 0;  // of allocations that have ended; of those that have not, until now
};

struct Progress {
  i64 total = 0, pending = 0, running = 0, retired = 0;
  std::vector<std::pair<Outcome, i64>> by_outcome;  // final results of trials in the plan, pruned included
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
  double held_s = 0;  // since it started, by the clocks of those who wrote it down; 0: it has not
};
// What an allocation holds from its start on.
struct Held {
  i64 nodes = 1, gpus = 1;  // GPUs, or slots, of each node
  double since_s = 0;       // it started so long ago
};

// What one stretch of outbox bytes taught; applied with the new read offset in one transaction.
struct IngestBatch {
  std::string allocation;
  std::uint64_t new_offset = 0;
  std::vector<RankRecord> rank_records;
  std::vector<RankExit> rank_exits;
  std::vector<AttemptEnd> ends;
  std::vector<NodeRecord> nodes;
  std::vector<std::pair<i64, i64>> started;  // attempt id, unix ns
  std::vector<Result> results;               // verdicts reached by this stretch
};

// All that was testified about one attempt and stored so far: what a verdict reached after a crash needs.
struct StoredTestimony {
  std::vector<RankRecord> records;  // by rank, samples included
  std::vector<RankExit> exits;      // by rank
  std::optional<AttemptEnd> end;
};

using sweep::ResultRow;
using sweep::Table;
using sweep::Value;

// What a person's own SQL may take. `stop` is asked while it runs: true ends it.
struct QueryOptions {
  std::vector<std::pair<std::string, std::string>> values =
      {};  // of :name in the SQL; numbers are bound as numbers
  std::function<bool()> stop = {};
  i64 most_rows = 10'000'000;
  i64 most_bytes = i64{256} << 20;  // of the whole answer
  i64 most_heap = 0;                // of SQLite in the whole process: values, sorting, caches; 0: no bound
};
inline constexpr std::string_view kStopped = "stopped before the answer was complete";

// The outside world as the store sees it; empty members are the real thing. Tests replace them.
struct StoreDependencies {
  std::function<bool(const std::filesystem::path&)> network_filesystem;
  std::function<i64()> now_unix_ns;  // wall clock
  std::function<double()> steady_s;  // never jumps
  std::function<std::optional<i64>(i64 pid)>
      living_pid_start;             // start time of a living process (clock ticks after boot)
  std::optional<LeaseHolder> self;  // who takes leases
  DecideTrial decide_trial;         // needed by who stores results; empty: such calls are refused
  int busy_timeout_ms = 10000;      // twelve times as long for who holds a lease
  i64 most_loose = 1000;            // entries outside the packed columns; more of them are packed
  bool durable = true;  // false: a simulation's: it need not outlive a crash, and nobody else opens it
  std::optional<i64> most_pages;  // the file may not grow beyond; absent: what the disk holds
};

class Store {
 public:
  static Expected<std::unique_ptr<Store>> open(const std::filesystem::path&, Mode);
  static Expected<std::unique_ptr<Store>> open(const std::filesystem::path&, Mode, StoreDependencies);
  virtual ~Store() = default;

  // Sweeps.
  // By name; updates question, grid, options. While another process holds the sweep's lease nothing is
  // updated: the stored row comes back, so that a second `sweep run` can watch.
  virtual Expected<SweepRow> ensure_sweep(const SweepRow&) = 0;
  virtual Expected<std::vector<SweepRow>> sweeps() = 0;
  virtual Expected<SweepRow> find_sweep(
      const std::optional<std::string>& name) = 0;  // absent: the latest; error lists them
  // Adds new trials, keeps those known, retires those gone, takes back those that return, updates the plan's
  // decisions. No result is ever deleted: a trial that was measured shows its result even when the plan
  // prunes it now.
  virtual Expected<SyncCounts> sync_plan(i64 sweep, std::span<const PlanEntry>, const MeasurePlan&) = 0;

  // Results that somebody brought, into the sweep of this name, which is made if need be; one that was run here
  // takes none. One transaction. Again the same rows change nothing; rows of a configuration whose earlier results
  // are the same only add what is new. Nothing is retired.
  virtual Expected<ImportCounts> import_rows(const SweepRow&, std::span<const ImportedRow>) = 0;

  // Joins other databases into this one, all of them in one transaction: sweeps by name, trials by id, attempts by
  // allocation, trial and place among that allocation's attempts of the trial, so that the same file again changes
  // nothing. What this database says of a sweep or a plan stands. The other files are only read (an older one is
  // upgraded as a private copy); a sweep that is being run, here or there, is refused.
  virtual Expected<std::vector<MergeCounts>> merge(std::span<const std::filesystem::path>) = 0;

  // Lease: who runs this sweep. take: the holder that keeps us from it; absent: taken. A holder that is known to be gone is
  // taken over (holder.h), a silent one only when the claim says so and it was watched. Every writing call on a sweep
  // fails once this store's lease on it was lost, or while another holds it. Taking the lease makes trials whose only
  // answer is node_lost or cancelled pending again, and withdraws an old stop request.
  virtual Expected<std::optional<LeaseHolder>> take_lease(i64 sweep, const Claim& claim) = 0;
  Expected<std::optional<LeaseHolder>> take_lease(i64 sweep) { return take_lease(sweep, Claim{}); }
  virtual Expected<std::optional<LeaseHolder>> lease(i64 sweep,
                                                     const Claim& known) = 0;  // absent: none, or gone
  Expected<std::optional<LeaseHolder>> lease(i64 sweep) { return lease(sweep, Claim{}); }
  // Another process has taken the lease that this store held.
  virtual bool lease_lost(i64 sweep) const = 0;
  // Does `act` while nobody can take the lease from us; refuses without the lease. `act` must not use the store.
  virtual Expected<void> while_held(i64 sweep, const std::function<Expected<void>()>& act) = 0;
  virtual Expected<void> beat(i64 sweep) = 0;  // error: the lease was lost
  virtual Expected<void> release_lease(i64 sweep) = 0;
  // Stop requests reach the lease holder through the database.
  virtual Expected<void> request_stop(i64 sweep, bool now) = 0;
  virtual Expected<std::optional<bool>> stop_requested(i64 sweep) = 0;  // absent: no; else `now`

  // Work.
  // Admitted trials that are not under way and have no final answer by StoreDependencies::decide_trial, in plan order.
  virtual Expected<std::vector<PendingTrial>> pending(i64 sweep, i64 limit) = 0;
  // Only what fits, the largest first: smaller ones fit elsewhere too.
  virtual Expected<std::vector<PendingTrial>> pending(i64 sweep, i64 limit, const Fit&) = 0;
  virtual Expected<std::vector<Demand>> demand(i64 sweep) = 0;  // of all that is pending
  // resume --retry: final answers of these outcomes become pending again; they stay visible until the new one
  // is there.
  virtual Expected<void> reopen(i64 sweep, std::span<const Outcome>) = 0;
  virtual Expected<AllocationRow> create_allocation(i64 sweep, const std::string& launcher,
                                                    const std::filesystem::path& spool_root) = 0;
  // The first start counts: one that is taken over has started already.
  virtual Expected<void> allocation_started(const std::string& id, const std::string& where, i64 pid,
                                            const Held& held) = 0;
  // last_word_unix_ns: of one that ended while nobody watched; it ended then at the latest.
  virtual Expected<void> end_allocation(const std::string& id, const std::string& reason,
                                        std::optional<i64> last_word_unix_ns = std::nullopt) = 0;
  // Allocated time x nodes x GPUs (or slots), over all runs of the sweep.
  virtual Expected<GpuSeconds> gpu_seconds(i64 sweep) = 0;
  virtual Expected<std::vector<AllocationRow>> open_allocations(i64 sweep) = 0;  // not ended: left by a crash
  virtual Expected<std::vector<AllocationRow>> allocations(i64 sweep) = 0;       // every one there was
  // Committed, state posted, when it returns: append the inbox line afterwards. Needs the sweep's lease.
  virtual Expected<Attempt> begin_attempt(i64 sweep, const std::string& allocation,
                                          const Attempt& without_id) = 0;
  virtual Expected<std::vector<AttemptRow>> unfinished_attempts(const std::string& allocation) = 0;
  // Idempotent: a batch whose new_offset is not beyond the stored one changes nothing. Records of attempts
  // that are not the allocation's, or of ranks out of 0..world-1, are left out and noted as an event. Survives
  // the death of this process at once, and a power cut from the next begin_attempt or end_allocation on: keep
  // the outbox until then.
  virtual Expected<void> ingest(const IngestBatch&) = 0;
  // A verdict without testimony: node_lost, cancelled. Changes nothing when the attempt has a verdict by
  // testimony.
  virtual Expected<void> finish_attempt(const Result&) = 0;
  virtual Expected<StoredTestimony> testimony(i64 attempt) = 0;
  virtual Expected<void> add_event(i64 sweep, const std::string& kind, const std::string& text) = 0;

  // Answers.
  virtual Expected<Progress> progress(i64 sweep) = 0;
  virtual Expected<Workload> workload(i64 sweep) = 0;
  // Differs from the answer before when anybody has written since.
  virtual Expected<i64> version() = 0;
  virtual Expected<std::vector<ResultRow>> results(i64 sweep) = 0;  // every trial of the plan, in its order
  // Columns of every trial of the plan, in no promised order; what results() would say of them.
  virtual Expected<ResultColumns> result_columns(i64 sweep, const ColumnSelection&) = 0;
  // Rows in full, by `entry` of the columns, in that order.
  virtual Expected<std::vector<ResultRow>> results_of(std::span<const i64> entries) = 0;
  virtual Expected<std::vector<PlanEntry>> plan(i64 sweep) = 0;
  virtual Expected<std::vector<AttemptRow>> attempts(i64 sweep, const std::string& trial_id) = 0;
  virtual Expected<std::optional<Result>> result_of(i64 attempt) = 0;
  // The attempt whose verdict is the trial's answer; absent: none yet, or the plan's verdict alone.
  virtual Expected<std::optional<i64>> final_attempt(i64 sweep, const std::string& trial_id) = 0;
  virtual Expected<std::string> find_trial(i64 sweep,
                                           std::string_view id_prefix) = 0;  // error: none, or several
  // One SELECT, read-only, enforced by an authorizer on a connection that cannot write.
  virtual Expected<Table> query(std::string_view sql, const QueryOptions& options) = 0;
  Expected<Table> query(std::string_view sql) { return query(sql, QueryOptions{}); }
  virtual Expected<Table> events(i64 sweep, i64 limit) = 0;
  // Every node of every allocation that holds a final answer of the sweep, oldest first.
  virtual Expected<std::vector<Environment>> environments(i64 sweep) = 0;
  // Of the trials named, in their order; those without a final attempt are left out.
  virtual Expected<std::vector<Provenance>> provenance(i64 sweep, std::span<const std::string> trial_ids) = 0;
  // The best `limit` ok trials of each group by a metric column of the view. group_by: model, axes, derived
  // labels. Groups over model and nodes with a usual metric are looked up by index; anything else reads the
  // sweep's results.
  virtual Expected<std::vector<ResultRow>> best(i64 sweep, std::span<const std::string> group_by,
                                                const std::string& metric, bool larger_is_better,
                                                i64 limit) = 0;
};

// True on NFS, CIFS, Lustre, GPFS, BeeGFS, ...: WAL is not safe there (statfs).
bool on_network_filesystem(const std::filesystem::path&);

}  // namespace sweep::store
