// SqliteStore: the Store on one SQLite file. Private to store/; its parts are spread by subject over the .cpp
// files.
#pragma once
#include <map>

#include "orchestrator/store/columns.h"
#include "orchestrator/store/db.h"
#include "orchestrator/store/lease.h"
#include "orchestrator/store/store.h"

namespace sweep::store {

// A connection that cannot write, whatever the SQL.
Expected<std::unique_ptr<Db>> open_for_reading(const std::filesystem::path&, int busy_timeout_ms);

class SqliteStore final : public Store {
 public:
  SqliteStore(std::unique_ptr<Db> db, Mode mode, StoreDependencies seams, bool network, Selects selects);

  Expected<SweepRow> ensure_sweep(const SweepRow&) override;
  Expected<std::vector<SweepRow>> sweeps() override;
  Expected<SweepRow> find_sweep(const std::optional<std::string>& name) override;
  Expected<SyncCounts> sync_plan(i64 sweep, std::span<const PlanEntry>, const MeasurePlan&) override;

  Expected<ImportCounts> import_rows(const SweepRow&, std::span<const ImportedRow>) override;

  Expected<std::vector<MergeCounts>> merge(std::span<const std::filesystem::path>) override;

  using Store::lease;
  using Store::take_lease;
  Expected<std::optional<LeaseHolder>> take_lease(i64 sweep, const Claim& claim) override;
  Expected<std::optional<LeaseHolder>> lease(i64 sweep, const Claim& known) override;
  bool lease_lost(i64 sweep) const override { return leases_.lost(sweep); }
  Expected<void> while_held(i64 sweep, const std::function<Expected<void>()>& act) override;
  Expected<void> beat(i64 sweep) override;
  Expected<void> release_lease(i64 sweep) override;
  Expected<void> request_stop(i64 sweep, bool now) override;
  Expected<std::optional<bool>> stop_requested(i64 sweep) override;

  Expected<std::vector<PendingTrial>> pending(i64 sweep, i64 limit) override;
  Expected<std::vector<PendingTrial>> pending(i64 sweep, i64 limit, const Fit&) override;
  Expected<std::vector<Demand>> demand(i64 sweep) override;
  Expected<void> reopen(i64 sweep, std::span<const Outcome>) override;
  Expected<AllocationRow> create_allocation(i64 sweep, const std::string& launcher,
                                            const std::filesystem::path& spool_root) override;
  Expected<void> allocation_started(const std::string& id, const std::string& where, i64 pid,
                                    const Held& held) override;
  Expected<void> end_allocation(const std::string& id, const std::string& reason,
                                std::optional<i64> last_word_unix_ns) override;
  Expected<GpuSeconds> gpu_seconds(i64 sweep) override;
  Expected<std::vector<AllocationRow>> open_allocations(i64 sweep) override;
  Expected<std::vector<AllocationRow>> allocations(i64 sweep) override;
  Expected<Attempt> begin_attempt(i64 sweep, const std::string& allocation,
                                  const Attempt& without_id) override;
  Expected<std::vector<AttemptRow>> unfinished_attempts(const std::string& allocation) override;
  Expected<void> ingest(const IngestBatch&) override;
  Expected<void> finish_attempt(const Result&) override;
  Expected<StoredTestimony> testimony(i64 attempt) override;
  Expected<void> add_event(i64 sweep, const std::string& kind, const std::string& text) override;

  Expected<Progress> progress(i64 sweep) override;
  Expected<Workload> workload(i64 sweep) override;
  Expected<i64> version() override;
  Expected<std::vector<ResultRow>> results(i64 sweep) override;
  Expected<ResultColumns> result_columns(i64 sweep, const ColumnSelection&) override;
  Expected<std::vector<ResultRow>> results_of(std::span<const i64> entries) override;
  Expected<std::vector<PlanEntry>> plan(i64 sweep) override;
  Expected<std::vector<AttemptRow>> attempts(i64 sweep, const std::string& trial_id) override;
  Expected<std::optional<Result>> result_of(i64 attempt) override;
  Expected<std::optional<i64>> final_attempt(i64 sweep, const std::string& trial_id) override;
  Expected<std::string> find_trial(i64 sweep, std::string_view id_prefix) override;
  using Store::query;
  Expected<Table> query(std::string_view sql, const QueryOptions&) override;
  Expected<Table> events(i64 sweep, i64 limit) override;
  Expected<std::vector<Environment>> environments(i64 sweep) override;
  Expected<std::vector<Provenance>> provenance(i64 sweep, std::span<const std::string> trial_ids) override;
  Expected<std::vector<ResultRow>> best(i64 sweep, std::span<const std::string> group_by,
                                        const std::string& metric, bool larger_is_better, i64 limit) override;

 private:
  struct Ranked {
    i64 attempt = 0;
    double value = 0;
  };
  using Leaders = std::map<std::vector<Value>, std::vector<Ranked>>;

  // An answer of progress(), good while nobody has written since.
  struct Counted {
    i64 sweep = 0, others = 0, own = 0;  // what SQLite counts of writes by other connections and by this one
    Progress progress;
  };

  template <class... Bound>
  Expected<std::vector<PendingTrial>> pending_where(const std::string& rest, const Bound&... bound);
  Progress count_progress(Transaction&, i64 sweep);
  std::optional<i64> sweep_of_allocation(Transaction&, const std::string& id);
  // where: over plan_entry p, with a parameter for each of the keys. entries: of each row, where wanted.
  std::vector<ResultRow> result_rows(Transaction&, const std::string& where, std::initializer_list<i64> keys,
                                     std::vector<i64>* entries = nullptr);
  // Called at the end of every transaction that changes results or plan entries.
  void pack(Transaction&);
  void pack_block(Transaction&, i64 sweep, i64 block, const std::vector<i64>& loose);
  std::vector<AttemptRow> attempt_rows(Transaction&, const std::string& where, std::string_view key);
  Leaders leaders_by_index(Transaction&, i64 sweep, std::span<const std::string> group_by,
                           const std::string& metric, bool larger, i64 limit);
  Leaders leaders_by_scan(Transaction&, i64 sweep, std::span<const std::string> group_by,
                          const std::string& metric, bool larger, i64 limit);

  std::unique_ptr<Db> db_;
  Mode mode_;
  bool network_;
  StoreDependencies seams_;
  Selects selects_;
  Leases leases_;
  std::optional<Counted> counted_;
  std::unique_ptr<Db> query_db_;  // opened by the first query()
};

}  // namespace sweep::store
