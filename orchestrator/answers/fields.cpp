#include "orchestrator/answers/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/statistics/grouping.h"
#include "schema/labels.h"
#include "schema/ranking.h"

namespace sweep::answers {
namespace {

Value value_of(const nlohmann::json& v) {
  if (v.is_boolean()) return Value{std::string(v.get<bool>() ? "true" : "false")};
  if (v.is_number_integer()) return Value{v.get<i64>()};
  if (v.is_number()) return Value{v.get<double>()};
  if (v.is_string()) return Value{v.get<std::string>()};
  return {};
}

// Name -> unit; empty: it has none.
using LabelUnits = std::map<std::string, std::string>;

void add_names(LabelUnits& names, const ResultRow& row) {
  if (row.trial.labels.empty()) return;
  const auto labels = label_members(row.trial.labels);
  for (const auto& item : labels.items())
    if (is_label_name(item.key())) names.try_emplace(item.key());
  const auto units = labels.find(kLabelUnits);
  if (units == labels.end() || !units->is_object()) return;
  for (const auto& item : units->items())
    if (const auto name = names.find(item.key()); name != names.end() && item.value().is_string())
      name->second = item.value().get<std::string>();
}

// One row for each text of labels: many rows share one, and reading it takes longer than comparing it.
std::vector<const ResultRow*> one_by_labels(std::span<const ResultRow> rows) {
  std::unordered_set<std::string_view> seen;
  std::vector<const ResultRow*> out;
  for (const ResultRow& row : rows)
    if (seen.insert(row.trial.labels).second) out.push_back(&row);
  return out;
}

LabelUnits label_names(std::span<const ResultRow* const> rows) {
  LabelUnits names;
  for (const ResultRow* row : rows) add_names(names, *row);
  return names;
}

LabelUnits label_names(std::span<const ResultRow> rows) {
  return label_names(one_by_labels(rows));
}

LabelUnits label_names(const ResultColumns& columns) {
  LabelUnits names;
  const auto labels = columns.coded.find("labels");
  if (labels == columns.coded.end()) return names;
  ResultRow row;
  for (const Value& value : labels->second.values) {
    const auto* text = std::get_if<std::string>(&value);
    row.trial.labels = text ? *text : "";
    add_names(names, row);
  }
  return names;
}

std::string suggestion(std::string_view name, const std::vector<std::string>& known) {
  const auto near = shape::nearest(name, known);
  return near ? fmt::format("; did you mean '{}'?", *near)
              : "; `sweep query \"select * from results limit 1\"` shows them all.";
}

}  // namespace

Expected<Field> Field::resolve(std::string_view name, std::span<const ResultRow> rows) {
  if (const Column* column = find_column(name)) return Field(*column);
  return among(name, label_names(rows));
}

Expected<Field> Field::resolve(std::string_view name, const ResultColumns& columns) {
  if (const Column* column = find_column(name)) return Field(*column);
  return among(name, label_names(columns));
}

Expected<Field> Field::among(std::string_view name, const std::map<std::string, std::string>& labels) {
  if (const auto label = labels.find(std::string(name)); label != labels.end())
    return Field(label->first, label->second);
  std::vector<std::string> known;
  for (const auto& [label, unit] : labels) known.push_back(label);
  for (const Column& c : columns()) known.emplace_back(c.key);
  return fail(ErrorKind::kUnknownName, name, "There is no axis, label or metric '{}'{}", safe_text(name),
              suggestion(name, known));
}

Value Field::of(const ResultRow& row) const {
  if (column_) return column_->get(row);
  const auto labels = label_members(row.trial.labels);
  const auto it = labels.find(name_);
  return it == labels.end() ? Value{} : value_of(*it);
}

Expected<Field> resolve_metric(std::string_view name) {
  const Column* column = find_column(name);
  if (column && column->role == Role::kMetric && column->type != "text") return Field(*column);
  std::vector<std::string> known;
  for (const Column& c : columns()) {
    if (c.role == Role::kMetric && c.type != "text") known.emplace_back(c.key);
  }
  return fail(ErrorKind::kInvalidValue, name, "'{}' is not a metric with numbers{}", safe_text(name),
              suggestion(name, known));
}

Expected<Field> resolve_ranked(std::string_view name) {
  auto metric = resolve_metric(name);
  if (metric && find_column(name)->better == Better::kNone)
    return fail(ErrorKind::kInvalidValue, name,
                "No value of '{}' is better than another, so nothing can be ranked by it. Rank by "
                "one of these: {}.",
                name, ranked_metrics());
  return metric;
}

bool lower_is_better(std::string_view metric) {
  const Column* column = find_column(metric);
  return column && column->better == Better::kLower;
}

namespace {

// The axes that all rows have one value of, by the members of their trials, which compare faster than values. Where a
// program knows some axes only, equal members are not enough, and the set is empty.
std::unordered_set<std::string_view> shared_axes(std::span<const ResultRow> rows) {
  std::unordered_set<std::string_view> out;
  const auto knows_some = [](const ResultRow& r) {
    return r.trial.labels.find(kLabelAxes) != std::string::npos;
  };
  if (std::ranges::any_of(rows, knows_some)) return out;
  const Trial& first = rows.front().trial;
#define AXIS(type, key, ...)                                                                   \
  if (std::ranges::all_of(rows, [&](const ResultRow& r) { return r.trial.key == first.key; })) \
    out.insert(#key);
#define CHOICE(Enum, key, ...) AXIS(Enum, key)
#include "schema/fields.def"
#undef CHOICE
#undef AXIS
  return out;
}

}  // namespace

std::vector<Field> varying(std::span<const ResultRow> rows) {
  std::vector<Field> out;
  if (rows.empty()) return out;
  const auto shared = shared_axes(rows);
  for (const Column& column : columns()) {
    if (column.role != Role::kAxis || shared.contains(column.key)) continue;
    const Value first = column.get(rows.front());
    if (std::ranges::any_of(rows, [&](const ResultRow& r) { return column.get(r) != first; }))
      out.emplace_back(column);
  }
  const auto labelled = one_by_labels(rows);
  for (const auto& [name, unit] : label_names(labelled)) {
    if (find_column(name)) continue;
    const Field field(name, unit);
    const Value first = field.of(rows.front());
    if (std::ranges::any_of(labelled, [&](const ResultRow* r) { return field.of(*r) != first; }))
      out.push_back(field);
  }
  return out;
}

std::vector<Field> all_fields(const ResultColumns& columns) {
  std::vector<Field> out;
  for (const Column& column : sweep::columns()) out.emplace_back(column);
  for (const auto& [name, unit] : label_names(columns)) {
    if (!find_column(name)) out.emplace_back(name, unit);
  }
  return out;
}

std::vector<Field> varying(const ResultColumns& columns) {
  std::vector<Field> out = all_fields(columns);
  std::erase_if(out, [&](const Field& field) {
    const Column* column = find_column(field.name());
    if (!column) return coded_values(columns, field).values.size() < 2;
    return column->role != Role::kAxis || columns.coded.find(column->key)->second.values.size() < 2;
  });
  return out;
}

std::vector<Field> varying_among_ok(std::span<const ResultRow> rows) {
  const auto ended_ok = [](const ResultRow& r) {
    return r.state == State::kFinished && r.outcome == Outcome::kOk;
  };
  const auto first = std::find_if(rows.begin(), rows.end(), ended_ok);
  std::vector<Field> out = varying(rows);
  std::erase_if(out, [&](const Field& field) {
    if (first == rows.end()) return false;
    const Value value = field.of(*first);
    return std::none_of(first, rows.end(),
                        [&](const ResultRow& r) { return ended_ok(r) && field.of(r) != value; });
  });
  return out;
}

std::vector<Field> telling_apart(std::span<const Field> fields, std::span<const ResultRow* const> rows) {
  std::vector<Field> out(fields.begin(), fields.end());
  std::erase_if(out, [&](const Field& field) { return index_of(rows, field).keys.size() < 2; });
  const auto told = [&] {
    std::set<std::string> texts;
    for (const ResultRow* row : rows) texts.insert(setting_text(*row, out));
    return texts.size();
  };
  const std::size_t all = told();
  for (const char* follows : {"global_batch_size", "gpus_per_node", "grad_accum"}) {
    const auto at = std::ranges::find(out, follows, &Field::name);
    if (at == out.end()) continue;
    const Field field = *at;
    const auto place = out.erase(at);
    if (told() < all) out.insert(place, field);
  }
  return out;
}

Indexed index_of(std::span<const ResultRow* const> rows, const Field& field) {
  Indexed out;
  out.of.reserve(rows.size());
  std::unordered_map<Value, std::size_t> first_seen;
  std::vector<Value> seen;
  const auto index_of_value = [&](const ResultRow& row) {
    const auto [it, added] = first_seen.try_emplace(field.of(row), seen.size());
    if (added) seen.push_back(it->first);
    return it->second;
  };
  std::unordered_map<std::string_view, std::size_t>
      index_of_labels;  // many rows share a text of labels, which takes long to read
  for (const ResultRow* row : rows) {
    if (!field.is_label()) {
      out.of.push_back(index_of_value(*row));
      continue;
    }
    const auto known = index_of_labels.find(row->trial.labels);
    out.of.push_back(known != index_of_labels.end()
                         ? known->second
                         : index_of_labels.emplace(row->trial.labels, index_of_value(*row)).first->second);
  }
  std::vector<std::size_t> order(seen.size()), place(seen.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const bool a_null = seen[a].index() == 0, b_null = seen[b].index() == 0;
    return a_null != b_null ? b_null : value_less(seen[a], seen[b]);
  });
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    out.keys.push_back(seen[order[i]]);
  }
  for (std::size_t& at : out.of) at = place[at];
  return out;
}

Indexed index_of(std::span<const ResultRow> rows, const Field& field) {
  std::vector<const ResultRow*> pointers;
  pointers.reserve(rows.size());
  for (const ResultRow& row : rows) pointers.push_back(&row);
  return index_of(pointers, field);
}

std::string_view short_name(std::string_view axis) {
  static constexpr std::pair<std::string_view, std::string_view> kShort[] = {{"dp", "DP"},
                                                                             {"tp", "TP"},
                                                                             {"pp", "PP"},
                                                                             {"cp", "CP"},
                                                                             {"ep", "EP"},
                                                                             {"grad_accum", "GAS"},
                                                                             {"micro_batch_size", "MBS"},
                                                                             {"zero", "ZeRO"}};
  for (const auto& [name, brief] : kShort) {
    if (name == axis) return brief;
  }
  return axis;
}

bool any_padding(std::span<const ResultRow> rows) {
  return std::ranges::any_of(rows, has_padding, &ResultRow::metrics);
}

std::optional<std::string_view> run_cost_column(std::span<const ResultRow> rows) {
  const auto costs_more = [](const ResultRow& row) {
    return row.metrics.run_cost_per_mt && row.metrics.run_cost_per_mt != row.metrics.cost_per_mt;
  };
  if (std::ranges::none_of(rows, costs_more)) return std::nullopt;
  return any_padding(rows) ? "useful_run_cost_per_mt" : "run_cost_per_mt";
}

std::string layout(const ResultRow& row, std::span<const Field> shown) {
  static constexpr std::string_view kOrder[] = {
      "dp", "tp", "pp", "cp", "ep", "grad_accum", "micro_batch_size", "zero"};
  std::string out;
  for (const std::string_view axis : kOrder) {
    const auto field =
        std::find_if(shown.begin(), shown.end(), [&](const Field& f) { return f.name() == axis; });
    if (field == shown.end()) continue;
    const Value value = field->of(row);
    if (value.index() != 0)
      out += fmt::format("{}{}{}", out.empty() ? "" : " ", short_name(axis), show(value));
  }
  return out;
}

std::string unit_of_label(const Field& field) {
  return field.is_label() && !field.unit().empty() ? " " + safe_text(field.unit()) : "";
}

std::string setting_text(const ResultRow& row, std::span<const Field> shown) {
  std::string out = layout(row, shown);
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(shown, [&](const Field& f) { return f.name() == name; });
  };
  const bool batch_follows = has("micro_batch_size") && has("grad_accum");
  for (const Field& field : shown) {
    if (field.name() == "global_batch_size" && batch_follows) continue;
    if (short_name(field.name()) != field.name()) continue;  // layout() has said it
    const Value value = field.of(row);
    if (value.index() != 0)
      out += fmt::format("{}{}={}{}", out.empty() ? "" : " ", safe_text(field.name()), show(value),
                         unit_of_label(field));
  }
  return out;
}

std::vector<std::string> setting_names(std::span<const ResultRow> rows, bool with_sweep) {
  const auto shown = varying(rows);
  std::vector<std::string> out;
  for (const ResultRow& row : rows) {
    auto& name = out.emplace_back(with_sweep ? row.sweep + "/" + row.trial.model : row.trial.model);
    for (const Field& field : shown)
      if (field.name() != "model")
        name += fmt::format(" {}={}", short_name(field.name()), show(field.of(row)));
  }
  return out;
}

}  // namespace sweep::answers
