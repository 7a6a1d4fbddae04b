// The report's section on trials over several kinds of device: which is the slower one in each, and by how much.
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/pages/report_parts.h"
#include "schema/hardware_kinds.h"

namespace sweep::answers::parts {

std::string several_kinds(const ReportInput& in) {
  constexpr std::size_t kMost = 20;  // each reads the records of an attempt
  const auto differ = varying(in.rows);
  Table table;
  table.columns = {"trial", "configuration", "nodes of several kinds"};
  for (const ResultRow& row : in.rows) {
    if (!in.node_times_of || row.outcome != Outcome::kOk || !is_mixed(row.trial.hardware)) continue;
    if (table.rows.size() == kMost) break;
    if (auto said = slower_kind(row.trial, in.node_times_of(row)); !said.empty())
      table.rows.push_back({row.trial_id, name_of(row, differ), std::move(said)});
  }
  return table.rows.empty() ? "" : html_table(std::move(table), Names(in.rows));
}

}  // namespace sweep::answers::parts
