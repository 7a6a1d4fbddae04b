#include "orchestrator/grid/own_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "orchestrator/grid/read_values.h"
#include "orchestrator/grid/scope.h"
#include "schema/columns.h"

namespace sweep::grid {
namespace {

constexpr std::size_t kMostAxes = 64;
// Columns of the view `results` and members of rows beside those of schema/columns.h.
constexpr std::array<std::string_view, 5> kOtherColumns{"name", "phase", "cause_rank", "rule", "model_spec"};
constexpr std::array<std::string_view, 4> kAxisKeys{"type", "default", "unit", "values"};

const std::map<std::string_view, Type> kTypes{
    {"integer", Type::kInt}, {"number", Type::kReal}, {"flag", Type::kBool}, {"text", Type::kText}};

bool is_axis_name(std::string_view name) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= 64 && name[0] >= 'a' && name[0] <= 'z' &&
         std::ranges::all_of(name, fits);
}

Status axis_type(const DocumentPtr& document, const Entry& entry, OwnAxis& out) {
  const Node* type = entry.value->find("type");
  if (type == nullptr)
    return document->refuse(entry.place, {ErrorKind::kMissing, "type"},
                            "{} has no 'type': integer, number, flag or text", entry.key);
  SWEEP_GET(const auto word, read_word(*document, *type, "type"));
  const auto known = kTypes.find(word);
  if (known == kTypes.end())
    return document->refuse(type->place, {ErrorKind::kInvalidValue, word},
                            "'{}' is not a type; use integer, number, flag or text", word);
  out.type = known->second;
  return {};
}

Status axis_values(const DocumentPtr& document, const Entry& entry, OwnAxis& out) {
  const Entry* values = entry.value->entry("values");
  if (values == nullptr) return {};
  SWEEP_TRY(need_list(*document, *values->value, "values"));
  if (out.type != Type::kText)
    return document->refuse(values->place, {ErrorKind::kConflict, "values"},
                            "{} is no text; 'values' lists the words of a text", entry.key);
  for (const NodePtr& item : values->value->items) {
    SWEEP_GET(auto word, read_word(*document, *item, "values"));
    out.values.push_back(std::move(word));
  }
  return {};
}

Expected<OwnAxis> own_axis(const DocumentPtr& document, const Entry& entry) {
  if (!is_axis_name(entry.key))
    return document->refuse(entry.place, {ErrorKind::kInvalidValue, entry.key},
                            "'{}' is no name of an axis: lower-case letters, digits and _", entry.key);
  SWEEP_TRY(need_map(*document, *entry.value, entry.place, entry.key));
  SWEEP_TRY(check_keys(*document, *entry.value, kAxisKeys, fmt::format("of {}", entry.key)));
  OwnAxis out;
  out.name = entry.key;
  out.place = entry.place;
  out.document = document;
  SWEEP_TRY(axis_type(document, entry, out));
  const Entry* preset = entry.value->entry("default");
  if (preset == nullptr)
    return document->refuse(entry.place, {ErrorKind::kMissing, "default"},
                            "{} has no 'default': its value where the grid gives none", entry.key);
  out.preset = preset->value;
  if (const Node* unit = entry.value->find("unit")) {
    SWEEP_GET(out.unit, read_word(*document, *unit, "unit", 32));
  }
  SWEEP_TRY(axis_values(document, entry, out));
  return out;
}

}  // namespace

bool is_name_of_sweep(std::string_view name) {
  static const Scope scope;
  return scope.find(name) || find_column(name) != nullptr ||
         std::ranges::find(kOtherColumns, name) != kOtherColumns.end();
}

Status read_own_axes(const DocumentPtr& document, const Entry& part, std::vector<OwnAxis>& axes) {
  SWEEP_TRY(need_map(*document, *part.value, part.place, "axes"));
  if (part.value->entries.size() + axes.size() > kMostAxes)
    return document->refuse(part.place, {ErrorKind::kInvalidValue, part.key},
                            "at most {} axes can be declared", kMostAxes);
  for (const Entry& each : part.value->entries) {
    SWEEP_GET(auto one, own_axis(document, each));
    std::erase_if(axes, [&](const OwnAxis& other) { return other.name == one.name; });
    axes.push_back(std::move(one));
  }
  return {};
}

}  // namespace sweep::grid
