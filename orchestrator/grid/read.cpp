// Reading a grid file, section by section, into a GridSpec in which everything is known to be right.
#include <fmt/format.h>

#include "base/expected.h"
#include "base/input_file.h"
#include "orchestrator/grid/keys.h"
#include "orchestrator/grid/read_sections.h"
#include "orchestrator/grid/reader.h"

namespace sweep::grid {
namespace {

bool is_name_char(char c, bool first) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         (!first && (c == '.' || c == '_' || c == '-'));
}

}  // namespace

Status Reader::run(const ReadOptions& options) {
  SWEEP_TRY(check_keys(document_, root_, kTopKeys, "of a grid file"));
  SWEEP_TRY(header());
  defaults();
  SWEEP_TRY(workload(options));
  SWEEP_TRY(add_labels());
  SWEEP_TRY(own_presets());
  SWEEP_TRY(model());
  SWEEP_TRY(base());
  SWEEP_TRY(axes());
  SWEEP_TRY(zips());
  SWEEP_TRY(count_points(options));
  for (const Derived& derived : spec_.derived) spec_.given[derived.slot] = true;
  SWEEP_TRY(included());
  name_models();
  SWEEP_TRY(derive());
  SWEEP_TRY(where());
  SWEEP_TRY(exclude());
  SWEEP_TRY(order_included());
  SWEEP_TRY(read_measure(document_, grid_));
  if (spec_.workload) SWEEP_TRY(spec_.workload->bind(spec_.scope, grid_.measure));
  SWEEP_TRY(read_limits(document_, grid_));
  return read_launch(document_, grid_);
}

tl::unexpected<Error> Reader::refuse(Place at, std::string_view message) const {
  return tl::unexpected(document_.error(at, message));
}

Status Reader::header() {
  const Entry* name = section("name");
  if (name == nullptr) return refuse({}, "'name' is missing; give the sweep a name, as in 'name: llama-8b'");
  const auto text = read_word(document_, *name->value, "name", 100);
  if (!text) return tl::unexpected(text.error());
  for (std::size_t i = 0; i < text->size(); ++i) {
    if (!is_name_char((*text)[i], i == 0))
      return refuse(name->value->place,
                    "name takes letters, digits, '.', '_' and '-', and starts with a letter or digit");
  }
  grid_.name = *text;
  if (const Entry* question = section("question")) {
    const auto words = read_word(document_, *question->value, "question", 4096);
    if (!words) return tl::unexpected(words.error());
    grid_.question = *words;
  }
  return {};
}

void Reader::defaults() {
  spec_.start.cells.assign(spec_.scope.size(), Cell{0});
  spec_.start.held.assign(spec_.scope.size(), Presence::kValue);
  Trial trial;
  Slot slot = 0;
  for_each_axis(trial, [&](const FieldInfo&, const auto& preset, auto&) {
    set_default(slot, preset);
    ++slot;
  });
}

Status Reader::workload(const ReadOptions& options) {
  const Entry* entry = section("workload");
  if (entry == nullptr) return {};
  auto workload = read_workload(document_, *entry, grid_.path.parent_path(), options.recipes);
  if (!workload) return tl::unexpected(workload.error());
  for (OwnAxis& axis : workload->axes) {
    if (spec_.scope.find(axis.name))
      return tl::unexpected(axis.document->error(
          axis.place, fmt::format("'{}' is a name of sweep's own; call the axis differently", axis.name)));
    axis.slot = spec_.scope.add_own_axis(axis.name, axis.type);
    spec_.scope.set_values(axis.slot, axis.values);
  }
  spec_.workload.emplace(std::move(*workload));
  return {};
}

Status Reader::own_presets() {
  if (!spec_.workload) return {};
  for (const OwnAxis& axis : spec_.workload->axes()) {
    const auto one = values_.one(*axis.preset, axis.slot);
    if (!one) return tl::unexpected(one.error());
    set_start(*one);
  }
  return {};
}

Status Reader::grow() {
  spec_.start.cells.resize(spec_.scope.size(), Cell{0});
  spec_.start.held.resize(spec_.scope.size(), Presence::kValue);
  spec_.given.assign(spec_.scope.size(), false);
  return {};
}

Status Reader::claim(Slot slot, const Entry& entry, std::string_view section) {
  const std::string& name = spec_.scope.at(slot).name;
  for (const Derived& derived : spec_.derived) {
    if (derived.slot == slot)
      return refuse(entry.place, fmt::format("'{}' is also set by derive at line {}; keep one of them", name,
                                             derived.place.line));
  }
  if (spec_.given[slot])
    return refuse(entry.place,
                  fmt::format("'{}' is given twice: here under {}, and under {}; keep one of them", name,
                              section, homes_[slot]));
  spec_.given[slot] = true;
  homes_[slot] = std::string(section);
  return {};
}

void Reader::set_start(const Dimension& one) {
  for (std::size_t i = 0; i < one.slots.size(); ++i) {
    spec_.start.cells[one.slots[i]] = one.cells[i];
    spec_.start.held[one.slots[i]] = one.held[i];
  }
}

Status Reader::model() {
  const Entry* entry = section("model");
  const Slot slot = spec_.scope.slot("model");
  // A command may know its model alone.
  if (spec_.workload) spec_.start.cells[slot].i = spec_.scope.words.id("command");
  if (entry == nullptr) return {};
  const auto one = values_.one(*entry->value, slot);
  if (!one) return tl::unexpected(one.error());
  SWEEP_TRY(claim(slot, *entry, "model"));
  set_start(*one);
  return {};
}

Status Reader::base() {
  const Entry* entry = section("base");
  if (entry == nullptr) return {};
  SWEEP_TRY(need_map(document_, *entry->value, entry->place, "base"));
  for (const Entry& item : entry->value->entries) {
    const auto slot = values_.axis(item, "of base");
    if (!slot) return tl::unexpected(slot.error());
    const auto one = values_.one(*item.value, *slot);
    if (!one) return tl::unexpected(one.error());
    SWEEP_TRY(claim(*slot, item, "base"));
    set_start(*one);
  }
  return {};
}

Expected<Grid> read_text(std::string_view yaml, const std::filesystem::path& shown_as,
                         const ReadOptions& options) {
  const auto document = Document::parse(std::string(yaml), shown_as.string());
  if (!document) return tl::unexpected(document.error());
  Grid grid;
  grid.path = shown_as;
  grid.text = std::string(yaml);
  auto spec = std::make_shared<GridSpec>();
  SWEEP_TRY(Reader(*document, grid, *spec).run(options));
  grid.spec = std::move(spec);
  return grid;
}

Expected<Grid> read_file(const std::filesystem::path& path, const ReadOptions& options) {
  const auto file = read_input(path, kMaxFileBytes, Streams::kTaken);
  if (!file) return tl::unexpected(file.error());
  auto grid = read_text(file->bytes, file->shown_as, options);
  if (grid) grid->from_stream = file->is_stream;
  return grid;
}

std::uint64_t points(const Grid& grid) {
  return grid.spec == nullptr ? 0 : grid.spec->points;
}

}  // namespace sweep::grid
