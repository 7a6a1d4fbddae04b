// Results that somebody brought: one transaction, and again the same rows change nothing.
#include <fmt/format.h>

#include <random>
#include <unordered_map>

#include "orchestrator/store/report_rows.h"
#include "orchestrator/store/settle.h"
#include "orchestrator/store/sqlite_store.h"
#include "orchestrator/store/trial_rows.h"
#include "schema/sweep_options.h"

namespace sweep::store {
namespace {

// Marks a sweep of brought results; whatever a row says of itself stands, nothing is tried again.
std::string imported_options() {
  SweepOptions options;
  options.imported = true;
  options.retries_crash = options.retries_hang = options.retries_timeout = options.retries_infra = 0;
  return to_text(options);
}

i64 brought_sweep(Transaction& work, const SweepRow& wanted, i64 now) {
  const auto options = work.one<std::string>("SELECT options_json FROM sweep WHERE name = ?", wanted.name);
  const auto found = options ? sweep_options_from(*options) : SweepOptions();
  if (options && !(found && found->imported))
    work.refuse(fmt::format(
        "sweep '{}' was run here, so nothing is imported into it; name another with --sweep", wanted.name));
  if (!options)
    work.run(
        "INSERT INTO sweep(name, question, grid_path, options_json, created_unix_ns) VALUES (?, ?, ?, ?, ?)",
        wanted.name, wanted.question, wanted.grid_path, imported_options(), now);
  else if (!wanted.question.empty())
    work.run("UPDATE sweep SET question = ? WHERE name = ?", wanted.question, wanted.name);
  return work.one<i64>("SELECT id FROM sweep WHERE name = ?", wanted.name).value_or(0);
}

bool same(const Result& a, const Result& b) {
  return a.outcome == b.outcome && a.oom_kind == b.oom_kind && a.reason == b.reason && a.metrics == b.metrics;
}

// The attempts of one import; made when the first new result comes.
class Batch {
 public:
  Batch(Transaction& work, i64 sweep, std::string file, i64 now)
      : work_(work), sweep_(sweep), file_(std::move(file)), now_(now) {}

  void add(i64 entry, const ImportedRow& row) {
    if (id_.empty()) open();
    static const std::string insert = fmt::format(
        "INSERT INTO attempt(entry, allocation, state, world, request, posted_unix_ns, ended_unix_ns) VALUES "
        "(?1, ?3, ?4, ?5, '{{}}', {}, ?2)",
        kPostedAfter);
    work_.run(insert, entry, now_, id_, State::kFinished, row.entry.trial.world());
    Result result = *row.result;
    result.attempt = work_.last_id();
    result.finished_unix_ns = now_;
    write_result(work_, result);
  }

 private:
  void open() {
    const i64 number = work_.one<i64>("SELECT count(*) FROM allocation").value_or(0) + 1;
    id_ = fmt::format("i{:04}-{:08x}", number, std::random_device{}());
    work_.run(
        "INSERT INTO allocation(id, sweep, launcher, spool, whereabouts, created_unix_ns, ended_unix_ns, "
        "end_reason) VALUES (?1, ?2, 'import', '', ?3, ?4, ?4, 'imported')",
        id_, sweep_, file_, now_);
  }
  Transaction& work_;
  i64 sweep_;
  std::string file_, id_;
  i64 now_;
};

std::vector<Result> stored(Transaction& work, const std::string& metrics, i64 entry) {
  std::vector<Result> out;
  auto rows =
      work.rows("SELECT r.outcome, r.oom_kind, r.reason, " + metrics +
                    " FROM attempt a JOIN result r ON r.attempt = a.id WHERE a.entry = ? ORDER BY a.id",
                entry);
  while (rows.next()) {
    Result& r = out.emplace_back();
    rows.read(0, r.outcome), rows.read(1, r.oom_kind), rows.read(2, r.reason);
    read_metrics(rows, 3, r.metrics);
  }
  return out;
}

// How many of the rows the entry has already: all when they are its whole past, or its beginning; else none.
std::size_t known_of(const std::vector<Result>& past, std::span<const ImportedRow* const> rows) {
  if (past.size() > rows.size()) return 0;
  for (std::size_t i = 0; i < past.size(); ++i)
    if (!same(past[i], *rows[i]->result)) return 0;
  return past.size();
}

}  // namespace

Expected<ImportCounts> SqliteStore::import_rows(const SweepRow& wanted, std::span<const ImportedRow> rows) {
  if (wanted.name.empty()) return fail("a sweep needs a name; give one with --sweep");
  std::vector<std::vector<const ImportedRow*>> trials;
  std::unordered_map<std::string_view, std::size_t> place;
  for (const auto& row : rows) {
    const auto [it, added] = place.emplace(row.entry.id, trials.size());
    if (added) trials.emplace_back();
    trials[it->second].push_back(&row);
  }
  Transaction work(*db_, Transaction::kWrite);
  const i64 sweep = brought_sweep(work, wanted, leases_.now());
  leases_.guard(work, sweep);
  Batch batch(work, sweep, wanted.grid_path, leases_.now());
  const SweepRules rules = rules_of(work, sweep, seams_.decide_trial);
  ImportCounts counts;
  counts.trials = static_cast<i64>(trials.size());
  for (const auto& same_trial : trials) {
    if (work.failed()) break;
    const PlanEntry& entry = same_trial.back()->entry;
    write_entry(work, sweep, ensure_trial(work, entry), entry);
    const auto key = work.one<i64>(
        "SELECT p.key FROM plan_entry p JOIN trial t ON t.key = p.trial WHERE p.sweep = ? AND t.id = ?",
        sweep, entry.id);
    std::vector<const ImportedRow*> measured;
    for (const auto* row : same_trial)
      if (row->result) measured.push_back(row);
    counts.repeated += measured.size() > 1;
    const std::size_t known = known_of(stored(work, selects_.metrics, key.value_or(0)), measured);
    for (std::size_t i = known; i < measured.size(); ++i) batch.add(key.value_or(0), *measured[i]);
    counts.known += static_cast<i64>(known), counts.added += static_cast<i64>(measured.size() - known);
    settle(work, key.value_or(0), rules);
  }
  work.run("INSERT INTO event(sweep, unix_ns, kind, text) VALUES (?, ?, 'imported', ?)", sweep, leases_.now(),
           fmt::format("{}: {} results, {} of them new", wanted.grid_path, counts.added + counts.known,
                       counts.added));
  pack(work);
  return work.commit(counts);
}

}  // namespace sweep::store
