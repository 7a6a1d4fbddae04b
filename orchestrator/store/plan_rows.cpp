// The plan of a sweep in the database: what came, stayed, went and returned; and what is still to be run.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "orchestrator/store/rows.h"
#include "orchestrator/store/settle.h"
#include "orchestrator/store/store_file.h"
#include "orchestrator/store/sweep_rows.h"
#include "schema/codec.h"
#include "schema/run_order.h"

namespace sweep::store {
namespace {

struct KnownTrial {
  i64 entry = 0;
  bool retired = false, seen = false;
};
using KnownTrials = std::unordered_map<std::string, KnownTrial>;

KnownTrials known_trials(Transaction& work, i64 sweep) {
  KnownTrials known;
  auto rows = work.rows(R"(
      SELECT t.id, p.key, p.state FROM plan_entry p JOIN trial t ON t.key = p.trial WHERE p.sweep = ?)",
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
    add_event_row(
        work, sweep, now, EventKind::kMeasureChanged,
        fmt::format("the measuring plan changed from {} to {}; earlier results are kept", *before, json));
}

}  // namespace

Expected<SyncCounts> SweepBook::sync_plan(i64 sweep, std::span<const PlanEntry> plan,
                                          const MeasurePlan& measure) {
  Transaction work(*file_.db, Transaction::kWrite);
  file_.leases.guard(work, sweep);
  note_measure(work, sweep, measure, file_.leases.now());
  const SweepRules rules = rules_of(work, sweep, file_.dependencies.decide_trial);
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
    if (it->second.retired)
      work.run("UPDATE plan_entry SET state = State::kPending WHERE key = ?", it->second.entry);
    if (changed || it->second.retired) settle(work, it->second.entry, rules);
  }
  for (const auto& [id, each] : known) {
    if (each.seen || each.retired) continue;
    ++counts.retired;
    work.run("UPDATE plan_entry SET state = State::kRetired WHERE key = ?", each.entry);
    settle(work, each.entry, rules);
  }
  pack(work, file_.selects, file_.dependencies.most_unpacked);
  return work.commit(counts);
}

Expected<std::vector<PlanEntry>> SweepBook::plan(i64 sweep) {
  Transaction work(*file_.db, Transaction::kRead);
  std::vector<PlanEntry> out;
  SpecCache specs;
  {
    auto rows = work.rows(fmt::format("{} WHERE p.sweep = ? AND p.state <> State::kRetired ORDER BY {}",
                                      plan_entry_select(file_.selects), kRunOrderSql),
                          sweep);
    while (rows.next()) out.push_back(read_plan_entry(rows, specs));
  }
  return work.commit(std::move(out));
}

namespace {

template <class... Bound>
Expected<std::vector<PendingTrial>> pending_where(StoreFile& file, const std::string& rest,
                                                  const Bound&... bound) {
  Transaction work(*file.db, Transaction::kRead);
  std::vector<PendingTrial> out;
  std::vector<i64> keys;
  SpecCache specs;
  {
    auto rows = work.rows(
        plan_entry_select(file.selects) + " WHERE p.sweep = ? AND p.state = State::kPending " + rest,
        bound...);
    while (rows.next()) {
      out.push_back({read_plan_entry(rows, specs), 0, 0});
      keys.push_back(rows.template get<i64>(0));
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Tries tries = tries_of(work, keys[i]);
    out[i].attempts = tries.counted;
    out[i].infra_attempts = tries.infra;
  }
  return work.commit(std::move(out));
}

}  // namespace

Expected<std::vector<PendingTrial>> WorkQueue::pending(i64 sweep, i64 limit) {
  return pending_where(file_, fmt::format("ORDER BY {} LIMIT ?", kRunOrderSql), sweep, limit);
}

Expected<std::vector<PendingTrial>> WorkQueue::pending(i64 sweep, i64 limit, const Fit& fit) {
  return pending_where(file_,
                       fmt::format(R"(
      AND t.nodes BETWEEN ? AND ? AND t.hardware = ? AND t.gpus_per_node <= ?
      ORDER BY t.nodes DESC, {} LIMIT ?)",
                                   kRunOrderSql),
                       sweep, fit.whole ? fit.nodes : 1, fit.nodes, fit.hardware, fit.gpus_per_node, limit);
}

Expected<std::vector<Demand>> WorkQueue::demand(i64 sweep) {
  Transaction work(*file_.db, Transaction::kRead);
  std::vector<Demand> out;
  {
    auto rows = work.rows(R"(
        SELECT t.hardware, t.nodes, max(t.gpus_per_node), count(*),
               COALESCE(sum(p.predicted_seconds), 0), COALESCE(max(p.predicted_seconds), 0),
               sum(p.predicted_seconds IS NULL)
        FROM plan_entry p JOIN trial t ON t.key = p.trial
        WHERE p.sweep = ? AND p.state = State::kPending
        GROUP BY t.hardware, t.nodes
        ORDER BY 2 DESC, 1)",
                          sweep);
    while (rows.next())
      out.push_back({rows.get<std::string>(0), rows.get<i64>(1), rows.get<i64>(2), rows.get<i64>(3),
                     rows.get<double>(4), rows.get<double>(5), rows.get<i64>(6)});
  }
  return work.commit(std::move(out));
}

Expected<std::vector<std::string>> WorkQueue::rule_out(i64 sweep, std::span<const NotRun> trials) {
  std::vector<std::string> out;
  Transaction work(*file_.db, Transaction::kWrite);
  file_.leases.guard(work, sweep);
  const SweepRules rules = rules_of(work, sweep, file_.dependencies.decide_trial);
  for (const NotRun& each : trials) {
    const auto entry = work.one<i64>(R"(
        SELECT p.key FROM plan_entry p JOIN trial t ON t.key = p.trial
        WHERE p.sweep = ? AND t.id = ? AND p.state = State::kPending)",
                                     sweep, each.trial_id);
    if (!entry) continue;
    work.run(R"(
        UPDATE plan_entry SET admitted = ?, verdict = Outcome::kPruned, rule = ?, reason = ? WHERE key = ?)",
             each.audited, each.rule, each.reason, *entry);
    settle(work, *entry, rules);
    out.push_back(each.trial_id);
  }
  pack(work, file_.selects, file_.dependencies.most_unpacked);
  return work.commit(std::move(out));
}

Expected<void> WorkQueue::reopen(i64 sweep, std::span<const Outcome> outcomes,
                                 const std::optional<std::string>& trial) {
  Transaction work(*file_.db, Transaction::kWrite);
  file_.leases.guard(work, sweep);
  reopen_entries(work, sweep, outcomes, trial);
  pack(work, file_.selects, file_.dependencies.most_unpacked);
  return work.commit();
}

}  // namespace sweep::store
