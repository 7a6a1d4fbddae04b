// SweepBook: the sweeps of a database, their plans, and results that come from elsewhere.
#pragma once
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "schema/attempt.h"
#include "schema/event.h"
#include "schema/imported_row.h"
#include "schema/plan_entry.h"
#include "schema/result_row.h"
#include "schema/sweep_options.h"

namespace sweep::store {

struct StoreFile;

struct SweepRow {
  i64 id = 0;
  std::string name, question, grid_path, grid_text;
  SweepOptions options;
  i64 created_unix_ns = 0;
};

struct SyncCounts {
  i64 added = 0, kept = 0, retired = 0, reopened = 0, pruned = 0;
};

// The treatment of configurations that an earlier import read from a place (file and line) that says another
// one now, as after a corrected flag, or whose last row has no result any more: they would stand beside the corrected
// ones.
enum class Earlier { kRefuse, kReplace, kKeep };
// A backup of damaged pages.
enum class Damaged { kRefused, kKept };

struct ImportCounts {
  i64 trials = 0;    // distinct configurations of the file
  i64 added = 0;     // results that were not there yet
  i64 known = 0;     // results that were there already
  i64 repeated = 0;  // configurations of more than one row; the last one counts
  i64 replaced = 0;  // configurations of an earlier import, retired or without a result now
};

// The changes of a merge. All are zero but for `known` and `unfinished` if it changed nothing.
struct MergeCounts {
  i64 sweeps = 0, trials = 0, attempts = 0, events = 0;  // new here
  i64 replaced = 0;                // answered only by the machine's fault here, by records there
  i64 known = 0;                   // attempts that were here already
  i64 unfinished = 0;              // attempts without a verdict there: left out
  std::vector<std::string> notes;  // disagreements of the other file with this one
};

// A sweep that was removed: what it had, and the folders of its logs, which are still there.
struct RemovedSweep {
  i64 trials = 0, attempts = 0;
  std::vector<std::filesystem::path> spools;
};

class SweepBook {
 public:
  explicit SweepBook(StoreFile& file) : file_(file) {}

  // Finds or adds the sweep by its name; updates question, grid, options. While another process holds the
  // sweep's lease nothing is updated: the stored row comes back, so that a second `sweep run` can watch.
  Expected<SweepRow> ensure_sweep(const SweepRow&);
  Expected<std::vector<SweepRow>> sweeps();
  // Finds a sweep; without a name, the latest one that was measured. The error lists the sweeps.
  Expected<SweepRow> find_sweep(const std::optional<std::string>& name);
  // Adds new trials, keeps those known, retires those gone, takes back those that return, updates the plan's
  // decisions. No result is ever deleted: a trial that was measured shows its result even when the plan
  // prunes it now.
  Expected<SyncCounts> sync_plan(i64 sweep, std::span<const PlanEntry>, const MeasurePlan&);
  Expected<std::vector<PlanEntry>> plan(i64 sweep);

  // Results that were measured elsewhere, into the sweep of this name, which is made if need be; one that was
  // run here takes none. SweepRow::grid_path names the file by a lasting path, as the rows' sources do. One
  // transaction. Again the same rows change nothing; rows of a configuration whose earlier results from this file
  // are the same only add what is new. Nothing is retired but what `Earlier` says.
  Expected<ImportCounts> import_rows(const SweepRow&, std::span<const ImportedRow>,
                                     Earlier earlier = Earlier::kRefuse,
                                     std::span<const UnansweredRow> unanswered = {});
  // Joins other databases into this one, all of them in one transaction: sweeps by name, trials by id,
  // attempts by allocation, trial and place among that allocation's attempts of the trial, so that the same
  // file again changes nothing. What this database says of a sweep or a plan stands. The other files are only
  // read (an older one is upgraded as a private copy); a sweep that is being run, here or there, is refused.
  Expected<std::vector<MergeCounts>> merge(std::span<const std::filesystem::path>);

  // Removes a sweep with all its rows, and the trials that no other sweep has; one transaction. Error: somebody runs
  // it, or allocations of it are not known to have ended.
  Expected<RemovedSweep> remove_sweep(const SweepRow&);
  // One consistent file, while others read and write this one. Error: there is such a file already; or pages of this one
  // are damaged, of which a copy is kept only if asked for.
  Expected<void> back_up(const std::filesystem::path& target, Damaged = Damaged::kRefused);

  // `attempt`: the one that it is about; nullopt: the sweep as a whole.
  Expected<void> add_event(i64 sweep, EventKind, const std::string& text, std::optional<i64> attempt = {});
  // The last ones, the oldest of them first.
  Expected<std::vector<SweepEvent>> events(i64 sweep, i64 limit);
  // The text of the database's first event that is not of this kind; empty: there is none.
  Expected<std::string> first_event_but(EventKind);

 private:
  StoreFile& file_;
};

}  // namespace sweep::store
