#include "orchestrator/answers/tables/rehearsed_plan.h"

#include <algorithm>
#include <cmath>

#include "orchestrator/store/store.h"
#include "schema/rehearsal.h"

namespace sweep::answers {
namespace {

std::optional<i64> bytes_of(double value) {
  return std::isnan(value) ? std::nullopt : std::optional(static_cast<i64>(value));
}

Value value_of(const std::optional<i64>& bytes) {
  return bytes ? Value{*bytes} : Value{};
}

Expected<void> add_results(store::Store& store, i64 sweep, RehearsedTrials& out) {
  const auto columns =
      store.result_columns(sweep, {{"outcome"}, {"peak_allocated_bytes", "peak_reserved_bytes"}});
  if (!columns) return tl::unexpected(columns.error());
  const auto& outcomes = columns->coded.at("outcome");
  const auto& allocated = columns->numbers.at("peak_allocated_bytes");
  const auto& reserved = columns->numbers.at("peak_reserved_bytes");
  for (std::size_t i = 0; i < columns->size(); ++i) {
    const auto* word = std::get_if<std::string>(&outcomes.at(i));
    const auto outcome = word ? outcome_from(*word) : std::nullopt;
    if (!outcome || *outcome == Outcome::kPruned) continue;
    out.insert_or_assign(std::string(columns->trial[i]),
                         Rehearsed{*outcome, bytes_of(allocated[i]), bytes_of(reserved[i])});
  }
  return {};
}

}  // namespace

Expected<RehearsedTrials> rehearsed_in(const std::string& db) {
  RehearsedTrials out;
  const auto file = store::read_sweeps(db);
  if (!file) return tl::unexpected(file.error());
  for (const auto& sweep : file->sweeps) {
    if (!is_rehearsal(sweep.name)) continue;
    if (auto added = add_results(*file->store, sweep.id, out); !added) return tl::unexpected(added.error());
  }
  return out;
}

void add_rehearsed(Table& table, const RehearsedTrials& rehearsed) {
  const auto ids =
      static_cast<std::size_t>(std::ranges::find(table.columns, "trial") - table.columns.begin());
  for (const char* name : {"rehearsed_outcome", "rehearsed_allocated_bytes", "rehearsed_reserved_bytes"})
    table.columns.emplace_back(name);
  for (auto& row : table.rows) {
    const auto found = rehearsed.find(std::get<std::string>(row[ids]));
    const bool there = found != rehearsed.end();
    row.push_back(there ? Value{std::string(to_string(found->second.outcome))} : Value{});
    row.push_back(there ? value_of(found->second.allocated_bytes) : Value{});
    row.push_back(there ? value_of(found->second.reserved_bytes) : Value{});
  }
}

}  // namespace sweep::answers
