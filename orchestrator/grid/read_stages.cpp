// The section `stages`: one wheel whose positions change what came before. Each stage keeps the changes of those
// above it, so that a sweep shows what each change is worth on top of the others.
#include <fmt/format.h>

#include <algorithm>

#include "base/expected.h"
#include "orchestrator/grid/reader.h"
#include "schema/labels.h"

namespace sweep::grid {
namespace {

constexpr std::size_t kMaxStages = 100;
constexpr std::size_t kLongestName = 100;

}  // namespace

Status StageSection::add_label() {
  const Entry* entry = in_.section("stages");
  if (entry == nullptr) return {};
  if (in_.spec.scope.find(kStageLabel))
    return in_.document.refuse(
        entry->place, {ErrorKind::kConflict, kStageLabel},
        "'{0}' is the name of the label that stages write, and the grid has another '{0}'; rename that",
        kStageLabel);
  in_.spec.stage = in_.spec.scope.add_label(std::string(kStageLabel));
  in_.spec.scope.set_type(*in_.spec.stage, Type::kText);
  return {};
}

// `- name: {axis: value, ...}`
Expected<const Entry*> StageSection::named(const Node& item) {
  SWEEP_TRY(need_map(in_.document, item, item.place, "a stage"));
  if (item.entries.size() != 1)
    return in_.document.refuse(
        item.place, {ErrorKind::kInvalidValue, "stages"},
        "a stage is one name with the axes that it changes, as in '- bf16: {precision: bf16_mixed}'");
  const Entry& stage = item.entries.front();
  if (stage.key.empty() || stage.key.size() > kLongestName)
    return in_.document.refuse(stage.place, {ErrorKind::kInvalidValue, "stages"},
                               "the name of a stage has 1 to {} bytes", kLongestName);
  if (std::ranges::find(in_.spec.stages, stage.key) != in_.spec.stages.end())
    return in_.document.refuse(stage.place, {ErrorKind::kConflict, stage.key},
                               "there is a stage '{}' already; give this one another name", stage.key);
  in_.spec.stages.push_back(stage.key);
  return &stage;
}

Status StageSection::change(const Entry& item) {
  SWEEP_GET(const auto slot, in_.values.axis(item, "of a stage"));
  if (std::ranges::any_of(in_.spec.dimensions, &Dimension::automatic) &&
      slot == in_.spec.scope.slot("micro_batch_size"))
    return in_.document.refuse(
        item.place, {ErrorKind::kConflict, item.key},
        "micro_batch_size is auto in base, so a stage cannot set it; keep one of them");
  SWEEP_GET(const auto one, in_.values.one(*item.value, slot));
  if (changed_.insert(slot).second) SWEEP_TRY(axes_.claim_over_base(slot, item, "stages"));
  for (std::size_t i = 0; i < one.slots.size(); ++i) {
    if (std::ranges::find(all_.slots, one.slots[i]) == all_.slots.end()) all_.slots.push_back(one.slots[i]);
    now_.cells[one.slots[i]] = one.cells[i];
    now_.held[one.slots[i]] = one.held[i];
  }
  return {};
}

// A stage that is what an earlier one was would be that stage's trial once more.
Status StageSection::stage(const Entry& entry) {
  const Node& changes = *entry.value;
  if (changes.kind != Node::Kind::kNull && !(changes.is_map() && changes.entries.empty()))
    SWEEP_TRY(need_map(in_.document, changes, entry.place, "a stage"));
  for (const Entry& item : changes.entries) SWEEP_TRY(change(item));
  const auto same = std::ranges::find_if(points_, [&](const Point& earlier) {
    return std::ranges::all_of(all_.slots, [&](Slot slot) {
      return slot == *in_.spec.stage ||
             (now_.cells[slot].i == earlier.cells[slot].i && now_.held[slot] == earlier.held[slot]);
    });
  });
  if (same != points_.end())
    return in_.document.refuse(
        entry.place, {ErrorKind::kInvalidValue, entry.key},
        "the stage '{}' is what the stage '{}' is; give it an axis with another value, or remove it",
        entry.key, in_.spec.stages[static_cast<std::size_t>(same - points_.begin())]);
  now_.cells[*in_.spec.stage].i = in_.spec.scope.words.id(entry.key);
  now_.held[*in_.spec.stage] = Presence::kValue;
  points_.push_back(now_);
  return {};
}

Status StageSection::read() {
  const Entry* entry = in_.section("stages");
  if (entry == nullptr) return {};
  SWEEP_TRY(need_list(in_.document, *entry->value, "stages"));
  const auto& items = entry->value->items;
  if (items.size() < 2 || items.size() > kMaxStages)
    return in_.document.refuse(entry->place, {ErrorKind::kInvalidValue, "stages"},
                               "stages has {} entries; it takes 2 to {}", items.size(), kMaxStages);
  now_ = in_.spec.start;
  in_.spec.start.held[*in_.spec.stage] = Presence::kAbsent;  // an included point is no stage
  all_.slots = {*in_.spec.stage};
  for (const NodePtr& item : items) {
    SWEEP_GET(const auto named_stage, named(*item));
    SWEEP_TRY(stage(*named_stage));
  }
  // A slot that a later stage changes has its first value in the stages above.
  for (const Point& point : points_) {
    for (const Slot slot : all_.slots) {
      all_.cells.push_back(point.cells[slot]);
      all_.held.push_back(point.held[slot]);
    }
  }
  all_.count = points_.size();
  all_.place = entry->place;
  in_.spec.given[*in_.spec.stage] = true;
  in_.spec.scope.set_values(*in_.spec.stage, in_.spec.stages);
  in_.spec.grid_place = entry->place;
  in_.spec.dimensions.push_back(std::move(all_));
  return {};
}

}  // namespace sweep::grid
