// Finds the axes by which two workloads differ.
#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "orchestrator/answers/format.h"
#include "orchestrator/answers/statistics/statistics.h"
#include "orchestrator/answers/statistics/transfer.h"

namespace sweep::answers {
namespace {

constexpr double kSignificant = 0.05;

using Members = std::vector<const SharedConfiguration*>;

Members measured_with_ratio(const Transfer& all) {
  Members out;
  for (const auto& each : all.shared)
    if (each.measured() && *each.value_a > 0 && *each.value_b > 0) out.push_back(&each);
  return out;
}

// Whether, within each cell, the fields other than the one at `at` tell its value.
bool follows(const Members& members, const std::vector<Field>& fields, std::size_t at) {
  std::vector<Field> rest = fields;
  rest.erase(rest.begin() + std::ptrdiff_t(at));
  std::unordered_map<std::string, Value> seen;
  return std::ranges::all_of(members, [&](const SharedConfiguration* each) {
    const Value value = fields[at].of(*each->a);
    auto key = std::to_string(each->cell) + ' ' + key_text(*each->a, rest);
    return seen.try_emplace(std::move(key), value).first->second == value;
  });
}

// The axes that vary within cells, without those that the rank algebra or a derived name makes follow from
// the others.
std::vector<Field> free_axes(const Transfer& all, const Members& members) {
  std::vector<Field> out;
  for (const Field& field : all.match) {
    if (std::ranges::any_of(all.by, [&](const Field& by) { return by.name() == field.name(); })) continue;
    std::map<std::size_t, std::string> first;
    if (std::ranges::any_of(members, [&](const SharedConfiguration* each) {
          auto value = key_text(*each->a, std::span(&field, 1));
          return first.try_emplace(each->cell, value).first->second != value;
        }))
      out.push_back(field);
  }
  for (const std::string_view name : {"grad_accum", "global_batch_size", "gpus_per_node", "dp"}) {
    const auto it = std::ranges::find_if(out, [&](const Field& field) { return field.name() == name; });
    if (it != out.end() && follows(members, out, std::size_t(it - out.begin()))) out.erase(it);
  }
  for (std::size_t i = out.size(); i-- > 0;)
    if (out[i].is_label() && follows(members, out, i)) out.erase(out.begin() + std::ptrdiff_t(i));
  return out;
}

// The change from one configuration to another on one side: its logarithm, and whether it is more than noise.
struct Step {
  double change = 0;
  bool certain = false;
};
Step step_between(const ResultRow& from, double before, const ResultRow& to, double after,
                  const std::string& metric) {
  const auto of_from = interval_of(from, metric), of_to = interval_of(to, metric);
  if (!of_from || !of_to) return {std::log(after / before)};
  const auto change = ratio_change(before, *of_from, after, *of_to);
  return {std::log(after / before), change && change->p <= kSignificant};
}

void compare_pair(AxisTransfer& out, const SharedConfiguration& x, const SharedConfiguration& y,
                  const std::string& metric) {
  const Step a = step_between(*x.a, *x.value_a, *y.a, *y.value_a, metric);
  const Step b = step_between(*x.b, *x.value_b, *y.b, *y.value_b, metric);
  ++out.pairs;
  if (a.change * b.change >= 0) return;
  ++out.opposite;
  out.certain += a.certain && b.certain ? 1 : 0;
}

// Configurations of a cell that are equal in all axes but this one.
std::vector<Members> groups_along(const Members& members, const std::vector<Field>& axes, const Field& axis) {
  std::vector<Field> rest = axes;
  std::erase_if(rest, [&](const Field& field) { return field.name() == axis.name(); });
  std::map<std::pair<std::size_t, std::string>, Members> groups;
  for (const auto* each : members) groups[{each->cell, key_text(*each->a, rest)}].push_back(each);
  std::vector<Members> out;
  for (auto& [key, group] : groups) out.push_back(std::move(group));
  return out;
}

double log_ratio(const SharedConfiguration& each) {
  return std::log(*each.value_b / *each.value_a);
}

void explain(AxisTransfer& out, const Members& members, const std::map<std::size_t, Mean>& cells) {
  const auto less = [](const Value& x, const Value& y) { return value_less(x, y); };
  std::map<Value, Mean, decltype(less)> by_value(less);
  double whole = 0, between = 0;
  for (const auto* each : members) {
    const double rest = log_ratio(*each) - cells.at(each->cell).value();
    by_value[out.axis.of(*each->a)].add(rest);
    whole += rest * rest;
  }
  for (const auto& [value, mean] : by_value) {
    between += mean.count * mean.value() * mean.value();
    out.factor.emplace_back(value, std::exp(mean.value()));
  }
  out.explains = whole > 0 ? between / whole : 0;
}

}  // namespace

void attribute_to_axes(Transfer& all, const TransferOptions& options) {
  const Members members = measured_with_ratio(all);
  const auto axes = free_axes(all, members);
  std::map<std::size_t, Mean> cells;
  for (const auto* each : members) cells[each->cell].add(log_ratio(*each));
  for (const Field& axis : axes) {
    AxisTransfer found{axis};
    for (const Members& group : groups_along(members, axes, axis))
      for (std::size_t i = 0; i < group.size(); ++i)
        for (std::size_t j = i + 1; j < group.size(); ++j)
          compare_pair(found, *group[i], *group[j], options.metric);
    explain(found, members, cells);
    all.axes.push_back(std::move(found));
  }
  std::ranges::stable_sort(all.axes, std::greater<>(), &AxisTransfer::explains);
}

}  // namespace sweep::answers
