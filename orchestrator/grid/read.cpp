// Reading a grid file, section by section, into a GridSpec in which everything is known to be right.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/expected.h"
#include "base/input_file.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/grid/keys.h"
#include "orchestrator/grid/read_sections.h"
#include "orchestrator/grid/reader.h"
#include "schema/hardware_kinds.h"
#include "schema/rehearsal.h"

namespace sweep::grid {
namespace {

bool is_name_char(char c, bool first) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         (!first && (c == '.' || c == '_' || c == '-'));
}

// name and question.
Status read_header(const Reading& in, Grid& grid) {
  const Entry* name = in.section("name");
  if (name == nullptr)
    return in.document.refuse({}, {ErrorKind::kMissing, "name"},
                              "'name' is missing; give the sweep a name, as in 'name: llama-8b'");
  SWEEP_GET(const auto text, read_word(in.document, *name->value, "name", 100));
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_name_char(text[i], i == 0))
      return in.document.refuse(
          name->value->place, {ErrorKind::kInvalidValue, "name"},
          "name takes letters, digits, '.', '_' and '-', and starts with a letter or digit");
  }
  if (is_rehearsal(text))
    return in.document.refuse(name->value->place, {ErrorKind::kInvalidValue, "name"},
                              "names that end in {} are for rehearsals; choose another", kRehearsalSuffix);
  grid.name = text;
  if (const Entry* question = in.section("question")) {
    SWEEP_GET(grid.question, read_word(in.document, *question->value, "question", 4096));
  }
  return {};
}

template <class T>
void set_default(GridSpec& spec, Slot slot, const T& value) {
  Cell& cell = spec.start.cells[slot];
  if constexpr (AxisChoice<T>) {
    cell.i = spec.scope.words.id(to_string(value));
  } else if constexpr (std::is_same_v<T, std::string>) {
    cell.i = spec.scope.words.id(value);
  } else if constexpr (std::is_same_v<T, double>) {
    cell.r = value;
  } else if constexpr (std::is_same_v<T, std::optional<i64>>) {
    cell.i = value.value_or(0);
    if (!value) spec.start.held[slot] = Presence::kAbsent;
  } else {
    cell.i = value;
  }
}

// Every slot at its default; none given.
void set_defaults(GridSpec& spec) {
  spec.start.cells.assign(spec.scope.size(), Cell{0});
  spec.start.held.assign(spec.scope.size(), Presence::kValue);
  Trial trial;
  Slot slot = 0;
  for_each_axis(trial,
                [&](const FieldInfo&, const auto& preset, auto&) { set_default(spec, slot++, preset); });
}

// The command that trials run instead of the step, and the axes that it brings.
Status read_command(Reading& in, Grid& grid, const BuiltInRecipes& recipes) {
  const Entry* entry = in.section("workload");
  if (entry == nullptr) return {};
  SWEEP_GET(auto workload, read_workload(in.document, *entry, grid.path.parent_path(), recipes));
  for (OwnAxis& axis : workload.axes) {
    if (in.spec.scope.find(axis.name) || is_name_of_sweep(axis.name))
      return axis.document->refuse(axis.place, {ErrorKind::kConflict, axis.name},
                                   "sweep itself uses the name '{}', of an axis or of a column of the "
                                   "results; choose another one for the axis",
                                   axis.name);
    axis.slot = in.spec.scope.add_own_axis(axis.name, axis.type);
    in.spec.scope.set_values(axis.slot, axis.values);
  }
  grid.recipe = workload.recipe;
  grid.working_folder = workload.folder;
  in.spec.workload.emplace(std::move(workload));
  return {};
}

std::string variable_of(std::string name) {
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
  return name;
}

// Room for the names that the grid added.
void grow(GridSpec& spec) {
  spec.start.cells.resize(spec.scope.size(), Cell{0});
  spec.start.held.resize(spec.scope.size(), Presence::kValue);
  spec.given.assign(spec.scope.size(), false);
}

// The defaults of the axes that the command brings.
Status read_own_defaults(Reading& in) {
  if (!in.spec.workload) return {};
  for (const OwnAxis& axis : in.spec.workload->axes()) {
    SWEEP_GET(const auto one, in.values.one(*axis.preset, axis.slot));
    set_start(in.spec, one);
  }
  return {};
}

// Now that every model and hardware is known: what expressions may compare with, and the catalogue's GPUs per
// node.
void name_models(GridSpec& spec) {
  std::vector<std::string> labels;
  for (const ModelEntry& entry : spec.models) labels.push_back(spec.scope.words.at(entry.word));
  spec.scope.set_values(spec.scope.slot("model"), std::move(labels));
  for (const auto& hardware : shape::all_hardware()) {
    const auto word = static_cast<std::size_t>(spec.scope.words.id(hardware.name));
    if (spec.gpus_per_node.size() <= word) spec.gpus_per_node.resize(word + 1, 0);
    spec.gpus_per_node[word] = hardware.gpu.empty() ? 0 : static_cast<std::int32_t>(hardware.gpus_per_node);
  }
  for (std::size_t word = 0; word < spec.scope.words.size(); ++word) {
    const std::string& name = spec.scope.words.at(static_cast<i64>(word));
    const auto* mix = is_mixed(name) ? shape::known_hardware(name) : nullptr;
    if (mix == nullptr) continue;
    if (spec.gpus_per_node.size() <= word) spec.gpus_per_node.resize(word + 1, 0);
    spec.gpus_per_node[word] = static_cast<std::int32_t>(mix->gpus_per_node);
  }
}

// Values that the program never gets would run it again as another trial.
Status all_in_use(Reading& in) {
  const auto used = used_slots(in.spec);
  in.spec.workload->know(known_axes(in.spec, used));
  in.spec.workload->also_reads(used);
  if (const Dimension* unused = unused_dimension(in.spec, used)) {
    const std::string& name = in.spec.scope.at(unused->slots.front()).name;
    return in.document.refuse(
        unused->place, {ErrorKind::kUnsupported, name},
        "'{0}' has {1} values, and the program gets none of them: neither its command nor its variables and "
        "files name it, so the same program would run {1} times. Name it, as in `command: [..., --{0}, "
        "\"{{{0}}}\"]` or `env: {{{2}: \"{{{0}}}\"}}`, or remove it",
        name, unused->count, variable_of(name));
  }
  if (const auto unused = unused_value(in.spec, used)) {
    const std::string& name = in.spec.scope.at(unused->slot).name;
    return in.document.refuse(unused->place, {ErrorKind::kUnsupported, name},
                              "this point differs from an earlier one in '{0}' alone, which the program "
                              "never gets, so the same program would run again. Name it in the command, its "
                              "variables or files, or remove one of the points",
                              name);
  }
  return {};
}

// Repeats are the built-in step's: a program runs its steps once.
Status no_repeats(Reading& in, const Grid& grid) {
  if (grid.measure.repeats <= 1) return {};
  const Entry* measure = in.document.root().entry("measure");
  const Entry* entry = measure != nullptr ? measure->value->entry("repeats") : nullptr;
  if (entry == nullptr) entry = in.document.root().entry("repeats");
  return in.document.refuse(entry->place, {ErrorKind::kUnsupported, "repeats"},
                            "a command runs its steps once, so it has no repeats; give more steps, or "
                            "measure the best again by `sweep confirm`");
}

Status read_sections(Reading& in, Grid& grid, const ReadOptions& options) {
  AxisSections axes(in);
  StageSection stages(in, axes);
  ExpressionSections expressions(in);
  PointSections points(in);
  SWEEP_TRY(check_keys(in.document, in.document.root(), kTopKeys, "of a grid file"));
  SWEEP_TRY(read_header(in, grid));
  set_defaults(in.spec);
  SWEEP_TRY(read_command(in, grid, options.recipes));
  SWEEP_TRY(expressions.add_labels());
  SWEEP_TRY(stages.add_label());
  grow(in.spec);
  SWEEP_TRY(read_own_defaults(in));
  SWEEP_TRY(axes.read_base());
  in.spec.base_given = in.spec.given;
  for (const Dimension& sizes : in.spec.dimensions)  // micro_batch_size: auto is no value of base
    for (const Slot slot : sizes.slots) in.spec.base_given[slot] = false;
  SWEEP_TRY(stages.read());
  SWEEP_TRY(axes.read_wheels(options));
  for (const Derived& derived : in.spec.derived)
    in.spec.given[derived.slot] = in.spec.base_given[derived.slot] = true;
  SWEEP_TRY(axes.read_suggested());
  SWEEP_TRY(points.included());
  name_models(in.spec);
  SWEEP_TRY(expressions.derive());
  SWEEP_TRY(expressions.where());
  SWEEP_TRY(points.exclude());
  SWEEP_TRY(expressions.order_included());
  SWEEP_TRY(axes.need_model());
  SWEEP_TRY(read_measure(in.document, grid));
  if (in.spec.workload) SWEEP_TRY(no_repeats(in, grid));
  if (in.spec.workload) SWEEP_TRY(in.spec.workload->bind(in.spec.scope, grid.measure));
  if (in.spec.workload) SWEEP_TRY(all_in_use(in));
  SWEEP_TRY(read_limits(in.document, grid));
  SWEEP_TRY(read_strategy(in.document, grid));
  return read_launch(in.document, grid);
}

// The section `suggested` as with_suggested() takes it.
std::string suggested_values(const Document& document) {
  const Node* section = document.root().find("suggested");
  std::string out;
  for (const Entry& each : section == nullptr ? std::vector<Entry>() : section->entries)
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", each.key,
                       each.value->quoted ? nlohmann::json(each.value->text).dump() : each.value->text);
  return out;
}

}  // namespace

void set_start(GridSpec& spec, const Dimension& one) {
  for (std::size_t i = 0; i < one.slots.size(); ++i) {
    spec.start.cells[one.slots[i]] = one.cells[i];
    spec.start.held[one.slots[i]] = one.held[i];
  }
}

bool sets_axis(const Grid& grid, std::string_view axis) {
  return grid.spec->given[grid.spec->scope.slot(axis)];
}

bool leaves_unset(const Grid& grid, std::string_view axis) {
  const GridSpec& spec = *grid.spec;
  const Slot slot = spec.scope.slot(axis);
  const auto derives = [slot](const Program& program) {
    return std::ranges::any_of(program, [slot](const Step& step) { return step.writes == slot; });
  };
  return !spec.given[slot] && !derives(spec.program) &&
         std::ranges::none_of(spec.include, [&](const Included& point) {
           return point.given[slot] || derives(point.program);
         });
}

Expected<std::string> with_suggested(const Grid& grid, std::string_view values) {
  SWEEP_GET(const auto document, Document::parse(grid.text, grid.path.string()));
  const Node& root = document.root();
  std::string out = grid.text;
  if (out[root.offset] == '{')
    return out.insert(root.offset + 1, fmt::format("\"suggested\": {{{}}}, ", values));
  if (!out.ends_with('\n')) out += '\n';
  return out + fmt::format("{}suggested: {{{}}}\n", std::string(root.place.column - 1, ' '), values);
}

Expected<Grid> read_text(std::string_view yaml, const std::filesystem::path& shown_as,
                         const ReadOptions& options) {
  SWEEP_GET(const auto document, Document::parse(std::string(yaml), shown_as.string()));
  Grid grid;
  grid.path = shown_as;
  grid.text = std::string(yaml);
  auto spec = std::make_shared<GridSpec>();
  Reading in{document, *spec, ValueReader(document, *spec, grid.path.parent_path())};
  SWEEP_TRY(read_sections(in, grid, options));
  grid.suggested = suggested_values(document);
  grid.auto_micro_batch = std::ranges::any_of(spec->dimensions, &Dimension::automatic);
  if (grid.strategy) {
    Strategy strategy = *grid.strategy;
    strategy.auto_micro_batch = grid.auto_micro_batch;
    if (const auto why = strategy.conflict())
      return document.refuse(document.root().entry("strategy")->place, {ErrorKind::kConflict, "strategy"},
                             std::string(*why));
  }
  grid.spec = std::move(spec);
  return grid;
}

Expected<Grid> read_file(const std::filesystem::path& path, const ReadOptions& options) {
  SWEEP_GET(const auto file, read_input(path, kMaxFileBytes, Streams::kTaken));
  auto grid = read_text(file.bytes, file.shown_as, options);
  if (grid) grid->from_stream = file.is_stream;
  return grid;
}

}  // namespace sweep::grid
