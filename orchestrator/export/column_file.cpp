#include "orchestrator/export/column_file.h"

#include <bit>
#include <nlohmann/json.hpp>
#include <numeric>
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

nlohmann::json heading(const FileColumn& column) {
  nlohmann::json out = {{"name", column.name}, {"type", column.type}, {"unit", column.unit}};
  if (column.numbers) return out;
  auto values = nlohmann::json::array();
  for (const Value& value : column.coded->values) values.push_back(json_of(value));
  out["values"] = std::move(values);
  return out;
}

// The ids of the rows: each its own value.
CodedColumn ids_of(const ResultColumns& rows) {
  CodedColumn out;
  out.of.resize(rows.size());
  std::iota(out.of.begin(), out.of.end(), 0u);
  for (const std::string_view id : rows.trial) out.values.emplace_back(std::string(id));
  return out;
}

// The type that all values have; null has every type.
std::string type_of(std::span<const Value> values) {
  bool whole = true, number = true;
  for (const Value& value : values) {
    if (std::holds_alternative<std::string>(value)) number = false;
    if (std::holds_alternative<double>(value)) whole = false;
  }
  return !number ? "text" : whole ? "i64" : "f64";
}

// A number beside words, as a word. Null stays.
Value as_text(const Value& value) {
  if (std::holds_alternative<std::string>(value)) return value;
  const nlohmann::json json = json_of(value);
  return json.is_null() ? value : Value(json.dump());
}

// Gives the column codes of its own.
void keep(FileColumn& column, CodedColumn coded) {
  column.own = std::make_unique<const CodedColumn>(std::move(coded));
  column.coded = column.own.get();
}

template <class T>
void put_bytes(std::ostream& out, const std::vector<T>& values) {
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(T)));
}

}  // namespace

ColumnSelection selection_of(std::span<const Column* const> columns) {
  ColumnSelection out;
  for (const Column* column : columns)
    if (column->key != kId) (is_number(*column) ? out.numbers : out.coded).emplace_back(column->key);
  return out;
}

FileColumn file_column(const Column& column, const ResultColumns& rows) {
  FileColumn out{std::string(column.key), std::string(column.type), std::string(column.unit)};
  if (column.key == kId)
    keep(out, ids_of(rows));
  else if (is_number(column))
    out.numbers = &rows.numbers.find(column.key)->second;
  else
    out.coded = &rows.coded.find(column.key)->second;
  return out;
}

FileColumn file_column(std::string name, std::string unit, CodedColumn coded) {
  FileColumn out{std::move(name), type_of(coded.values), std::move(unit)};
  if (out.type == "text")
    for (Value& value : coded.values) value = as_text(value);
  keep(out, std::move(coded));
  return out;
}

Expected<void> write_columns(std::ostream& out, std::span<const FileColumn> columns, std::size_t rows) {
  nlohmann::json head = {{"rows", rows}, {"columns", nlohmann::json::array()}};
  for (const FileColumn& column : columns) head["columns"].push_back(heading(column));
  out << head.dump() << '\n';
  for (const FileColumn& column : columns)
    column.numbers ? put_bytes(out, *column.numbers) : put_bytes(out, column.coded->of);
  return out.flush() ? Expected<void>{} : fail(std::string(kWriteFailed));
}

}  // namespace sweep::exports
