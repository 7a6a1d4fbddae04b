// Answers of other sweeps taken over: the entry's final attempt is then an attempt of another entry.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "orchestrator/store/rows.h"
#include "orchestrator/store/store_file.h"
#include "orchestrator/store/sweep_rows.h"
#include "schema/codec.h"

namespace sweep::store {
namespace {

// The sweeps of this build whose ranks were as many of a trial's as this sweep's are: in a rehearsal some, else all.
std::vector<i64> sweeps_alike(Transaction& work, i64 sweep, const std::string& build) {
  const auto ranks = options_of(work, sweep).rehearse_ranks;
  std::vector<i64> out;
  for (const SweepRow& row : all_sweeps(work))
    if (row.options.build == build && row.options.rehearse_ranks == ranks) out.push_back(row.id);
  return out;
}

}  // namespace

Expected<WorkQueue::Reused> WorkQueue::reuse(i64 sweep, const std::string& build, const std::string& host) {
  Transaction work(*file_.db, Transaction::kWrite);
  file_.leases.guard(work, sweep);
  struct Found {
    i64 entry = 0, attempt = 0;
    Outcome outcome = Outcome::kOk;
  };
  std::vector<Found> found;
  Reused out;
  const std::string alike = dump(sweeps_alike(work, sweep, build));
  {
    auto rows = work.rows(R"(
        SELECT p.key, q.final_attempt, q.outcome, s.name, max(r.posted_unix_ns)
        FROM plan_entry p
        JOIN sweep own ON own.id = p.sweep
        JOIN trial t ON t.key = p.trial
        JOIN plan_entry q ON q.trial = p.trial AND q.sweep <> p.sweep
        JOIN sweep s ON s.id = q.sweep
        JOIN attempt r ON r.id = q.final_attempt
        LEFT JOIN result v ON v.attempt = r.id
        WHERE p.sweep = ?1 AND p.state = State::kPending AND q.state = State::kFinished
          AND q.sweep IN (SELECT value FROM json_each(?2))
          AND q.outcome IN (Outcome::kOk, Outcome::kOom, Outcome::kUnsupported)
          AND v.steps_saved IS NULL AND s.measure_json = own.measure_json
          AND (t.hardware <> 'cpu' OR ?3 = ''
               OR EXISTS (SELECT 1 FROM environment e WHERE e.allocation = r.allocation AND e.host = ?3))
        GROUP BY p.key)",
                          sweep, alike, host);
    while (rows.next()) {
      found.push_back({rows.get<i64>(0), rows.get<i64>(1), rows.get<Outcome>(2)});
      const auto name = rows.get<std::string>(3);
      if (std::ranges::find(out.sweeps, name) == out.sweeps.end()) out.sweeps.push_back(name);
    }
  }
  for (const Found& each : found)
    work.run("UPDATE plan_entry SET state = State::kFinished, outcome = ?, final_attempt = ? WHERE key = ?",
             each.outcome, each.attempt, each.entry);
  out.trials = static_cast<i64>(found.size());
  pack(work, file_.selects, file_.dependencies.most_unpacked);
  return work.commit(std::move(out));
}

}  // namespace sweep::store
