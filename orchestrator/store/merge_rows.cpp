#include "orchestrator/store/merge_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "orchestrator/store/columns.h"
#include "orchestrator/store/settle.h"

namespace sweep::store {
namespace {

using Names = std::vector<std::string>;

Names columns_of(Transaction& work, const std::string& schema, const char* table) {
  Names out;
  auto rows = work.rows("SELECT name FROM pragma_table_info(?, ?)", table, schema);
  while (rows.next()) out.push_back(rows.get<std::string>(0));
  return out;
}

std::string joined(const Names& names, const std::string& before) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ", ") + before + sql_name(name);
  return out;
}

// The columns that both have, but for those that are numbered or settled anew here.
Names copied(Transaction& work, const std::string& from, const char* table,
             std::initializer_list<std::string_view> without) {
  Names out = columns_of(work, from, table);
  std::erase_if(out,
                [&](const std::string& name) { return std::ranges::find(without, name) != without.end(); });
  return out;
}

// The joins that lead from rows of the other file to the same sweep, trial and entry here.
std::string same_entry(const std::string& from) {
  return fmt::format(
      "JOIN {0}.sweep fs ON fs.id = p.sweep JOIN main.sweep s ON s.name = fs.name JOIN {0}.trial ft ON "
      "ft.key = p.trial "
      "JOIN main.trial t ON t.id = ft.id",
      from);
}

// Each attempt of a schema with what names it in every database: allocation, trial, and its place among that
// allocation's attempts of the trial (they follow each other, so only the last can lack a verdict).
std::string identities(const std::string& schema, const std::string& allocations) {
  return fmt::format(
      "SELECT a.id AS id, a.allocation AS allocation, t.id AS trial, row_number() OVER (PARTITION BY "
      "a.allocation, a.entry "
      "ORDER BY a.id) AS place, r.outcome AS outcome FROM {0}.attempt a JOIN {0}.plan_entry p ON p.key = "
      "a.entry JOIN "
      "{0}.trial t ON t.key = p.trial LEFT JOIN {0}.result r ON r.attempt = a.id WHERE a.allocation IN "
      "(SELECT id FROM "
      "{1}.allocation)",
      schema, allocations);
}

void refuse_if(Transaction& work, const std::string& sql, std::string_view sentence,
               const std::string& shown) {
  const auto found = work.one<std::string>(sql);
  if (found) work.refuse(fmt::format(fmt::runtime(sentence), shown, *found));
}

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
  std::string sql(std::string_view text) const {
    return fmt::format(fmt::runtime(text), fmt::arg("from", from_));
  }

  void note_differences() {
    auto rows =
        work_.rows(sql("SELECT s.name, s.grid_text <> f.grid_text, s.measure_json <> f.measure_json FROM "
                       "{from}.sweep f JOIN main.sweep s "
                       "ON s.name = f.name WHERE s.grid_text <> f.grid_text OR s.measure_json <> "
                       "f.measure_json ORDER BY s.id"));
    while (rows.next())
      counts_.notes.push_back(fmt::format(
          "sweep '{}' has another {} in '{}': what stands here stays, and results of both are side by side",
          rows.get<std::string>(0),
          rows.get<bool>(1) ? (rows.get<bool>(2) ? "grid and measuring plan" : "grid file")
                            : "measuring plan",
          shown_));
  }

  void sweeps() {
    const auto list = joined(copied(work_, from_, "sweep", {"id"}), "");
    counts_.sweeps =
        change(fmt::format("INSERT INTO main.sweep({0}) SELECT {0} FROM {1}.sweep WHERE name NOT IN (SELECT "
                           "name FROM main.sweep) ORDER BY id",
                           list, from_));
  }

  void trials() {
    const auto list = joined(copied(work_, from_, "trial", {"key"}), "");
    change(fmt::format(
        "INSERT INTO main.trial({0}) SELECT {0} FROM {1}.trial WHERE true ORDER BY key ON CONFLICT(id) DO "
        "NOTHING",
        list, from_));
    last_entry_ = work_.one<i64>("SELECT COALESCE(max(key), 0) FROM main.plan_entry").value_or(0);
    const Names names =
        copied(work_, from_, "plan_entry",
               {"key", "sweep", "trial", "state", "outcome", "final_attempt", "attempts", "reopened_after"});
    counts_.trials = change(
        fmt::format("INSERT INTO main.plan_entry(sweep, trial, state, {}) SELECT s.id, t.key, CASE p.state "
                    "WHEN 4 THEN 4 ELSE 0 END, {} "
                    "FROM {}.plan_entry p {} WHERE true ORDER BY p.key ON CONFLICT(sweep, trial) DO NOTHING",
                    joined(names, ""), joined(names, "p."), from_, same_entry(from_)));
  }

  // One that was open when its file was copied is closed here: nobody here can take its outbox in.
  void allocations() {
    const Names names = copied(work_, from_, "allocation", {"sweep", "ended_unix_ns", "end_reason"});
    change(fmt::format(
        "INSERT INTO main.allocation(sweep, ended_unix_ns, end_reason, {}) SELECT s.id, "
        "COALESCE(p.ended_unix_ns, "
        "p.created_unix_ns), COALESCE(p.end_reason, 'merged before its end was recorded'), {} FROM "
        "{}.allocation p JOIN {}.sweep fs ON fs.id = p.sweep JOIN main.sweep s ON s.name = fs.name WHERE "
        "true "
        "ON CONFLICT(id) DO NOTHING",
        joined(names, ""), joined(names, "p."), from_, from_));
    const auto list = joined(columns_of(work_, from_, "environment"), "");
    change(fmt::format("INSERT OR IGNORE INTO main.environment({0}) SELECT {0} FROM {1}.environment", list,
                       from_));
  }

  // there -> here. kind: 0 new, 1 here already, 2 here already and to be replaced.
  void map_attempts() {
    work_.run(
        "CREATE TEMP TABLE merge_map(there INTEGER PRIMARY KEY, here INTEGER NOT NULL, kind INTEGER NOT "
        "NULL)");
    const i64 last =
        work_.one<i64>("SELECT seq FROM main.sqlite_sequence WHERE name = 'attempt'").value_or(0);
    change(fmt::format(
        "INSERT INTO temp.merge_map SELECT f.id, COALESCE(m.id, {} + row_number() OVER (PARTITION BY m.id IS "
        "NULL ORDER BY f.id)), CASE WHEN m.id IS NULL THEN 0 WHEN m.outcome IS NULL OR (m.outcome IN (6, 8) "
        "AND "
        "f.outcome NOT IN (6, 8)) THEN 2 ELSE 1 END FROM ({}) f LEFT JOIN ({}) m ON m.allocation = "
        "f.allocation AND m.trial = f.trial AND m.place = f.place WHERE f.outcome IS NOT NULL",
        last, identities(from_, from_), identities("main", from_)));
    const auto count = [&](int kind) {
      return work_.one<i64>("SELECT count(*) FROM temp.merge_map WHERE kind = ?", kind).value_or(0);
    };
    counts_.attempts = count(0), counts_.known = count(1), counts_.replaced = count(2);
    counts_.unfinished =
        work_
            .one<i64>(sql(
                "SELECT count(*) FROM {from}.attempt WHERE id NOT IN (SELECT attempt FROM {from}.result)"))
            .value_or(0);
  }

  void attempts() {
    const Names names = copied(work_, from_, "attempt", {"id", "entry"});
    change(fmt::format(
        "INSERT INTO main.attempt(id, entry, {}) SELECT m.here, h.key, {} FROM temp.merge_map m JOIN "
        "{}.attempt a ON a.id = m.there JOIN {}.plan_entry p ON p.key = a.entry {} JOIN main.plan_entry h ON "
        "h.sweep = s.id AND h.trial = t.key WHERE m.kind = 0 ORDER BY m.there",
        joined(names, ""), joined(names, "a."), from_, from_, same_entry(from_)));
    change(fmt::format(
        "UPDATE main.attempt SET ({}) = (SELECT {} FROM {}.attempt a JOIN temp.merge_map m ON m.there = a.id "
        "WHERE m.here = attempt.id) WHERE id IN (SELECT here FROM temp.merge_map WHERE kind = 2)",
        joined(names, ""), joined(names, "a."), from_));
    for (const char* table : {"rank_record", "step_sample", "result"})
      change(fmt::format(
          "DELETE FROM main.{} WHERE attempt IN (SELECT here FROM temp.merge_map WHERE kind = 2)", table));
  }

  void copy_children() {
    for (const char* table : {"rank_record", "step_sample", "result"}) {
      const Names names = copied(work_, from_, table, {"attempt", "ranking"});
      change(fmt::format(
          "INSERT INTO main.{0}(attempt, {1}) SELECT m.here, {2} FROM temp.merge_map m JOIN {3}.{0} a ON "
          "a.attempt = m.there WHERE m.kind <> 1 ORDER BY m.there",
          table, joined(names, ""), joined(names, "a."), from_));
    }
  }

  // New entries keep the point they were last reopened at; the final attempt is settled anew over the union.
  void settle_entries() {
    change(fmt::format(
               "UPDATE main.plan_entry SET reopened_after = COALESCE((SELECT m.here FROM {0}.plan_entry p "
               "{1} JOIN "
               "temp.merge_map m ON m.there = p.reopened_after WHERE s.id = plan_entry.sweep AND t.key = "
               "plan_entry.trial), 0) WHERE key > ?",
               from_, same_entry(from_)),
           last_entry_);
    std::vector<std::pair<i64, i64>> entries;  // key, sweep
    {
      auto rows = work_.rows(
          "SELECT key, sweep FROM main.plan_entry WHERE key > ? UNION SELECT p.key, p.sweep FROM "
          "temp.merge_map m JOIN "
          "main.attempt a ON a.id = m.here JOIN main.plan_entry p ON p.key = a.entry WHERE m.kind <> 1 ORDER "
          "BY 2, 1",
          last_entry_);
      while (rows.next()) entries.emplace_back(rows.get<i64>(0), rows.get<i64>(1));
    }
    std::optional<i64> sweep;
    SweepRules rules;
    for (const auto& [key, of] : entries) {
      if (work_.failed()) return;
      if (sweep != of) rules = rules_of(work_, of, decide_), sweep = of;
      settle(work_, key, rules);
    }
  }

  void events() {
    counts_.events =
        change(sql("INSERT INTO main.event(sweep, unix_ns, kind, text) SELECT s.id, e.unix_ns, e.kind, "
                   "e.text FROM {from}.event e JOIN "
                   "{from}.sweep f ON f.id = e.sweep JOIN main.sweep s ON s.name = f.name WHERE NOT EXISTS "
                   "(SELECT 1 FROM main.event o "
                   "WHERE o.sweep = s.id AND o.unix_ns = e.unix_ns AND o.kind = e.kind AND o.text = e.text) "
                   "ORDER BY e.id"));
  }

  void say(i64 now) {
    change(sql("INSERT INTO main.event(sweep, unix_ns, kind, text) SELECT s.id, ?, 'merged', ? FROM "
               "{from}.sweep f JOIN "
               "main.sweep s ON s.name = f.name"),
           now,
           fmt::format("{}: {} trials and {} results new, {} results known", shown_, counts_.trials,
                       counts_.attempts + counts_.replaced, counts_.known));
  }

  Transaction& work_;
  std::string from_, shown_;
  const DecideTrial& decide_;
  i64 last_entry_ = 0;
  MergeCounts counts_;
};

void refuse_unknown_columns(Transaction& work, const std::string& from, const std::string& shown) {
  for (const char* table : {"sweep", "trial", "plan_entry", "allocation", "environment", "attempt",
                            "rank_record", "step_sample", "result"}) {
    const Names here = columns_of(work, "main", table);
    for (const auto& name : columns_of(work, from, table))
      if (std::ranges::find(here, name) == here.end())
        work.refuse(fmt::format(
            "'{}' has a column '{}' in its table '{}' that this sweep does not know; merge with the newer "
            "sweep that wrote it",
            shown, name, table));
  }
}

}  // namespace

std::vector<i64> shared_sweeps(Transaction& work, const std::string& from) {
  std::vector<i64> out;
  auto rows = work.rows(
      fmt::format("SELECT s.id FROM {}.sweep f JOIN main.sweep s ON s.name = f.name ORDER BY s.id", from));
  while (rows.next()) out.push_back(rows.get<i64>(0));
  return out;
}

void check_mergeable(Transaction& work, const std::string& from, const std::string& shown) {
  refuse_unknown_columns(work, from, shown);
  refuse_if(
      work,
      fmt::format(
          // An empty text and one that is not JSON state no option.
          "SELECT s.name FROM {}.sweep f JOIN main.sweep s ON s.name = f.name WHERE "
          "(CASE WHEN json_valid(s.options_json) THEN COALESCE(json_extract(s.options_json, '$.imported'), "
          "0) "
          "ELSE 0 END) <> "
          "(CASE WHEN json_valid(f.options_json) THEN COALESCE(json_extract(f.options_json, '$.imported'), "
          "0) "
          "ELSE 0 END) LIMIT 1",
          from),
      "sweep '{1}' was imported in one of the databases and run in the other ('{0}'); import it again under "
      "another "
      "name (`sweep import --sweep NAME`)",
      shown);
  refuse_if(work,
            fmt::format("SELECT f.id FROM {0}.allocation f JOIN main.allocation a ON a.id = f.id JOIN "
                        "{0}.sweep fs ON fs.id = "
                        "f.sweep JOIN main.sweep s ON s.id = a.sweep WHERE a.created_unix_ns <> "
                        "f.created_unix_ns OR s.name <> "
                        "fs.name LIMIT 1",
                        from),
            "allocation '{1}' of '{0}' is another one than that of the same name here; the file was altered "
            "by hand, or two "
            "allocations drew the same name",
            shown);
  std::string differs = "t.spec <> f.spec";
  for (const auto& name : copied(work, from, "trial", {"key", "id", "spec"}))
    differs += fmt::format(" OR t.{0} IS NOT f.{0}", sql_name(name));
  refuse_if(work,
            fmt::format("SELECT f.id FROM {}.trial f JOIN main.trial t ON t.id = f.id WHERE {} LIMIT 1", from,
                        differs),
            "trial '{1}' of '{0}' is another configuration than that of the same id here; the file was "
            "altered by hand",
            shown);
}

MergeCounts merge_rows(Transaction& work, const std::string& from, const std::string& shown,
                       const DecideTrial& decide, i64 now) {
  return Merge(work, from, shown, decide).run(now);
}

}  // namespace sweep::store
