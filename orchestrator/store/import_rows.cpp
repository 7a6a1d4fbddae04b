// Imported results: one transaction; the same rows once more change nothing.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <unordered_map>
#include <unordered_set>

#include "base/expected.h"
#include "orchestrator/store/rows.h"
#include "orchestrator/store/settle.h"
#include "orchestrator/store/store_file.h"
#include "orchestrator/store/sweep_rows.h"
#include "schema/rehearsal.h"

namespace sweep::store {
namespace {

// Marks a sweep of brought results; whatever a row says of itself stands, nothing is tried again.
SweepOptions imported_options() {
  SweepOptions options;
  options.imported = true;
  options.retries_crash = options.retries_hang = options.retries_timeout = options.retries_infra = 0;
  return options;
}

i64 brought_sweep(Transaction& work, const SweepRow& wanted, i64 now) {
  if (is_rehearsal(wanted.name))
    work.refuse(Error{fmt::format("sweep '{}': names that end in {} are for rehearsals, whose times are not "
                                  "measured; give another with --sweep",
                                  wanted.name, kRehearsalSuffix),
                      ErrorKind::kInvalidValue, wanted.name});
  const auto found = sweep_named(work, wanted.name);
  if (found && !found->options.imported)
    work.refuse(Error{
        fmt::format("sweep '{}' was run here, so nothing is imported into it; name another with --sweep",
                    wanted.name),
        ErrorKind::kRefused, wanted.name});
  if (!found) {
    SweepRow row = wanted;
    row.grid_text.clear();
    row.options = imported_options();
    row.created_unix_ns = now;
    write_sweep(work, row);
  } else if (!wanted.question.empty()) {
    work.run("UPDATE sweep SET question = ? WHERE name = ?", wanted.question, wanted.name);
  }
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
    Result result = *row.result;
    result.attempt =
        insert_attempt(work_, {entry, id_, State::kFinished, row.entry.trial.world(), "{}", now_, now_});
    result.finished_unix_ns = now_;
    write_result(work_, result);
  }

 private:
  void open() {
    const i64 number = work_.one<i64>("SELECT count(*) FROM allocation").value_or(0) + 1;
    id_ = fmt::format("i{:04}-{:08x}", number, std::random_device{}());
    StoredAllocation allocation;
    allocation.id = id_;
    allocation.sweep = sweep_;
    allocation.launcher = "import";
    allocation.hosts = file_;
    allocation.created_unix_ns = now_;
    allocation.ended_unix_ns = now_;
    allocation.end_reason = "imported";
    write_allocation(work_, allocation);
  }
  Transaction& work_;
  i64 sweep_;
  std::string file_, id_;
  i64 now_;
};

// The parts of file:line, of a path that may hold colons.
std::string path_of(const std::string& source) {
  return source.substr(0, source.rfind(':'));
}
std::string_view line_of(std::string_view source) {
  const auto colon = source.rfind(':');
  return colon == std::string_view::npos ? std::string_view() : source.substr(colon + 1);
}

std::string stored_sql(const Selects& selects) {
  return fmt::format(
      R"(SELECT l.whereabouts, {}, {} FROM attempt a JOIN result r ON r.attempt = a.id
         JOIN allocation l ON l.id = a.allocation WHERE a.entry = ? ORDER BY a.id)",
      select_list(selects.columns, "result", "r", stored_fields<Result>()), selects.metrics);
}

// Past results of the entry that came from the file; by stored_sql().
std::vector<Result> stored(Transaction& work, const std::string& sql, i64 entry, const std::string& file) {
  std::vector<Result> out;
  auto rows = work.rows(sql, entry);
  while (rows.next()) {
    if (rows.get<std::string>(0) != file) continue;
    Result& result = out.emplace_back();
    read_metrics(rows, read_fields(rows, 1, result), result.metrics);
  }
  return out;
}

// How many of the rows the entry has already: all when its past ends with them (what came before was corrected),
// the first ones when they are its whole past; else none.
std::size_t known_of(std::span<const Result> past, std::span<const ImportedRow* const> rows) {
  const std::size_t known = std::min(past.size(), rows.size());
  const bool equal =
      std::ranges::equal(past.last(known), rows.first(known),
                         [](const Result& a, const ImportedRow* b) { return same(a, *b->result); });
  return equal ? known : 0;
}

// The rows of one trial in a file, in its order.
using TrialRows = std::vector<const ImportedRow*>;

std::vector<TrialRows> by_trial(std::span<const ImportedRow> rows) {
  std::vector<TrialRows> out;
  std::unordered_map<std::string_view, std::size_t> place;
  for (const auto& row : rows) {
    const auto [it, added] = place.emplace(row.entry.id, out.size());
    if (added) out.emplace_back();
    out[it->second].push_back(&row);
  }
  return out;
}

// Entries of an earlier import that the file says otherwise now.
struct Changed {
  std::vector<i64>
      gone;  // entries whose line names another configuration, or whose trial has no answer any more
  i64 unmeasured = 0;  // entries with a result whose last row in the file says that they were never run
};

Changed changed_by(Transaction& work, i64 sweep, std::span<const TrialRows> trials,
                   std::span<const UnansweredRow> unanswered, const std::string& file) {
  std::unordered_set<std::string_view> lines, open;
  std::unordered_map<std::string_view, bool> measured;  // id -> with a result
  for (const auto& rows : trials) {
    measured.emplace(rows.back()->entry.id, rows.back()->result.has_value());
    for (const auto* row : rows) lines.insert(line_of(row->entry.source));
  }
  for (const auto& row : unanswered) lines.insert(line_of(row.source)), open.insert(row.trial);
  Changed out;
  auto found = work.rows(R"(
      SELECT p.key, p.source, t.id, p.admitted AND p.final_attempt IS NOT NULL
      FROM plan_entry p JOIN trial t ON t.key = p.trial
      WHERE p.sweep = ? AND p.state <> State::kRetired)",
                         sweep);
  while (found.next()) {
    const auto source = found.get<std::string>(1), id = found.get<std::string>(2);
    if (const auto now = measured.find(id); now != measured.end())
      out.unmeasured += !now->second && found.get<bool>(3);
    else if ((lines.contains(line_of(source)) || open.contains(id)) && path_of(source) == file)
      out.gone.push_back(found.get<i64>(0));
  }
  return out;
}

// Returns how many were replaced.
i64 clear_earlier(Transaction& work, const SweepRow& wanted, const Changed& changed, Earlier earlier,
                  const SweepRules& rules) {
  if (earlier == Earlier::kKeep) return 0;
  const i64 count = static_cast<i64>(changed.gone.size()) + changed.unmeasured;
  if (count > 0 && earlier == Earlier::kRefuse)
    work.refuse(Error{fmt::format("sweep '{}' holds {} configuration{} of an earlier import that {} says "
                                  "otherwise now (another one on the "
                                  "same line, or no result); --replace puts these rows in their place, "
                                  "--sweep NAME keeps both apart",
                                  wanted.name, count, count == 1 ? "" : "s", wanted.grid_path),
                      ErrorKind::kConflict, wanted.name});
  for (const i64 entry : changed.gone) {
    if (work.failed()) break;
    work.run("UPDATE plan_entry SET state = State::kRetired WHERE key = ?", entry);
    settle(work, entry, rules);
  }
  return count;
}

}  // namespace

Expected<ImportCounts> SweepBook::import_rows(const SweepRow& wanted, std::span<const ImportedRow> rows,
                                              Earlier earlier, std::span<const UnansweredRow> unanswered) {
  if (wanted.name.empty()) return fail("a sweep needs a name; give one with --sweep");
  const auto trials = by_trial(rows);
  Transaction work(*file_.db, Transaction::kWrite);
  const i64 sweep = brought_sweep(work, wanted, file_.leases.now());
  file_.leases.guard(work, sweep);
  Batch batch(work, sweep, wanted.grid_path, file_.leases.now());
  const SweepRules rules = rules_of(work, sweep, file_.dependencies.decide_trial);
  ImportCounts counts;
  counts.trials = static_cast<i64>(trials.size());
  counts.replaced = clear_earlier(work, wanted, changed_by(work, sweep, trials, unanswered, wanted.grid_path),
                                  earlier, rules);
  const std::string past = stored_sql(file_.selects);
  for (const auto& same_trial : trials) {
    if (work.failed()) break;
    const PlanEntry& entry = same_trial.back()->entry;
    write_entry(work, sweep, ensure_trial(work, entry), entry);
    const auto key = work.one<i64>(R"(
        SELECT p.key FROM plan_entry p JOIN trial t ON t.key = p.trial WHERE p.sweep = ? AND t.id = ?)",
                                   sweep, entry.id);
    work.run("UPDATE plan_entry SET state = State::kPending WHERE key = ? AND state = State::kRetired",
             key.value_or(0));
    TrialRows measured;
    std::ranges::copy_if(same_trial, std::back_inserter(measured),
                         [](const auto* row) { return row->result.has_value(); });
    counts.repeated += same_trial.size() > 1;
    const std::size_t known = known_of(stored(work, past, key.value_or(0), wanted.grid_path), measured);
    for (std::size_t i = known; i < measured.size(); ++i) batch.add(key.value_or(0), *measured[i]);
    counts.known += static_cast<i64>(known);
    counts.added += static_cast<i64>(measured.size() - known);
    settle(work, key.value_or(0), rules);
  }
  add_event_row(work, sweep, file_.leases.now(), EventKind::kImported,
                fmt::format("{}: {} results, {} of them new", wanted.grid_path, counts.added + counts.known,
                            counts.added));
  pack(work, file_.selects, file_.dependencies.most_unpacked);
  return work.commit(counts);
}

}  // namespace sweep::store
