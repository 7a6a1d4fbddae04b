// Single points: include and exclude.
#include <fmt/format.h>

#include <algorithm>

#include "base/expected.h"
#include "orchestrator/grid/reader.h"

namespace sweep::grid {

Status PointSections::included() {
  const Entry* entry = in_.section("include");
  if (entry == nullptr) return {};
  SWEEP_TRY(need_list(in_.document, *entry->value, "include"));
  if (in_.spec.dimensions.empty() && entry->value->items.empty())
    return in_.document.refuse(entry->place, {ErrorKind::kMissing, "grid"},
                               "there is neither a grid nor an include; nothing to run");
  if (entry->value->items.size() > kMaxItems)
    return in_.document.refuse(entry->place, {ErrorKind::kInvalidValue, "include"},
                               "include has more than {} items", kMaxItems);
  for (const NodePtr& item : entry->value->items) {
    SWEEP_TRY(need_map(in_.document, *item, item->place, "an item of include"));
    Included point;
    point.place = item->place;
    point.given = in_.spec.base_given;
    for (const Entry& axis : item->entries) SWEEP_TRY(include_axis(axis, point));
    if (!in_.spec.workload && !point.given[in_.spec.scope.slot("model")])
      return in_.document.refuse(item->place, {ErrorKind::kMissing, "model"},
                                 "this point has no model; add 'model: NAME' to it or to the file");
    in_.spec.include.push_back(std::move(point));
  }
  return {};
}

Status PointSections::include_axis(const Entry& axis, Included& point) {
  SWEEP_GET(const auto slot, in_.values.axis(axis, "of include"));
  for (const Derived& derived : in_.spec.derived) {
    if (derived.slot == slot)
      return in_.document.refuse(axis.place, {ErrorKind::kUnsupported, axis.key},
                                 "'{}' is set by derive at line {}; an included point cannot set it",
                                 axis.key, derived.place.line);
  }
  SWEEP_GET(const auto one, in_.values.one(*axis.value, slot));
  point.given[slot] = true;
  for (std::size_t i = 0; i < one.slots.size(); ++i) {
    if (one.held[i] == Presence::kValue) point.cells.emplace_back(one.slots[i], one.cells[i]);
    if (one.held[i] == Presence::kAbsent) point.absent.push_back(one.slots[i]);
  }
  return {};
}

Status PointSections::exclude() {
  const Entry* entry = in_.section("exclude");
  if (entry == nullptr) return {};
  SWEEP_TRY(need_list(in_.document, *entry->value, "exclude"));
  if (entry->value->items.size() > kMaxItems)
    return in_.document.refuse(entry->place, {ErrorKind::kInvalidValue, "exclude"},
                               "exclude has more than {} items", kMaxItems);
  for (const NodePtr& item : entry->value->items) {
    SWEEP_TRY(need_map(in_.document, *item, item->place, "an item of exclude"));
    Exclusion exclusion;
    exclusion.place = item->place;
    for (const Entry& axis : item->entries) {
      SWEEP_GET(auto match, exclude_axis(axis));
      exclusion.text += fmt::format("{}{}", exclusion.text.empty() ? "" : ", ", axis.key);
      exclusion.matches.push_back(std::move(match));
    }
    in_.spec.exclude.push_back(std::move(exclusion));
  }
  return {};
}

Expected<Exclusion::Match> PointSections::exclude_axis(const Entry& axis) {
  SWEEP_GET(const auto slot, in_.values.axis(axis, "of exclude"));
  const Symbol& symbol = in_.spec.scope.at(slot);
  Exclusion::Match match{slot, {}, false};
  if (symbol.origin == Origin::kModel) return exclude_models(axis, match);
  SWEEP_GET(const auto values, in_.values.many(*axis.value, slot));
  for (std::size_t i = 0; i < values.count; ++i) {
    if (values.held[i] == Presence::kValue) match.any_of.push_back(values.cells[i]);
    if (values.held[i] == Presence::kAbsent) match.or_absent = true;
  }
  return match;
}

Expected<Exclusion::Match> PointSections::exclude_models(const Entry& axis, Exclusion::Match match) {
  const auto& labels = in_.spec.scope.at(match.slot).values;
  std::vector<const Node*> nodes;
  for (const NodePtr& item : axis.value->items) nodes.push_back(item.get());
  if (!axis.value->is_list()) nodes.push_back(axis.value.get());
  for (const Node* node : nodes) {
    SWEEP_GET(const auto label, read_word(in_.document, *node, "model"));
    if (std::find(labels.begin(), labels.end(), label) == labels.end())
      return in_.document.refuse(node->place, {ErrorKind::kUnknownName, label},
                                 "'{}' is not a model of this grid{}", label, suggestion(label, labels));
    match.any_of.push_back({in_.spec.scope.words.id(label)});
  }
  return match;
}

}  // namespace sweep::grid
