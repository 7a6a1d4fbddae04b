#include "orchestrator/export/finished_trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "orchestrator/export/benchmark_json.h"
#include "orchestrator/export/results.h"
#include "schema/codec.h"

namespace sweep::exports {

FinishedTrials::FinishedTrials(ExportedSweep sweep, const std::vector<ResultRow>& rows,
                               std::span<const std::string> names, StepsOf steps_of)
    : sweep_(std::move(sweep)), steps_of_(std::move(steps_of)) {
  for (auto& named : named_rows(rows, names))
    if (is_exported(*named.row)) rows_.emplace_back(std::move(named.name), *named.row);
  left_out_ = static_cast<i64>(rows.size()) - size();
}

Expected<TrackerRun> FinishedTrials::run(i64 index) const {
  const auto& [name, row] = rows_[static_cast<std::size_t>(index)];
  SWEEP_GET(auto steps, steps_of_(row));
  return tracker_run(row, std::move(steps), name, sweep_.question);
}

Expected<TrackerSweep> FinishedTrials::as_whole() const {
  TrackerSweep out;
  out.name = sweep_.name, out.question = sweep_.question, out.grid_text = sweep_.grid_text;
  out.id = name_hash(fmt::format("sweep\n{}\n{}", out.name, sweep_.created_unix_ns));
  out.created_unix_s = out.ended_unix_s = static_cast<double>(sweep_.created_unix_ns) / 1e9;
  std::vector<ResultRow> rows;
  for (const auto& [name, row] : rows_) {
    rows.push_back(row);
    out.ended_unix_s =
        std::max(out.ended_unix_s, static_cast<double>(row.finished_unix_ns.value_or(0)) / 1e9);
  }
  std::ostringstream csv;
  SWEEP_TRY(write_csv(csv, rows_of(rows)));
  out.results_csv = csv.str();
  return out;
}

}  // namespace sweep::exports
