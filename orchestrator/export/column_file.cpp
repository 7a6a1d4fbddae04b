#include "orchestrator/export/column_file.h"

#include <bit>
#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/export/text.h"
#include "schema/values.h"

namespace sweep::exports {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are written as they lie in memory");

constexpr std::string_view kId = "trial";

bool is_number(const Column& column) {
  return column.role == Role::kMetric && column.type != "text";
}

nlohmann::json json_of(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? nlohmann::json(valid_utf8(*text)) : value_json(value);
}

nlohmann::json heading(const Column& column, const ResultColumns& rows) {
  nlohmann::json out = {{"name", column.key}, {"type", column.type}, {"unit", column.unit}};
  if (is_number(column)) return out;
  auto values = nlohmann::json::array();
  if (column.key == kId)
    for (const std::string_view id : rows.trial) values.push_back(id);
  else
    for (const Value& value : rows.coded.find(column.key)->second.values) values.push_back(json_of(value));
  out["values"] = std::move(values);
  return out;
}

template <class T>
void put_bytes(std::ostream& out, const std::vector<T>& values) {
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(T)));
}

void put_column(std::ostream& out, const Column& column, const ResultColumns& rows) {
  if (is_number(column)) return put_bytes(out, rows.numbers.find(column.key)->second);
  if (column.key != kId) return put_bytes(out, rows.coded.find(column.key)->second.of);
  std::vector<std::uint32_t> each_its_own(rows.size());
  for (std::uint32_t row = 0; row < each_its_own.size(); ++row) each_its_own[row] = row;
  put_bytes(out, each_its_own);
}

}  // namespace

ColumnSelection selection_of(std::span<const Column* const> columns) {
  ColumnSelection out;
  for (const Column* column : columns)
    if (column->key != kId) (is_number(*column) ? out.numbers : out.coded).emplace_back(column->key);
  return out;
}

Expected<void> write_columns(std::ostream& out, std::span<const Column* const> columns,
                             const ResultColumns& rows) {
  nlohmann::json head = {{"rows", rows.size()}, {"columns", nlohmann::json::array()}};
  for (const Column* column : columns) head["columns"].push_back(heading(*column, rows));
  out << head.dump() << '\n';
  for (const Column* column : columns) put_column(out, *column, rows);
  return out.flush() ? Expected<void>{} : fail(std::string(kWriteFailed));
}

}  // namespace sweep::exports
