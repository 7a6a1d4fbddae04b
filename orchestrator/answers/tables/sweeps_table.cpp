#include "orchestrator/answers/tables/sweeps_table.h"

#include "schema/rehearsal.h"

namespace sweep::answers {
namespace {

std::string kind_of(const store::SweepRow& sweep) {
  if (is_rehearsal(sweep.name)) return "rehearsal";
  return sweep.options.imported ? "imported" : "measured";
}

Expected<ListedSweep> listed_sweep(store::Store& store, store::SweepRow sweep, const RunBy& run_by) {
  SWEEP_GET(auto last, store.last_result(sweep.name));
  SWEEP_GET(auto counts, store.progress(sweep.id));
  SWEEP_GET(auto runs, run_by(sweep));
  return ListedSweep{std::move(sweep), std::move(counts), std::move(last), std::move(runs)};
}

}  // namespace

Expected<std::vector<ListedSweep>> listed_sweeps(store::Store& store, const RunBy& run_by) {
  SWEEP_GET(auto sweeps, store.sweeps());
  std::vector<ListedSweep> out;
  for (auto& sweep : sweeps) {
    SWEEP_GET(auto listed, listed_sweep(store, std::move(sweep), run_by));
    out.push_back(std::move(listed));
  }
  return out;
}

Table sweeps_table(std::span<const ListedSweep> sweeps) {
  Table table;
  table.columns = {"sweep", "kind", "trials", "answered", "ok", "last_result", "run_by", "question"};
  for (const ListedSweep& each : sweeps)
    table.rows.push_back({each.sweep.name, kind_of(each.sweep), each.counts.total, each.counts.answered(),
                          each.counts.ended(Outcome::kOk),
                          each.last_result ? Value(*each.last_result) : Value(), each.run_by,
                          each.sweep.question});
  return table;
}

}  // namespace sweep::answers
