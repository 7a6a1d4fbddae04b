// The sections that span the grid: grid and zip, and how many points they make.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/expected.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/grid/reader.h"

namespace sweep::grid {
namespace {

constexpr std::uint64_t kMostAllowed = 10'000'000'000;  // a day of expanding: beyond it nobody is told how

}  // namespace

Expected<Dimension> Reader::axis(const Entry& item, std::string_view section) {
  const auto slot = values_.axis(item, fmt::format("of {}", section));
  if (!slot) return tl::unexpected(slot.error());
  SWEEP_TRY(claim(*slot, item, section));
  return values_.many(*item.value, *slot);
}

Status Reader::axes() {
  const Entry* entry = section("grid");
  if (entry == nullptr) {
    if (section("zip") != nullptr || section("include") != nullptr) return {};
    spec_.base_only = section("base") != nullptr;  // one point: what `best --yaml` prints
    if (spec_.base_only) return {};
    return refuse({}, "'grid' is missing; list axes with their values, as in 'grid: {tp: [1, 2]}'");
  }
  spec_.grid_place = entry->place;
  SWEEP_TRY(need_map(document_, *entry->value, entry->place, "grid"));
  for (const Entry& item : entry->value->entries) {
    auto dimension = axis(item, "grid");
    if (!dimension) return tl::unexpected(dimension.error());
    spec_.dimensions.push_back(std::move(*dimension));
  }
  return {};
}

Status Reader::zips() {
  const Entry* entry = section("zip");
  if (entry == nullptr) return {};
  SWEEP_TRY(need_list(document_, *entry->value, "zip"));
  if (spec_.dimensions.empty()) spec_.grid_place = entry->place;
  if (entry->value->items.empty()) return refuse(entry->place, "zip is empty; fill it or remove it");
  for (const NodePtr& group : entry->value->items) {
    SWEEP_TRY(need_map(document_, *group, group->place, "a group of zip"));
    if (group->entries.size() < 2)
      return refuse(group->place,
                    "a group of zip moves two axes or more together; put a single one under grid");
    Dimension all;
    for (const Entry& item : group->entries) {
      auto dimension = axis(item, "zip");
      if (!dimension) return tl::unexpected(dimension.error());
      if (&item == &group->entries.front()) {
        all = std::move(*dimension);
      } else if (dimension->count != all.count) {
        return refuse(item.place,
                      fmt::format("'{}' has {} values, but '{}' of the same zip group has {}; they move "
                                  "together, so give each as many",
                                  item.key, dimension->count, group->entries.front().key, all.count));
      } else {
        join(all, *dimension);
      }
    }
    spec_.dimensions.push_back(std::move(all));
  }
  return {};
}

// The lengths of the dimensions, the longest first: "dp 1000 x tp 500".
std::string Reader::factors() const {
  constexpr std::size_t kShown = 6;
  std::vector<const Dimension*> longest;
  for (const Dimension& d : spec_.dimensions)
    if (d.count > 1) longest.push_back(&d);
  std::stable_sort(longest.begin(), longest.end(),
                   [](const Dimension* a, const Dimension* b) { return a->count > b->count; });
  std::string out;
  for (std::size_t i = 0; i < std::min(kShown, longest.size()); ++i)
    out += fmt::format("{}{} {}", i == 0 ? "" : " x ", spec_.scope.at(longest[i]->slots.front()).name,
                       longest[i]->count);
  return longest.size() > kShown ? out + " x ..." : out;
}

Status Reader::count_points(const ReadOptions& options) {
  spec_.points = spec_.dimensions.empty() && !spec_.base_only ? 0 : 1;
  bool saturated = false;
  for (const Dimension& d : spec_.dimensions)
    saturated = __builtin_mul_overflow(spec_.points, d.count, &spec_.points) || saturated;
  if (saturated) spec_.points = std::numeric_limits<std::uint64_t>::max();
  if (spec_.points <= options.max_points) return {};
  return refuse(
      spec_.grid_place,
      fmt::format("the grid has {}{} combinations before `where`, more than {}: {}; {}",
                  saturated ? "more than " : "", spec_.points, options.max_points, factors(),
                  spec_.points <= kMostAllowed
                      ? fmt::format("shorten an axis, or allow it with --max-points {}", spec_.points)
                      : "shorten the first of these axes, or take them out"));
}

void Reader::name_models() {
  std::vector<std::string> labels;
  for (const ModelEntry& entry : spec_.models) labels.push_back(spec_.scope.words.at(entry.word));
  spec_.scope.set_values(spec_.scope.slot("model"), std::move(labels));
  for (const auto& hardware : shape::all_hardware()) {
    const auto word = static_cast<std::size_t>(spec_.scope.words.id(hardware.name));
    if (spec_.gpus_per_node.size() <= word) spec_.gpus_per_node.resize(word + 1, 0);
    spec_.gpus_per_node[word] = hardware.gpu.empty() ? 0 : static_cast<std::int32_t>(hardware.gpus_per_node);
  }
}

bool Reader::main_has_cpu() const {
  const Slot hardware = spec_.scope.slot("hardware");
  for (const Dimension& d : spec_.dimensions) {
    const auto at = std::find(d.slots.begin(), d.slots.end(), hardware);
    if (at == d.slots.end()) continue;
    for (std::size_t row = 0; row < d.count; ++row) {
      if (spec_.catalogue_gpus(
              d.cells[row * d.slots.size() + static_cast<std::size_t>(at - d.slots.begin())].i) == 0)
        return true;
    }
    return false;
  }
  return spec_.catalogue_gpus(spec_.start.cells[hardware].i) == 0;
}

}  // namespace sweep::grid
