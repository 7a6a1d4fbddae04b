// Answers of other sweeps taken over: the entry's final attempt is then an attempt of another entry.
#include <algorithm>

#include "orchestrator/store/rows.h"
#include "orchestrator/store/store_file.h"

namespace sweep::store {

Expected<WorkQueue::Reused> WorkQueue::reuse(i64 sweep, const std::string& build, const std::string& host) {
  Transaction work(*file_.db, Transaction::kWrite);
  file_.leases.guard(work, sweep);
  struct Found {
    i64 entry = 0, attempt = 0;
    Outcome outcome = Outcome::kOk;
  };
  std::vector<Found> found;
  Reused out;
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
          AND q.outcome IN (Outcome::kOk, Outcome::kOom, Outcome::kUnsupported)
          AND v.steps_saved IS NULL AND s.measure_json = own.measure_json AND json_extract(NULLIF(s.options_json, ''), '$.build') = ?2
          AND json_extract(NULLIF(s.options_json, ''), '$.rehearse_ranks') IS json_extract(NULLIF(own.options_json, ''), '$.rehearse_ranks')
          AND (t.hardware <> 'cpu' OR ?3 = ''
               OR EXISTS (SELECT 1 FROM environment e WHERE e.allocation = r.allocation AND e.host = ?3))
        GROUP BY p.key)",
                          sweep, build, host);
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
  pack(work, file_.selects, file_.dependencies.most_loose);
  return work.commit(std::move(out));
}

}  // namespace sweep::store
