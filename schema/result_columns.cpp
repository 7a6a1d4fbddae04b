#include "schema/result_columns.h"

#include <limits>

#include "schema/columns.h"

namespace sweep {
namespace {

double number_or_nan(const Value& value) {
  if (const auto* whole = std::get_if<i64>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::uint32_t CodedColumn::code_of(const Value& value) {
  const auto [it, added] = codes_.try_emplace(value, static_cast<std::uint32_t>(values.size()));
  if (added) values.push_back(value);
  return it->second;
}

ResultColumns ResultColumns::empty(const ColumnSelection& selection) {
  ResultColumns out;
  for (const auto& name : selection.coded)
    if (find_column(name)) out.coded[name];
  for (const auto& name : selection.numbers)
    if (find_column(name)) out.numbers[name];
  return out;
}

void ResultColumns::append(std::span<const ResultRow> rows, std::span<const i64> entries) {
  entry.insert(entry.end(), entries.begin(), entries.end());
  auto ids = std::make_shared<std::string>();
  for (const ResultRow& row : rows) *ids += row.trial_id;
  std::size_t at = 0;
  for (const ResultRow& row : rows) {
    trial.push_back(std::string_view(*ids).substr(at, row.trial_id.size()));
    at += row.trial_id.size();
  }
  held.push_back(std::move(ids));
  for (auto& [name, column] : coded) {
    const auto get = find_column(name)->get;
    for (const ResultRow& row : rows) column.append(get(row));
  }
  for (auto& [name, column] : numbers) {
    const auto get = find_column(name)->get;
    for (const ResultRow& row : rows) column.push_back(number_or_nan(get(row)));
  }
}

}  // namespace sweep
