// Finds the axes whose values a grid's program gets.
#include <algorithm>
#include <map>

#include "orchestrator/grid/spec.h"

namespace sweep::grid {
namespace {

using Used = std::vector<bool>;

// Whether one of them is in use, and then all.
template <class Slots>
bool spread(Used& used, const Slots& slots) {
  const auto is_used = [&](Slot slot) { return used[slot]; };
  if (std::ranges::none_of(slots, is_used) || std::ranges::all_of(slots, is_used)) return false;
  for (const Slot slot : slots) used[slot] = true;
  return true;
}

// Marks the slots that a slot in use is computed from as in use.
bool spread_back(Used& used, const Step& step) {
  if (!step.writes || !used[*step.writes]) return false;
  std::vector<Slot> all = step.reads;
  all.push_back(*step.writes);
  return spread(used, all);
}

// A model that is named brings all of its dimensions.
std::vector<Slot> model_slots(const GridSpec& spec) {
  std::vector<Slot> out;
  for (Slot slot = 0; slot < spec.scope.size(); ++slot) {
    const Origin origin = spec.scope.at(slot).origin;
    if (origin == Origin::kModel || origin == Origin::kDimension) out.push_back(slot);
  }
  return out;
}

// The values of the slots in use, in their order: what the program gets of a point. nullopt: the value is absent, or
// follows from others.
std::vector<std::optional<i64>> values_of(const Point& point, const std::vector<bool>& given,
                                          const Used& used) {
  std::vector<std::optional<i64>> out;
  for (Slot slot = 0; slot < used.size(); ++slot)
    if (used[slot] && given[slot] && point.held[slot] == Presence::kValue)
      out.emplace_back(point.cells[slot].i);
    else if (used[slot])
      out.emplace_back();
  return out;
}

}  // namespace

std::vector<bool> used_slots(const GridSpec& spec) {
  Used used(spec.scope.size(), false);
  const AlgebraSlots slots(spec.scope);
  for (const Slot slot : {slots.hardware, slots.nodes, slots.gpus_per_node}) used[slot] = true;
  for (const Slot slot : spec.workload->used())
    if (slot < used.size()) used[slot] = true;
  for (bool more = true; more;) {
    more = false;
    for (const Step& step : spec.program) more |= spread_back(used, step);
    for (const Clause& clause : spec.where) more |= spread(used, clause.code.reads);
    for (const Dimension& each : spec.dimensions) more |= spread(used, each.slots);
    for (const Included& point : spec.include)
      for (const Step& step : point.program) more |= spread_back(used, step);
    if (!spec.include.empty()) more |= spread(used, model_slots(spec));
  }
  return used;
}

std::string known_axes(const GridSpec& spec, Used known) {
  for (Slot slot = 0; slot < known.size(); ++slot) known[slot] = known[slot] || spec.given[slot];
  for (const std::string_view name : {"dp", "tp", "pp", "cp", "ep"}) known[spec.scope.slot(name)] = true;
  for (const Step& step : spec.program)
    if (step.writes && std::ranges::all_of(step.reads, [&](Slot slot) { return known[slot]; }))
      known[*step.writes] = true;
  std::string out = " ";
  for (Slot slot = 0; slot < known.size(); ++slot)
    if (known[slot] && spec.scope.at(slot).origin == Origin::kAxis) out += spec.scope.at(slot).name + ' ';
  return out;
}

std::optional<UnusedValue> unused_value(const GridSpec& spec, const Used& used) {
  std::map<std::vector<std::optional<i64>>, Point> all;
  if (!spec.dimensions.empty()) all.try_emplace(values_of(spec.start, spec.base_given, used), spec.start);
  for (const Included& each : spec.include) {
    const Point point = start_of(spec, each);
    const auto [at, is_new] = all.try_emplace(values_of(point, each.given, used), point);
    const Point& before = at->second;
    for (Slot slot = 0; slot < used.size() && !is_new; ++slot)
      if (!used[slot] &&
          (point.held[slot] != before.held[slot] || point.cells[slot].i != before.cells[slot].i))
        return UnusedValue{each.place, slot};
  }
  return std::nullopt;
}

const Dimension* unused_dimension(const GridSpec& spec, const Used& used) {
  const auto unused = [&](const Dimension& each) {
    return each.count > 1 && std::ranges::none_of(each.slots, [&](Slot slot) { return used[slot]; });
  };
  const auto found = std::ranges::find_if(spec.dimensions, unused);
  return found == spec.dimensions.end() ? nullptr : &*found;
}

}  // namespace sweep::grid
