#include "orchestrator/cli/sweeps_table.h"

#include "orchestrator/driver/holder.h"
#include "schema/rehearsal.h"

namespace sweep::cli {
namespace {

std::string kind_of(const store::SweepRow& sweep) {
  if (is_rehearsal(sweep.name)) return "rehearsal";
  return sweep.options.imported ? "imported" : "measured";
}

Expected<std::vector<Value>> row_of(store::Store& store, const store::SweepRow& sweep) {
  const auto last = store.last_result(sweep.name);
  if (!last) return tl::unexpected(last.error());
  const auto counts = store.progress(sweep.id);
  if (!counts) return tl::unexpected(counts.error());
  const auto holder = driver::holder_of(store, sweep.id);
  if (!holder) return tl::unexpected(holder.error());
  std::vector<Value> out{sweep.name,
                         kind_of(sweep),
                         counts->total,
                         counts->answered(),
                         counts->ended(Outcome::kOk),
                         *last ? Value(**last) : Value()};
  out.emplace_back(*holder ? driver::standing_text(**holder) : std::string());
  out.emplace_back(sweep.question);
  return out;
}

}  // namespace

Expected<Table> sweeps_table(store::Store& store) {
  const auto sweeps = store.sweeps();
  if (!sweeps) return tl::unexpected(sweeps.error());
  Table table;
  table.columns = {"sweep", "kind", "trials", "answered", "ok", "last_result", "run_by", "question"};
  for (const auto& sweep : *sweeps) {
    auto row = row_of(store, sweep);
    if (!row) return tl::unexpected(row.error());
    table.rows.push_back(std::move(*row));
  }
  return table;
}

}  // namespace sweep::cli
