#include "orchestrator/store/merge_rows.h"

#include <fmt/format.h>

#include "orchestrator/store/enumerators.h"
#include "orchestrator/store/settle.h"

namespace sweep::store {
namespace {

// The joins that lead from a plan entry `p` of the other file to the sweep `s` and the trial `t` here.
constexpr std::string_view kSameEntry = R"(
    JOIN {from}.sweep fs ON fs.id = p.sweep
    JOIN main.sweep s ON s.name = fs.name
    JOIN {from}.trial ft ON ft.key = p.trial
    JOIN main.trial t ON t.id = ft.id)";

// Each attempt of a database with what names it in every database: allocation, trial, and its place among
// that allocation's attempts of the trial. They follow each other, so only the last one can lack a result.
constexpr std::string_view kIdentities = R"(
    SELECT a.id AS id, a.allocation AS allocation, t.id AS trial, r.outcome AS outcome,
           row_number() OVER (PARTITION BY a.allocation, a.entry ORDER BY a.id) AS place
    FROM {of}.attempt a
    JOIN {of}.plan_entry p ON p.key = a.entry
    JOIN {of}.trial t ON t.key = p.trial
    LEFT JOIN {of}.result r ON r.attempt = a.id
    WHERE a.allocation IN (SELECT id FROM {from}.allocation))";

class Merge {
 public:
  Merge(Transaction& work, std::string from, std::string shown, const DecideTrial& decide)
      : work_(work), from_(std::move(from)), shown_(std::move(shown)), decide_(decide) {}

  MergeCounts run(i64 now) {
    note_differences();
    sweeps();
    trials();
    allocations();
    map_attempts();
    attempts();
    copy_children();
    settle_entries();
    reused_answers();
    events();
    if (counts_.sweeps + counts_.trials + counts_.attempts + counts_.replaced + counts_.events > 0) say(now);
    work_.run("DROP TABLE temp.merge_map");
    return std::move(counts_);
  }

 private:
  template <class... A>
  i64 change(const std::string& sql, const A&... values) {
    work_.run(sql, values...);
    return work_.failed() ? 0 : work_.changes();
  }
  // The text with the name of the other database, and with `parts`, in the places that it marks.
  template <class... Parts>
  std::string sql(std::string_view text, const Parts&... parts) const {
    return fmt::format(fmt::runtime(text), fmt::arg("from", from_), parts...);
  }

  void note_differences() {
    auto rows = work_.rows(sql(R"(
        SELECT s.name, s.grid_text <> f.grid_text, s.measure_json <> f.measure_json
        FROM {from}.sweep f JOIN main.sweep s ON s.name = f.name
        WHERE s.grid_text <> f.grid_text OR s.measure_json <> f.measure_json
        ORDER BY s.id)"));
    while (rows.next())
      counts_.notes.push_back(
          fmt::format("sweep '{}' has another {} in '{}': what is stored here stays, and results of both are "
                      "side by side",
                      rows.get<std::string>(0),
                      rows.get<bool>(1) ? (rows.get<bool>(2) ? "grid and measuring plan" : "grid file")
                                        : "measuring plan",
                      shown_));
  }

  void sweeps() {
    counts_.sweeps = change(sql(R"(
        INSERT INTO main.sweep({columns})
        SELECT {columns} FROM {from}.sweep
        WHERE name NOT IN (SELECT name FROM main.sweep)
        ORDER BY id)",
                                fmt::arg("columns", joined(copied(work_, from_, "sweep", {"id"}), ""))));
  }

  void trials() {
    change(sql(R"(
        INSERT INTO main.trial({columns})
        SELECT {columns} FROM {from}.trial WHERE true ORDER BY key
        ON CONFLICT(id) DO NOTHING)",
               fmt::arg("columns", joined(copied(work_, from_, "trial", {"key"}), ""))));
    last_entry_ = work_.one<i64>("SELECT COALESCE(max(key), 0) FROM main.plan_entry").value_or(0);
    const Names names =
        copied(work_, from_, "plan_entry",
               {"key", "sweep", "trial", "state", "outcome", "final_attempt", "attempts", "reopened_after"});
    counts_.trials =
        change(sql(R"(
        INSERT INTO main.plan_entry(sweep, trial, state, {columns})
        SELECT s.id, t.key,
               CASE p.state WHEN State::kRetired THEN State::kRetired ELSE State::kPending END,
               {values}
        FROM {from}.plan_entry p {same_entry}
        WHERE true
        ORDER BY p.key
        ON CONFLICT(sweep, trial) DO NOTHING)",
                   fmt::arg("columns", joined(names, "")), fmt::arg("values", joined(names, "p.")),
                   fmt::arg("same_entry", sql(kSameEntry))));
  }

  // An allocation that was open when its file was copied is closed here: its outbox cannot be read here.
  void allocations() {
    const Names names = copied(work_, from_, "allocation", {"sweep", "ended_unix_ns", "end_reason"});
    change(sql(R"(
        INSERT INTO main.allocation(sweep, ended_unix_ns, end_reason, {columns})
        SELECT s.id,
               COALESCE(p.ended_unix_ns, p.created_unix_ns),
               COALESCE(p.end_reason, 'merged before its end was recorded'),
               {values}
        FROM {from}.allocation p
        JOIN {from}.sweep fs ON fs.id = p.sweep
        JOIN main.sweep s ON s.name = fs.name
        WHERE true
        ON CONFLICT(id) DO NOTHING)",
               fmt::arg("columns", joined(names, "")), fmt::arg("values", joined(names, "p."))));
    change(sql("INSERT OR IGNORE INTO main.environment({columns}) SELECT {columns} FROM {from}.environment",
               fmt::arg("columns", joined(columns_of(work_, from_, "environment"), ""))));
  }

  // Finds for each attempt there the one here. `kind`: new, known, or replaced (known here by its allocation's
  // failure alone, with a measured outcome there).
  void map_attempts() {
    work_.run(R"(
        CREATE TEMP TABLE merge_map(there INTEGER PRIMARY KEY, here INTEGER NOT NULL, kind TEXT NOT NULL))");
    const i64 last =
        work_.one<i64>("SELECT seq FROM main.sqlite_sequence WHERE name = 'attempt'").value_or(0);
    change(sql(R"(
        INSERT INTO temp.merge_map
        SELECT f.id,
               COALESCE(m.id, {last} + row_number() OVER (PARTITION BY m.id IS NULL ORDER BY f.id)),
               CASE WHEN m.id IS NULL THEN 'new'
                    WHEN m.outcome IS NULL THEN 'replaced'
                    WHEN m.outcome IN {infrastructure} AND f.outcome NOT IN {infrastructure} THEN 'replaced'
                    ELSE 'known' END
        FROM ({there}) f
        LEFT JOIN ({here}) m ON m.allocation = f.allocation AND m.trial = f.trial AND m.place = f.place
        WHERE f.outcome IS NOT NULL)",
               fmt::arg("last", last), fmt::arg("infrastructure", infrastructure_outcomes()),
               fmt::arg("there", sql(kIdentities, fmt::arg("of", from_))),
               fmt::arg("here", sql(kIdentities, fmt::arg("of", "main")))));
    const auto count = [&](std::string_view kind) {
      return work_.one<i64>("SELECT count(*) FROM temp.merge_map WHERE kind = ?", kind).value_or(0);
    };
    counts_.attempts = count("new");
    counts_.known = count("known");
    counts_.replaced = count("replaced");
    const auto unfinished = work_.one<i64>(
        sql("SELECT count(*) FROM {from}.attempt WHERE id NOT IN (SELECT attempt FROM {from}.result)"));
    counts_.unfinished = unfinished.value_or(0);
  }

  void attempts() {
    const Names names = copied(work_, from_, "attempt", {"id", "entry"});
    const std::string own = joined(names, ""), theirs = joined(names, "a.");
    const auto columns = fmt::arg("columns", own), values = fmt::arg("values", theirs);
    change(sql(R"(
        INSERT INTO main.attempt(id, entry, {columns})
        SELECT m.here, h.key, {values}
        FROM temp.merge_map m
        JOIN {from}.attempt a ON a.id = m.there
        JOIN {from}.plan_entry p ON p.key = a.entry {same_entry}
        JOIN main.plan_entry h ON h.sweep = s.id AND h.trial = t.key
        WHERE m.kind = 'new'
        ORDER BY m.there)",
               columns, values, fmt::arg("same_entry", sql(kSameEntry))));
    change(sql(R"(
        UPDATE main.attempt SET ({columns}) = (
          SELECT {values} FROM {from}.attempt a
          JOIN temp.merge_map m ON m.there = a.id
          WHERE m.here = attempt.id)
        WHERE id IN (SELECT here FROM temp.merge_map WHERE kind = 'replaced'))",
               columns, values));
    for (const char* table : {"rank_record", "step_sample", "result"})
      change(sql(R"(
          DELETE FROM main.{table}
          WHERE attempt IN (SELECT here FROM temp.merge_map WHERE kind = 'replaced'))",
                 fmt::arg("table", table)));
  }

  void copy_children() {
    for (const char* table : {"rank_record", "step_sample", "result"}) {
      const Names names = copied(work_, from_, table, {"attempt"});
      change(sql(R"(
          INSERT INTO main.{table}(attempt, {columns})
          SELECT m.here, {values}
          FROM temp.merge_map m JOIN {from}.{table} a ON a.attempt = m.there
          WHERE m.kind <> 'known'
          ORDER BY m.there)",
                 fmt::arg("table", table), fmt::arg("columns", joined(names, "")),
                 fmt::arg("values", joined(names, "a."))));
    }
  }

  // New entries keep the point they were last reopened at; the final attempt is settled anew over the union.
  void settle_entries() {
    change(sql(R"(
        UPDATE main.plan_entry SET reopened_after = COALESCE((
          SELECT m.here FROM {from}.plan_entry p {same_entry}
          JOIN temp.merge_map m ON m.there = p.reopened_after
          WHERE s.id = plan_entry.sweep AND t.key = plan_entry.trial), 0)
        WHERE key > ?)",
               fmt::arg("same_entry", sql(kSameEntry))),
           last_entry_);
    std::vector<std::pair<i64, i64>> entries;  // key, sweep
    {
      auto rows = work_.rows(R"(
          SELECT key, sweep FROM main.plan_entry WHERE key > ?
          UNION
          SELECT p.key, p.sweep FROM temp.merge_map m
          JOIN main.attempt a ON a.id = m.here
          JOIN main.plan_entry p ON p.key = a.entry
          WHERE m.kind <> 'known'
          ORDER BY 2, 1)",
                             last_entry_);
      while (rows.next()) entries.emplace_back(rows.get<i64>(0), rows.get<i64>(1));
    }
    std::optional<i64> sweep;
    SweepRules rules;
    for (const auto& [key, of] : entries) {
      if (work_.failed()) return;
      if (sweep != of) {
        rules = rules_of(work_, of, decide_);
        sweep = of;
      }
      settle(work_, key, rules);
    }
  }

  // New entries that were answered there by an attempt of another sweep (WorkQueue::reuse).
  void reused_answers() {
    change(sql(R"(
        UPDATE main.plan_entry AS h SET state = State::kFinished, outcome = o.outcome, final_attempt = o.here
        FROM (SELECT s.id AS sweep, t.key AS trial, p.outcome AS outcome, m.here AS here
              FROM {from}.plan_entry p {same_entry}
              JOIN {from}.attempt a ON a.id = p.final_attempt AND a.entry <> p.key
              JOIN temp.merge_map m ON m.there = a.id
              WHERE p.state = State::kFinished) o
        WHERE h.sweep = o.sweep AND h.trial = o.trial AND h.key > ? AND h.attempts = 0)",
               fmt::arg("same_entry", sql(kSameEntry))),
           last_entry_);
  }

  void events() {
    counts_.events = change(sql(R"(
        INSERT INTO main.event(sweep, unix_ns, kind, text, attempt)
        SELECT s.id, e.unix_ns, e.kind, e.text, m.here
        FROM {from}.event e
        JOIN {from}.sweep f ON f.id = e.sweep
        JOIN main.sweep s ON s.name = f.name
        LEFT JOIN temp.merge_map m ON m.there = e.attempt
        WHERE NOT EXISTS (
          SELECT 1 FROM main.event o
          WHERE o.sweep = s.id AND o.unix_ns = e.unix_ns AND o.kind = e.kind AND o.text = e.text)
        ORDER BY e.id)"));
  }

  void say(i64 now) {
    change(sql(R"(
        INSERT INTO main.event(sweep, unix_ns, kind, text)
        SELECT s.id, ?, ?, ? FROM {from}.sweep f JOIN main.sweep s ON s.name = f.name)"),
           now, to_string(EventKind::kMerged),
           fmt::format("{}: {} trials and {} results new, {} results known", shown_, counts_.trials,
                       counts_.attempts + counts_.replaced, counts_.known));
  }

  Transaction& work_;
  std::string from_, shown_;
  const DecideTrial& decide_;
  i64 last_entry_ = 0;
  MergeCounts counts_;
};

}  // namespace

std::vector<i64> shared_sweeps(Transaction& work, const std::string& from) {
  std::vector<i64> out;
  auto rows = work.rows(
      fmt::format("SELECT s.id FROM {}.sweep f JOIN main.sweep s ON s.name = f.name ORDER BY s.id", from));
  while (rows.next()) out.push_back(rows.get<i64>(0));
  return out;
}

MergeCounts merge_rows(Transaction& work, const std::string& from, const std::string& shown,
                       const DecideTrial& decide, i64 now) {
  return Merge(work, from, shown, decide).run(now);
}

}  // namespace sweep::store
