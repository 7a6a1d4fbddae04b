// The plan of a sweep in the database: what came, stayed, went and returned; and what is still to be run.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "orchestrator/store/settle.h"
#include "orchestrator/store/sqlite_store.h"
#include "orchestrator/store/trial_rows.h"
#include "schema/codec.h"

namespace sweep::store {
namespace {

struct KnownTrial {
  i64 entry = 0;
  bool retired = false, seen = false;
};
using KnownTrials = std::unordered_map<std::string, KnownTrial>;

KnownTrials known_trials(Transaction& work, i64 sweep) {
  KnownTrials known;
  auto rows = work.rows(
      "SELECT t.id, p.key, p.state FROM plan_entry p JOIN trial t ON t.key = p.trial WHERE p.sweep = ?",
      sweep);
  while (rows.next())
    known[rows.get<std::string>(0)] = {rows.get<i64>(1), rows.get<State>(2) == State::kRetired, false};
  return known;
}

void note_measure(Transaction& work, i64 sweep, const MeasurePlan& measure, i64 now) {
  const std::string json = dump(to_json(measure));
  const auto before = work.one<std::string>("SELECT measure_json FROM sweep WHERE id = ?", sweep);
  if (!before) return work.refuse(fmt::format("there is no sweep number {}", sweep));
  if (*before == json) return;
  work.run("UPDATE sweep SET measure_json = ? WHERE id = ?", json, sweep);
  if (!before->empty())
    work.run(
        "INSERT INTO event(sweep, unix_ns, kind, text) VALUES (?, ?, 'measure_changed', ?)", sweep, now,
        fmt::format("the measuring plan changed from {} to {}; earlier results are kept", *before, json));
}

}  // namespace

Expected<SyncCounts> SqliteStore::sync_plan(i64 sweep, std::span<const PlanEntry> plan,
                                            const MeasurePlan& measure) {
  Transaction work(*db_, Transaction::kWrite);
  leases_.guard(work, sweep);
  note_measure(work, sweep, measure, leases_.now());
  const SweepRules rules = rules_of(work, sweep, seams_.decide_trial);
  KnownTrials known = known_trials(work, sweep);
  SyncCounts counts;
  for (const PlanEntry& entry : plan) {
    if (work.failed()) break;
    counts.pruned += !entry.admitted;
    const i64 trial = ensure_trial(work, entry);
    const auto it = known.find(entry.id);
    write_entry(work, sweep, trial, entry);
    const bool changed = work.changes() > 0;
    if (it == known.end()) {
      ++counts.added;
      known[entry.id] = {work.last_id(), false, true};
      continue;
    }
    if (it->second.seen) continue;  // the same trial twice in one plan
    it->second.seen = true;
    ++(it->second.retired ? counts.reopened : counts.kept);
    if (it->second.retired) work.run("UPDATE plan_entry SET state = 0 WHERE key = ?", it->second.entry);
    if (changed || it->second.retired) settle(work, it->second.entry, rules);
  }
  for (const auto& [id, each] : known) {
    if (each.seen || each.retired) continue;
    ++counts.retired;
    work.run("UPDATE plan_entry SET state = 4 WHERE key = ?", each.entry);
    settle(work, each.entry, rules);
  }
  pack(work);
  return work.commit(counts);
}

Expected<std::vector<PlanEntry>> SqliteStore::plan(i64 sweep) {
  Transaction work(*db_, Transaction::kRead);
  std::vector<PlanEntry> out;
  SpecCache specs;
  {
    auto rows = work.rows(
        plan_entry_select(selects_) + " WHERE p.sweep = ? AND p.state <> 4 ORDER BY p.place, p.key", sweep);
    while (rows.next()) out.push_back(read_plan_entry(rows, specs));
  }
  return work.commit(std::move(out));
}

template <class... Bound>
Expected<std::vector<PendingTrial>> SqliteStore::pending_where(const std::string& rest,
                                                               const Bound&... bound) {
  Transaction work(*db_, Transaction::kRead);
  std::vector<PendingTrial> out;
  std::vector<i64> keys;
  SpecCache specs;
  {
    auto rows =
        work.rows(plan_entry_select(selects_) + " WHERE p.sweep = ? AND p.state = 0 " + rest, bound...);
    while (rows.next()) {
      out.push_back({read_plan_entry(rows, specs), 0, 0});
      keys.push_back(rows.template get<i64>(0));
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Tries tries = tries_of(work, keys[i]);
    out[i].attempts = tries.counted, out[i].infra_attempts = tries.infra;
  }
  return work.commit(std::move(out));
}

Expected<std::vector<PendingTrial>> SqliteStore::pending(i64 sweep, i64 limit) {
  return pending_where("ORDER BY p.place, p.key LIMIT ?", sweep, limit);
}

Expected<std::vector<PendingTrial>> SqliteStore::pending(i64 sweep, i64 limit, const Fit& fit) {
  return pending_where(
      "AND t.nodes <= ? AND t.hardware = ? AND t.gpus_per_node <= ? ORDER BY t.nodes DESC, p.place, p.key "
      "LIMIT ?",
      sweep, fit.nodes, fit.hardware, fit.gpus_per_node, limit);
}

Expected<std::vector<Demand>> SqliteStore::demand(i64 sweep) {
  Transaction work(*db_, Transaction::kRead);
  std::vector<Demand> out;
  {
    auto rows = work.rows(
        "SELECT t.hardware, t.nodes, max(t.gpus_per_node), count(*), coalesce(sum(p.predicted_seconds), 0), "
        "coalesce(max(p.predicted_seconds), 0), sum(p.predicted_seconds IS NULL) FROM plan_entry p JOIN "
        "trial t "
        "ON t.key = p.trial WHERE p.sweep = ? AND p.state = 0 GROUP BY t.hardware, t.nodes ORDER BY 2 DESC, "
        "1",
        sweep);
    while (rows.next())
      out.push_back({rows.get<std::string>(0), rows.get<i64>(1), rows.get<i64>(2), rows.get<i64>(3),
                     rows.get<double>(4), rows.get<double>(5), rows.get<i64>(6)});
  }
  return work.commit(std::move(out));
}

Expected<void> SqliteStore::reopen(i64 sweep, std::span<const Outcome> outcomes) {
  Transaction work(*db_, Transaction::kWrite);
  leases_.guard(work, sweep);
  reopen_entries(work, sweep, outcomes);
  pack(work);
  return work.commit();
}

}  // namespace sweep::store
