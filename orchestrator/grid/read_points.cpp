// Single points: include and exclude.
#include <fmt/format.h>

#include <algorithm>

#include "base/expected.h"
#include "orchestrator/grid/reader.h"

namespace sweep::grid {

Status Reader::included() {
  const Entry* entry = section("include");
  if (entry == nullptr) return {};
  SWEEP_TRY(need_list(document_, *entry->value, "include"));
  if (spec_.dimensions.empty() && entry->value->items.empty())
    return refuse(entry->place, "there is neither a grid nor an include; nothing to run");
  if (entry->value->items.size() > kMaxItems)
    return refuse(entry->place, fmt::format("include has more than {} items", kMaxItems));
  for (const NodePtr& item : entry->value->items) {
    SWEEP_TRY(need_map(document_, *item, item->place, "an item of include"));
    Included point;
    point.place = item->place;
    point.given = base_given();
    for (const Entry& axis : item->entries) SWEEP_TRY(include_axis(axis, point));
    if (!spec_.workload && !point.given[spec_.scope.slot("model")])
      return refuse(item->place, "this point has no model; add 'model: NAME' to it or to the file");
    spec_.include.push_back(std::move(point));
  }
  return {};
}

std::vector<bool> Reader::base_given() const {
  std::vector<bool> given = spec_.given;
  for (const Dimension& d : spec_.dimensions) {
    for (const Slot slot : d.slots) given[slot] = false;
  }
  return given;
}

Status Reader::include_axis(const Entry& axis, Included& point) {
  const auto slot = values_.axis(axis, "of include");
  if (!slot) return tl::unexpected(slot.error());
  for (const Derived& derived : spec_.derived) {
    if (derived.slot == *slot)
      return refuse(axis.place,
                    fmt::format("'{}' is set by derive at line {}; an included point cannot set it", axis.key,
                                derived.place.line));
  }
  const auto one = values_.one(*axis.value, *slot);
  if (!one) return tl::unexpected(one.error());
  point.given[*slot] = true;
  for (std::size_t i = 0; i < one->slots.size(); ++i) {
    if (one->held[i] == Presence::kValue) point.cells.emplace_back(one->slots[i], one->cells[i]);
    if (one->held[i] == Presence::kAbsent) point.absent.push_back(one->slots[i]);
  }
  return {};
}

Status Reader::exclude() {
  const Entry* entry = section("exclude");
  if (entry == nullptr) return {};
  SWEEP_TRY(need_list(document_, *entry->value, "exclude"));
  if (entry->value->items.size() > kMaxItems)
    return refuse(entry->place, fmt::format("exclude has more than {} items", kMaxItems));
  for (const NodePtr& item : entry->value->items) {
    SWEEP_TRY(need_map(document_, *item, item->place, "an item of exclude"));
    Exclusion exclusion;
    exclusion.place = item->place;
    for (const Entry& axis : item->entries) {
      auto match = exclude_axis(axis);
      if (!match) return tl::unexpected(match.error());
      exclusion.text += fmt::format("{}{}", exclusion.text.empty() ? "" : ", ", axis.key);
      exclusion.matches.push_back(std::move(*match));
    }
    spec_.exclude.push_back(std::move(exclusion));
  }
  return {};
}

Expected<Exclusion::Match> Reader::exclude_axis(const Entry& axis) {
  const auto slot = values_.axis(axis, "of exclude");
  if (!slot) return tl::unexpected(slot.error());
  const Symbol& symbol = spec_.scope.at(*slot);
  Exclusion::Match match{*slot, {}, false};
  if (symbol.origin == Origin::kModel) return exclude_models(axis, match);
  const auto values = values_.many(*axis.value, *slot);
  if (!values) return tl::unexpected(values.error());
  for (std::size_t i = 0; i < values->count; ++i) {
    if (values->held[i] == Presence::kValue) match.any_of.push_back(values->cells[i]);
    if (values->held[i] == Presence::kAbsent) match.or_absent = true;
  }
  return match;
}

Expected<Exclusion::Match> Reader::exclude_models(const Entry& axis, Exclusion::Match match) {
  const auto& labels = spec_.scope.at(match.slot).values;
  std::vector<const Node*> nodes;
  for (const NodePtr& item : axis.value->items) nodes.push_back(item.get());
  if (!axis.value->is_list()) nodes.push_back(axis.value.get());
  for (const Node* node : nodes) {
    const auto label = read_word(document_, *node, "model");
    if (!label) return tl::unexpected(label.error());
    if (std::find(labels.begin(), labels.end(), *label) == labels.end())
      return refuse(node->place,
                    fmt::format("'{}' is no model of this grid{}", *label, suggestion(*label, labels)));
    match.any_of.push_back({spec_.scope.words.id(*label)});
  }
  return match;
}

Status Reader::order_included() {
  std::vector<std::vector<Slot>> reads;
  for (const Derived& derived : spec_.derived) reads.push_back(derived.code.reads);
  const Slot hardware = spec_.scope.slot("hardware");
  for (Included& point : spec_.include) {
    i64 word = spec_.start.cells[hardware].i;
    for (const auto& [slot, cell] : point.cells) word = slot == hardware ? cell.i : word;
    auto program = order_steps(spec_, point.given, spec_.catalogue_gpus(word) == 0, reads);
    if (!program) return refuse_cycle(program.error());
    point.program = std::move(*program);
  }
  if (!spec_.workload && (!spec_.dimensions.empty() || spec_.base_only) &&
      !spec_.given[spec_.scope.slot("model")]) {
    return refuse({}, "'model' is missing; name one, as in 'model: llama3-8b', or list several under grid");
  }
  return {};
}

}  // namespace sweep::grid
