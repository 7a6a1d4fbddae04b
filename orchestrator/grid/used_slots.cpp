// Finds the axes whose values a grid's program gets.
#include <algorithm>

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

const Dimension* unused_dimension(const GridSpec& spec, const Used& used) {
  const auto unused = [&](const Dimension& each) {
    return each.count > 1 && std::ranges::none_of(each.slots, [&](Slot slot) { return used[slot]; });
  };
  const auto found = std::ranges::find_if(spec.dimensions, unused);
  return found == spec.dimensions.end() ? nullptr : &*found;
}

}  // namespace sweep::grid
