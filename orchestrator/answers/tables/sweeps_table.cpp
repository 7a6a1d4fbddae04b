#include "orchestrator/answers/tables/sweeps_table.h"

#include "schema/rehearsal.h"

namespace sweep::answers {
namespace {

std::string kind_of(const store::SweepRow& sweep) {
  if (is_rehearsal(sweep.name)) return "rehearsal";
  return sweep.options.imported ? "imported" : "measured";
}

Expected<ListedSweep> listed_sweep(store::Store& store, store::SweepRow sweep, const RunBy& run_by) {
  auto last = store.last_result(sweep.name);
  if (!last) return tl::unexpected(last.error());
  auto counts = store.progress(sweep.id);
  if (!counts) return tl::unexpected(counts.error());
  auto runs = run_by(sweep);
  if (!runs) return tl::unexpected(runs.error());
  return ListedSweep{std::move(sweep), std::move(*counts), std::move(*last), std::move(*runs)};
}

}  // namespace

Expected<std::vector<ListedSweep>> listed_sweeps(store::Store& store, const RunBy& run_by) {
  auto sweeps = store.sweeps();
  if (!sweeps) return tl::unexpected(sweeps.error());
  std::vector<ListedSweep> out;
  for (auto& sweep : *sweeps) {
    auto listed = listed_sweep(store, std::move(sweep), run_by);
    if (!listed) return tl::unexpected(listed.error());
    out.push_back(std::move(*listed));
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
