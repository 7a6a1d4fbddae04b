// Field: a name people use for a value of a row (a column of schema/columns.h, or a label of the grid's
// `derive:`), resolved once. It also knows which way a metric is better.
#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "schema/columns.h"
#include "schema/result_columns.h"

namespace sweep::answers {

class Field {
 public:
  // Error: no such column, and no row carries such a label; names the nearest one.
  static Expected<Field> resolve(std::string_view name, std::span<const ResultRow> rows);
  // The same of columns, which hold `labels` where the name may be one.
  static Expected<Field> resolve(std::string_view name, const ResultColumns&);
  explicit Field(const Column& column) : name_(column.key), column_(&column) {}
  Field(std::string label, std::string unit) : name_(std::move(label)), label_unit_(std::move(unit)) {}

  const std::string& name() const { return name_; }
  std::string_view unit() const { return column_ ? column_->unit : std::string_view(label_unit_); }
  bool is_label() const { return column_ == nullptr; }
  Value of(const ResultRow&) const;

 private:
  // labels: name -> unit.
  static Expected<Field> among(std::string_view name, const std::map<std::string, std::string>& labels);
  std::string name_, label_unit_;
  const Column* column_ = nullptr;  // null: a label
};

// A metric of the table with numbers; error: names the nearest metric.
Expected<Field> resolve_metric(std::string_view name);
// A metric that has a better and a worse; error: it has none, or is no metric.
Expected<Field> resolve_ranked(std::string_view name);
// The direction of the metric in schema/fields.def.
bool lower_is_better(std::string_view metric);

// Every column, in table order, then the labels that are not named like one. The columns must hold `labels`, coded.
std::vector<Field> all_fields(const ResultColumns&);
// The axes and labels whose value differs between rows (model among them), in table order.
std::vector<Field> varying(std::span<const ResultRow> rows);
std::vector<Field> varying(const ResultColumns&);  // the columns must hold every axis and `labels`, coded
// The fields that differ between the rows that ended ok: they tell answers apart.
std::vector<Field> varying_among_ok(std::span<const ResultRow> rows);

// The ones of `fields` that differ between these rows, without those that follow from others: enough to tell
// the rows apart.
std::vector<Field> telling_apart(std::span<const Field> fields, std::span<const ResultRow* const> rows);

// The distinct values of a field, ascending (numbers by value, text in natural order, NULL last), and each
// row's place among them.
struct Indexed {
  std::vector<Value> keys;
  std::vector<std::size_t> of;
};
Indexed index_of(std::span<const ResultRow> rows, const Field& field);
Indexed index_of(std::span<const ResultRow* const> rows, const Field& field);

// Whether one of them has padding: then answers rank by useful tokens.
bool any_padding(std::span<const ResultRow>);
// The column of the cost of a run with its checkpoints and evaluations: run_cost_per_mt, or its useful form where rows have
// padding. nullopt: no row has any of these and a cost.
std::optional<std::string_view> run_cost_column(std::span<const ResultRow>);

// The layout in short, of the axes named: "DP8 TP4 GAS16 MBS2 Z1".
std::string layout(const ResultRow&, std::span<const Field> shown);
// The values that tell this row apart, in short: "TP2 ZeRO1 recompute=full"; empty for no fields.
std::string setting_text(const ResultRow&, std::span<const Field> shown);
std::string unit_of_label(
    const Field&);  // " ms" behind the value of a grid's own axis; built-in names say theirs
// The names of the rows for people: model and the axes that vary, in short.
std::vector<std::string> setting_names(std::span<const ResultRow>, bool with_sweep);
std::string_view short_name(std::string_view axis);  // DP, TP, GAS, ...; the axis itself where it has none

}  // namespace sweep::answers
