// The sections that give axes their values: model, base, grid and zip, and how many points they make.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <set>

#include "base/expected.h"
#include "orchestrator/grid/read_values.h"
#include "orchestrator/grid/reader.h"
#include "orchestrator/grid/spec.h"
#include "schema/axis_domain.h"

namespace sweep::grid {
namespace {

constexpr std::string_view kAxis = "micro_batch_size", kAuto = "auto";
constexpr i64 kLargest = 1024;

struct Bounds {
  i64 first = 1, last = kLargest;
};

Expected<Bounds> bounds_of(const Document& document, const Node& node) {
  if (node.is_scalar()) return Bounds{};
  SWEEP_TRY(check_keys(document, node, std::array{kAuto}, fmt::format("of {}", kAxis)));
  const Node& list = *node.entries[0].value;
  if (!list.is_list() || list.items.size() != 2)
    return document.refuse(list.place, {ErrorKind::kInvalidValue, kAuto},
                           "auto takes [first, last], as in {auto: [1, 64]}");
  const i64 most = axis_domain(kAxis)->max;
  SWEEP_GET(const auto first, read_int(document, *list.items[0], kAxis, 1, most));
  SWEEP_GET(const auto last, read_int(document, *list.items[1], kAxis, 1, most));
  if (first >= last)
    return document.refuse(
        list.place, {ErrorKind::kInvalidValue, kAuto},
        "auto from {} to {} leaves nothing to choose; write the smaller number first, or a single value",
        first, last);
  return Bounds{first, last};
}

// `micro_batch_size: auto`, or {auto: [FIRST, LAST]}, whatever its bounds: the sizes among which a run finds the
// largest that fits and the fastest of each layout (docs/search.md).
bool is_auto(const Node& node) {
  return (node.is_scalar() && node.text == kAuto) || (node.is_map() && node.find(kAuto) != nullptr);
}

// Every size up to 16, then eight to each doubling; the first and the last one are always among them.
Expected<Dimension> auto_sizes(const Document& document, const Node& node, Slot slot) {
  SWEEP_GET(const auto bounds, bounds_of(document, node));
  Dimension out;
  out.slots = {slot};
  out.automatic = true;
  out.cells.push_back({bounds.first});
  for (i64 size = 1; size < bounds.last;) {
    if (size > bounds.first) out.cells.push_back({size});
    const auto doubling = static_cast<i64>(std::bit_floor(static_cast<std::uint64_t>(size)));
    size += std::max<i64>(1, doubling / 8);
  }
  out.cells.push_back({bounds.last});
  out.count = out.cells.size();
  out.held.assign(out.count, Presence::kValue);
  return out;
}

// Adds the sizes between the first and the last one that divide a global batch.
void add_divisors(std::vector<Cell>& sizes, i64 batch) {
  const i64 first = sizes.front().i, last = sizes.back().i;
  const auto add = [&](i64 size) {
    const auto at = std::ranges::lower_bound(sizes, size, {}, &Cell::i);
    if (size >= first && size <= last && at->i != size) sizes.insert(at, Cell{size});
  };
  for (i64 size = 1; size <= batch / size; ++size) {
    if (batch % size != 0) continue;
    add(size), add(batch / size);
  }
}

constexpr std::uint64_t kMostAllowed = 10'000'000'000;  // a day of expanding: the message advises no more

}  // namespace

Status AxisSections::read_base() {
  SWEEP_TRY(model());
  return base();
}

Status AxisSections::read_wheels(const ReadOptions& options) {
  SWEEP_TRY(axes());
  SWEEP_TRY(zips());
  complete_auto_sizes();
  return count_points(options);
}

Status AxisSections::read_suggested() {
  return each("suggested", [this](const Entry& item, Slot slot) -> Status {
    SWEEP_GET(const auto one, in_.values.one(*item.value, slot));
    if (in_.spec.given[slot]) return {};
    in_.spec.given[slot] = in_.spec.base_given[slot] = true;
    set_start(in_.spec, one);
    return {};
  });
}

Status AxisSections::each(std::string_view section, const TakeAxis& take) {
  const Entry* entry = in_.section(section);
  if (entry == nullptr) return {};
  SWEEP_TRY(need_map(in_.document, *entry->value, entry->place, section));
  for (const Entry& item : entry->value->entries) {
    SWEEP_GET(const auto slot, in_.values.axis(item, fmt::format("of {}", section)));
    SWEEP_TRY(take(item, slot));
  }
  return {};
}

// A global batch leaves the sizes that divide it: all of them are tried.
void AxisSections::complete_auto_sizes() {
  const Slot slot = in_.spec.scope.slot("global_batch_size");
  const auto sizes = std::ranges::find_if(in_.spec.dimensions, &Dimension::automatic);
  if (sizes == in_.spec.dimensions.end() || !in_.spec.given[slot]) return;
  std::set<i64> batches = {in_.spec.start.cells[slot].i};
  for (const Dimension& d : in_.spec.dimensions) {
    const auto at = std::ranges::find(d.slots, slot);
    if (at == d.slots.end()) continue;
    batches.clear();
    for (auto i = static_cast<std::size_t>(at - d.slots.begin()); i < d.cells.size(); i += d.slots.size())
      batches.insert(d.cells[i].i);
  }
  for (const i64 batch : batches) add_divisors(sizes->cells, batch);
  sizes->count = sizes->cells.size();
  sizes->held.assign(sizes->count, Presence::kValue);
}

Status AxisSections::claim(Slot slot, const Entry& entry, std::string_view section) {
  const std::string& name = in_.spec.scope.at(slot).name;
  for (const Derived& derived : in_.spec.derived) {
    if (derived.slot == slot)
      return in_.document.refuse(entry.place, {ErrorKind::kConflict, name},
                                 "'{}' is also set by derive at line {}; keep one of them", name,
                                 derived.place.line);
  }
  if (in_.spec.given[slot])
    return in_.document.refuse(entry.place, {ErrorKind::kConflict, name},
                               "'{}' is given twice: here under {}, and under {}; keep one of them", name,
                               section, homes_[slot]);
  in_.spec.given[slot] = true;
  homes_[slot] = std::string(section);
  return {};
}

Status AxisSections::claim_over_base(Slot slot, const Entry& entry, std::string_view section) {
  if (const auto home = homes_.find(slot);
      home != homes_.end() && (home->second == "base" || home->second == "model"))
    in_.spec.given[slot] = false;
  return claim(slot, entry, section);
}

Status AxisSections::model() {
  const Entry* entry = in_.section("model");
  const Slot slot = in_.spec.scope.slot("model");
  // A command may know its model alone.
  if (in_.spec.workload) in_.spec.start.cells[slot].i = in_.spec.scope.words.id("command");
  if (entry == nullptr) return {};
  SWEEP_GET(const auto one, in_.values.one(*entry->value, slot));
  SWEEP_TRY(claim(slot, *entry, "model"));
  set_start(in_.spec, one);
  return {};
}

Status AxisSections::base() {
  return each("base", [this](const Entry& item, Slot slot) -> Status {
    if (is_auto_sizes(item, slot)) return add_auto_sizes(item, slot, "base");
    SWEEP_GET(const auto one, in_.values.one(*item.value, slot));
    SWEEP_TRY(claim(slot, item, "base"));
    set_start(in_.spec, one);
    return {};
  });
}

bool AxisSections::is_auto_sizes(const Entry& item, Slot slot) const {
  return slot == in_.spec.scope.slot("micro_batch_size") && is_auto(*item.value);
}

Status AxisSections::add_auto_sizes(const Entry& item, Slot slot, std::string_view section) {
  SWEEP_TRY(claim(slot, item, section));
  SWEEP_GET(auto sizes, auto_sizes(in_.document, *item.value, slot));
  sizes.place = item.place;
  in_.spec.dimensions.push_back(std::move(sizes));
  in_.spec.grid_place = item.place;
  return {};
}

Expected<Dimension> AxisSections::axis(const Entry& item, Slot slot, std::string_view section) {
  SWEEP_TRY(claim(slot, item, section));
  auto values = in_.values.many(*item.value, slot);
  if (values) values->place = item.place;
  return values;
}

Status AxisSections::axes() {
  const Entry* entry = in_.section("grid");
  if (entry == nullptr) {
    if (in_.section("zip") != nullptr || in_.section("include") != nullptr || in_.spec.stage) return {};
    in_.spec.base_only = in_.section("base") != nullptr;  // one point: what `best --yaml` prints
    if (in_.spec.base_only) return {};
    return in_.document.refuse({}, {ErrorKind::kMissing, "grid"},
                               "'grid' is missing; list axes with their values, as in 'grid: {tp: [1, 2]}'");
  }
  in_.spec.grid_place = entry->place;
  return each("grid", [this](const Entry& item, Slot slot) -> Status {
    if (is_auto_sizes(item, slot)) return add_auto_sizes(item, slot, "grid");
    SWEEP_GET(auto dimension, axis(item, slot, "grid"));
    in_.spec.dimensions.push_back(std::move(dimension));
    return {};
  });
}

Status AxisSections::zips() {
  const Entry* entry = in_.section("zip");
  if (entry == nullptr) return {};
  SWEEP_TRY(need_list(in_.document, *entry->value, "zip"));
  if (in_.spec.dimensions.empty()) in_.spec.grid_place = entry->place;
  if (entry->value->items.empty())
    return in_.document.refuse(entry->place, {ErrorKind::kInvalidValue, "zip"},
                               "zip is empty; fill it or remove it");
  for (const NodePtr& group : entry->value->items) {
    SWEEP_TRY(need_map(in_.document, *group, group->place, "a group of zip"));
    if (group->entries.size() < 2)
      return in_.document.refuse(
          group->place, {ErrorKind::kInvalidValue, "zip"},
          "a group of zip moves two axes or more together; put a single one under grid");
    Dimension all;
    for (const Entry& item : group->entries) {
      SWEEP_GET(const auto slot, in_.values.axis(item, "of zip"));
      if (is_auto_sizes(item, slot))
        return in_.document.refuse(item.place, {ErrorKind::kConflict, item.key},
                                   "micro_batch_size: auto stands under grid or base; it does not move "
                                   "together with other axes of a zip group");
      SWEEP_GET(auto dimension, axis(item, slot, "zip"));
      if (&item == &group->entries.front()) {
        all = std::move(dimension);
      } else if (dimension.count != all.count) {
        return in_.document.refuse(item.place, {ErrorKind::kConflict, item.key},
                                   "'{}' has {} values, but '{}' of the same zip group has {}; they move "
                                   "together, so give each as many",
                                   item.key, dimension.count, group->entries.front().key, all.count);
      } else {
        join(all, dimension);
      }
    }
    all.place = group->entries.front().place;
    in_.spec.dimensions.push_back(std::move(all));
  }
  return {};
}

// The lengths of the dimensions, the longest first: "dp 1000 x tp 500".
std::string AxisSections::factors() const {
  constexpr std::size_t kShown = 6;
  std::vector<const Dimension*> longest;
  for (const Dimension& d : in_.spec.dimensions)
    if (d.count > 1) longest.push_back(&d);
  std::stable_sort(longest.begin(), longest.end(),
                   [](const Dimension* a, const Dimension* b) { return a->count > b->count; });
  std::string out;
  for (std::size_t i = 0; i < std::min(kShown, longest.size()); ++i)
    out += fmt::format("{}{} {}", i == 0 ? "" : " x ", in_.spec.scope.at(longest[i]->slots.front()).name,
                       longest[i]->count);
  return longest.size() > kShown ? out + " x ..." : out;
}

Status AxisSections::count_points(const ReadOptions& options) {
  in_.spec.points = in_.spec.dimensions.empty() && !in_.spec.base_only ? 0 : 1;
  bool saturated = false;
  for (const Dimension& d : in_.spec.dimensions)
    saturated = __builtin_mul_overflow(in_.spec.points, d.count, &in_.spec.points) || saturated;
  if (saturated) in_.spec.points = std::numeric_limits<std::uint64_t>::max();
  if (in_.spec.points <= options.max_points) return {};
  return in_.document.refuse(
      in_.spec.grid_place, {ErrorKind::kInvalidValue, "grid"},
      "the grid has {}{} combinations before `where`, more than {}: {}; {}", saturated ? "more than " : "",
      in_.spec.points, options.max_points, factors(),
      in_.spec.points <= kMostAllowed
          ? fmt::format("shorten an axis, or allow it with --max-points {}", in_.spec.points)
          : "shorten the first of these axes, or take them out");
}

// A point of the grid, or the base alone, has a model.
Status AxisSections::need_model() const {
  if (!in_.spec.workload && (!in_.spec.dimensions.empty() || in_.spec.base_only) &&
      !in_.spec.given[in_.spec.scope.slot("model")]) {
    return in_.document.refuse(
        {}, {ErrorKind::kMissing, "model"},
        "'model' is missing; name one, as in 'model: llama3-8b', or list several under grid");
  }
  return {};
}

}  // namespace sweep::grid
