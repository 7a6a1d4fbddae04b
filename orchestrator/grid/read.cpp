// Reading a grid file, section by section, into a GridSpec in which everything is known to be right.
#include <fmt/format.h>

#include <fstream>

#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/grid/keys.h"
#include "orchestrator/grid/read_sections.h"
#include "orchestrator/grid/read_values.h"
#include "schema/axis_domain.h"

namespace sweep::grid {
namespace {

constexpr std::size_t kMaxClauses = 256, kMaxItems = 10'000;
constexpr std::array<std::string_view, 13> kReservedNames{
    "and", "or", "not", "in", "min", "max", "ceil", "floor", "true", "false", "null", "trial", "sweep"};

bool is_name_char(char c, bool first) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         (!first && (c == '.' || c == '_' || c == '-'));
}

bool is_label(std::string_view name) {
  if (name.empty() || name.size() > 64 || !((name[0] >= 'a' && name[0] <= 'z') || name[0] == '_'))
    return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

class Reader {
 public:
  Reader(const Document& document, Grid& grid, GridSpec& spec)
      : document_(document),
        root_(document.root()),
        grid_(grid),
        spec_(spec),
        values_(document, spec, grid.path.parent_path()) {}

  Status run(const ReadOptions& options) {
    SWEEP_GRID_TRY(check_keys(document_, root_, kTopKeys, "of a grid file"));
    SWEEP_GRID_TRY(header());
    defaults();
    SWEEP_GRID_TRY(add_labels());
    SWEEP_GRID_TRY(model());
    SWEEP_GRID_TRY(base());
    SWEEP_GRID_TRY(axes());
    SWEEP_GRID_TRY(zips());
    SWEEP_GRID_TRY(count_points(options));
    for (const Derived& derived : spec_.derived) spec_.given[derived.slot] = true;
    SWEEP_GRID_TRY(included());
    name_models();
    SWEEP_GRID_TRY(derive());
    SWEEP_GRID_TRY(where());
    SWEEP_GRID_TRY(exclude());
    SWEEP_GRID_TRY(order_included());
    SWEEP_GRID_TRY(read_measure(document_, grid_));
    SWEEP_GRID_TRY(read_limits(document_, grid_));
    return read_launch(document_, grid_);
  }

 private:
  tl::unexpected<Error> refuse(Place at, std::string_view message) const {
    return tl::unexpected(document_.error(at, message));
  }

  const Entry* section(std::string_view key) const {
    for (const Entry& entry : root_.entries) {
      if (entry.key == key) return &entry;
    }
    return nullptr;
  }

  Status header() {
    const Entry* name = section("name");
    if (name == nullptr)
      return refuse({}, "'name' is missing; give the sweep a name, as in 'name: llama-8b'");
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

  // Every slot at its default; none given.
  void defaults() {
    spec_.start.cells.assign(spec_.scope.size(), Cell{0});
    spec_.start.held.assign(spec_.scope.size(), Held::kValue);
    Trial trial;
    Slot slot = 0;
    for_each_axis(trial, [&](const FieldInfo&, const auto& preset, auto&) {
      set_default(slot, preset);
      ++slot;
    });
  }
  // One per type of fields.def.
  void set_default(Slot slot, i64 value) { spec_.start.cells[slot].i = value; }
  void set_default(Slot slot, bool value) { spec_.start.cells[slot].i = value ? 1 : 0; }
  void set_default(Slot slot, double value) { spec_.start.cells[slot].r = value; }
  void set_default(Slot slot, const std::string& value) {
    spec_.start.cells[slot].i = spec_.scope.words.id(value);
  }
  void set_default(Slot slot, const std::optional<i64>& value) {
    spec_.start.cells[slot].i = value.value_or(0);
    if (!value) spec_.start.held[slot] = Held::kAbsent;
  }

  // Names that `derive` sets, before anything refers to them.
  Status add_labels() {
    const Entry* entry = section("derive");
    if (entry == nullptr) return grow();
    SWEEP_GRID_TRY(need_map(document_, *entry->value, entry->place, "derive"));
    if (entry->value->entries.size() > kMaxClauses)
      return refuse(entry->place, fmt::format("derive has more than {} entries", kMaxClauses));
    for (const Entry& item : entry->value->entries) {
      auto slot = spec_.scope.find(item.key);
      if (slot && (*slot >= spec_.scope.axis_count() || spec_.scope.at(*slot).type == Type::kText)) {
        return refuse(
            item.place,
            fmt::format("derive cannot set '{}'; it sets axes that are numbers or flags, and new names",
                        item.key));
      }
      if (!slot && (!is_label(item.key) || std::find(kReservedNames.begin(), kReservedNames.end(),
                                                     item.key) != kReservedNames.end())) {
        return refuse(item.place, fmt::format("'{}' cannot name a derived value; take lower-case letters, "
                                              "digits and '_', and no word of the expressions",
                                              item.key));
      }
      if (!slot) slot = spec_.scope.add_label(item.key);
      Derived derived{item.key, *slot, {}, item.place};
      if (const AxisDomain* domain = axis_domain(item.key))
        derived.min = domain->min, derived.max = domain->max;
      spec_.derived.push_back(std::move(derived));
    }
    return grow();
  }
  Status grow() {
    spec_.start.cells.resize(spec_.scope.size(), Cell{0});
    spec_.start.held.resize(spec_.scope.size(), Held::kValue);
    spec_.given.assign(spec_.scope.size(), false);
    return {};
  }

  // Each axis has one home: base, grid, zip or derive.
  Status claim(Slot slot, const Entry& entry, std::string_view section) {
    const std::string& name = spec_.scope.at(slot).name;
    for (const Derived& derived : spec_.derived) {
      if (derived.slot == slot)
        return refuse(entry.place, fmt::format("'{}' is also set by derive at line {}; keep one of them",
                                               name, derived.place.line));
    }
    if (spec_.given[slot])
      return refuse(entry.place,
                    fmt::format("'{}' is given twice: here under {}, and under {}; keep one of them", name,
                                section, homes_[slot]));
    spec_.given[slot] = true;
    homes_[slot] = std::string(section);
    return {};
  }

  void set_start(const Dimension& one) {
    for (std::size_t i = 0; i < one.slots.size(); ++i) {
      spec_.start.cells[one.slots[i]] = one.cells[i];
      spec_.start.held[one.slots[i]] = one.held[i];
    }
  }

  Status model() {
    const Entry* entry = section("model");
    if (entry == nullptr) return {};
    const Slot slot = spec_.scope.slot("model");
    const auto one = values_.one(*entry->value, slot);
    if (!one) return tl::unexpected(one.error());
    SWEEP_GRID_TRY(claim(slot, *entry, "model"));
    set_start(*one);
    return {};
  }

  Status base() {
    const Entry* entry = section("base");
    if (entry == nullptr) return {};
    SWEEP_GRID_TRY(need_map(document_, *entry->value, entry->place, "base"));
    for (const Entry& item : entry->value->entries) {
      const auto slot = values_.axis(item, "of base");
      if (!slot) return tl::unexpected(slot.error());
      const auto one = values_.one(*item.value, *slot);
      if (!one) return tl::unexpected(one.error());
      SWEEP_GRID_TRY(claim(*slot, item, "base"));
      set_start(*one);
    }
    return {};
  }

  Expected<Dimension> axis(const Entry& item, std::string_view section) {
    const auto slot = values_.axis(item, fmt::format("of {}", section));
    if (!slot) return tl::unexpected(slot.error());
    SWEEP_GRID_TRY(claim(*slot, item, section));
    return values_.many(*item.value, *slot);
  }

  Status axes() {
    const Entry* entry = section("grid");
    if (entry == nullptr) {
      if (section("zip") == nullptr && section("include") == nullptr)
        return refuse({}, "'grid' is missing; list axes with their values, as in 'grid: {tp: [1, 2]}'");
      return {};
    }
    spec_.grid_place = entry->place;
    SWEEP_GRID_TRY(need_map(document_, *entry->value, entry->place, "grid"));
    for (const Entry& item : entry->value->entries) {
      auto dimension = axis(item, "grid");
      if (!dimension) return tl::unexpected(dimension.error());
      spec_.dimensions.push_back(std::move(*dimension));
    }
    return {};
  }

  Status zips() {
    const Entry* entry = section("zip");
    if (entry == nullptr) return {};
    SWEEP_GRID_TRY(need_list(document_, *entry->value, "zip"));
    if (spec_.dimensions.empty()) spec_.grid_place = entry->place;
    if (entry->value->items.empty()) return refuse(entry->place, "zip is empty; fill it or remove it");
    for (const NodePtr& group : entry->value->items) {
      SWEEP_GRID_TRY(need_map(document_, *group, group->place, "a group of zip"));
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

  Status count_points(const ReadOptions& options) {
    spec_.points = spec_.dimensions.empty() ? 0 : 1;
    bool saturated = false;
    for (const Dimension& d : spec_.dimensions)
      saturated = __builtin_mul_overflow(spec_.points, d.count, &spec_.points) || saturated;
    if (saturated) spec_.points = std::numeric_limits<std::uint64_t>::max();
    if (spec_.points <= options.max_points) return {};
    return refuse(spec_.grid_place,
                  fmt::format("the grid has {}{} combinations before `where`, more than {}; narrow it, or "
                              "allow it with --max-points {}",
                              saturated ? "more than " : "", spec_.points, options.max_points, spec_.points));
  }

  Status included() {
    const Entry* entry = section("include");
    if (entry == nullptr) return {};
    SWEEP_GRID_TRY(need_list(document_, *entry->value, "include"));
    if (spec_.dimensions.empty() && entry->value->items.empty())
      return refuse(entry->place, "there is neither a grid nor an include; nothing to run");
    if (entry->value->items.size() > kMaxItems)
      return refuse(entry->place, fmt::format("include has more than {} items", kMaxItems));
    for (const NodePtr& item : entry->value->items) {
      SWEEP_GRID_TRY(need_map(document_, *item, item->place, "an item of include"));
      Included point;
      point.place = item->place;
      point.given = base_given();
      for (const Entry& axis : item->entries) SWEEP_GRID_TRY(include_axis(axis, point));
      if (!point.given[spec_.scope.slot("model")])
        return refuse(item->place, "this point has no model; add 'model: NAME' to it or to the file");
      spec_.include.push_back(std::move(point));
    }
    return {};
  }

  // What an included point starts from: base and derive, not the grid's axes.
  std::vector<bool> base_given() const {
    std::vector<bool> given = spec_.given;
    for (const Dimension& d : spec_.dimensions) {
      for (const Slot slot : d.slots) given[slot] = false;
    }
    return given;
  }

  Status include_axis(const Entry& axis, Included& point) {
    const auto slot = values_.axis(axis, "of include");
    if (!slot) return tl::unexpected(slot.error());
    for (const Derived& derived : spec_.derived) {
      if (derived.slot == *slot)
        return refuse(axis.place,
                      fmt::format("'{}' is set by derive at line {}; an included point cannot set it",
                                  axis.key, derived.place.line));
    }
    const auto one = values_.one(*axis.value, *slot);
    if (!one) return tl::unexpected(one.error());
    point.given[*slot] = true;
    for (std::size_t i = 0; i < one->slots.size(); ++i) {
      if (one->held[i] == Held::kValue) point.cells.emplace_back(one->slots[i], one->cells[i]);
      if (one->held[i] == Held::kAbsent) point.absent.push_back(one->slots[i]);
    }
    return {};
  }

  // Now that every model and hardware is known: what expressions may compare with, and the catalogue's GPUs
  // per node.
  void name_models() {
    std::vector<std::string> labels;
    for (const ModelEntry& entry : spec_.models) labels.push_back(spec_.scope.words.at(entry.word));
    spec_.scope.set_values(spec_.scope.slot("model"), std::move(labels));
    for (const auto& hardware : shape::all_hardware()) {
      const auto word = static_cast<std::size_t>(spec_.scope.words.id(hardware.name));
      if (spec_.gpus_per_node.size() <= word) spec_.gpus_per_node.resize(word + 1, 0);
      spec_.gpus_per_node[word] =
          hardware.gpu.empty() ? 0 : static_cast<std::int32_t>(hardware.gpus_per_node);
    }
  }

  tl::unexpected<Error> refuse_expression(const Node& node, const ExpressionError& error) const {
    return refuse(
        document_.place_in(node, error.at),
        fmt::format(
            "{} (in \"{}\")", error.message,
            node.text.size() <= 200 ? node.text : node.text.substr(0, error.at < 200 ? 200 : 0) + "..."));
  }

  // Orders first, then compiles in that order, so that a name's type is known where it is used.
  Status derive() {
    const Entry* entry = section("derive");
    std::vector<std::vector<Slot>> reads(spec_.derived.size());
    for (std::size_t i = 0; i < spec_.derived.size(); ++i) {
      const Node& node = *entry->value->entries[i].value;
      if (!node.is_scalar())
        return refuse(node.place,
                      fmt::format("{} takes an expression, not {}", spec_.derived[i].name, node.kind_name()));
      for (const std::string& name : names_in(node.text)) {
        if (const auto slot = spec_.scope.find(name)) reads[i].push_back(*slot);
      }
    }
    auto program = order_steps(spec_, spec_.given, main_has_cpu(), reads);
    if (!program) return refuse_cycle(program.error());
    spec_.program = std::move(*program);
    for (const Step& step : spec_.program) {
      if (step.kind == Step::Kind::kDerived)
        SWEEP_GRID_TRY(
            compile_derived(spec_.derived[step.derived], *entry->value->entries[step.derived].value));
    }
    return {};
  }

  tl::unexpected<Error> refuse_cycle(const Cycle& cycle) const {
    return refuse(spec_.derived[cycle.derived].place,
                  fmt::format("derive goes in a circle: {}; give one of them a value", cycle.path));
  }

  Status compile_derived(Derived& derived, const Node& node) {
    auto code = compile(node.text, spec_.scope);
    if (!code) return refuse_expression(node, code.error());
    SWEEP_GRID_TRY(check_reads(*code, node));
    const Symbol& symbol = spec_.scope.at(derived.slot);
    if (symbol.origin == Origin::kLabel) {
      spec_.scope.set_type(derived.slot, code->type);
    } else if (symbol.type != code->type) {
      return refuse(node.place, fmt::format("{} is {}, but the expression gives {}{}", derived.name,
                                            type_name(symbol.type), type_name(code->type),
                                            code->type == Type::kReal ? "; use floor() or ceil()" : ""));
    }
    derived.code = std::move(*code);
    return {};
  }

  // An optional axis that nothing sets has no value anywhere: a slip, not a condition.
  Status check_reads(const Code& code, const Node& node) const {
    for (const Slot slot : code.reads) {
      if (!spec_.scope.at(slot).optional || spec_.given[slot]) continue;
      const std::size_t at = code.text.find(spec_.scope.at(slot).name);
      return refuse(
          document_.place_in(node, at),
          fmt::format("'{0}' has no value in this grid; set it under base, as in 'base: {{{0}: 1000000}}'",
                      spec_.scope.at(slot).name));
    }
    return {};
  }

  bool main_has_cpu() const {
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

  Status where() {
    const Entry* entry = section("where");
    if (entry == nullptr) return {};
    SWEEP_GRID_TRY(need_list(document_, *entry->value, "where"));
    if (entry->value->items.size() > kMaxClauses)
      return refuse(entry->place, fmt::format("where has more than {} clauses", kMaxClauses));
    for (const NodePtr& item : entry->value->items) {
      if (!item->is_scalar())
        return refuse(
            item->place,
            fmt::format("a clause of where is an expression, not {}; write it in quotes", item->kind_name()));
      auto code = compile(item->text, spec_.scope);
      if (!code) return refuse_expression(*item, code.error());
      if (code->type != Type::kBool)
        return refuse(document_.place_in(*item, 0),
                      fmt::format("\"{}\" is {}, not a condition; compare it with something", item->text,
                                  type_name(code->type)));
      SWEEP_GRID_TRY(check_reads(*code, *item));
      spec_.where.push_back({std::move(*code), document_.place_in(*item, 0)});
    }
    return {};
  }

  Status exclude() {
    const Entry* entry = section("exclude");
    if (entry == nullptr) return {};
    SWEEP_GRID_TRY(need_list(document_, *entry->value, "exclude"));
    if (entry->value->items.size() > kMaxItems)
      return refuse(entry->place, fmt::format("exclude has more than {} items", kMaxItems));
    for (const NodePtr& item : entry->value->items) {
      SWEEP_GRID_TRY(need_map(document_, *item, item->place, "an item of exclude"));
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

  Expected<Exclusion::Match> exclude_axis(const Entry& axis) {
    const auto slot = values_.axis(axis, "of exclude");
    if (!slot) return tl::unexpected(slot.error());
    const Symbol& symbol = spec_.scope.at(*slot);
    Exclusion::Match match{*slot, {}, false};
    if (symbol.origin == Origin::kModel) return exclude_models(axis, match);
    const auto values = values_.many(*axis.value, *slot);
    if (!values) return tl::unexpected(values.error());
    for (std::size_t i = 0; i < values->count; ++i) {
      if (values->held[i] == Held::kValue) match.any_of.push_back(values->cells[i]);
      if (values->held[i] == Held::kAbsent) match.or_absent = true;
    }
    return match;
  }

  Expected<Exclusion::Match> exclude_models(const Entry& axis, Exclusion::Match match) {
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

  Status order_included() {
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
    if (!spec_.dimensions.empty() && !spec_.given[spec_.scope.slot("model")]) {
      return refuse({}, "'model' is missing; name one, as in 'model: llama3-8b', or list several under grid");
    }
    return {};
  }

  const Document& document_;
  const Node& root_;
  Grid& grid_;
  GridSpec& spec_;
  ValueReader values_;
  std::map<Slot, std::string> homes_;
};

}  // namespace

Expected<Grid> read_text(std::string_view yaml, const std::filesystem::path& shown_as,
                         const ReadOptions& options) {
  const auto document = Document::parse(std::string(yaml), shown_as.string());
  if (!document) return tl::unexpected(document.error());
  Grid grid;
  grid.path = shown_as;
  grid.text = std::string(yaml);
  auto spec = std::make_shared<GridSpec>();
  SWEEP_GRID_TRY(Reader(*document, grid, *spec).run(options));
  grid.spec = std::move(spec);
  return grid;
}

Expected<Grid> read_file(const std::filesystem::path& path, const ReadOptions& options) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return fail(fmt::format("{}: there is no such file; give the path of a grid file", path.string()));
  if (!std::filesystem::is_regular_file(path, error))
    return fail(fmt::format("{}: not a regular file; give the path of a grid file", path.string()));
  std::ifstream in(path, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || !in.is_open())
    return fail(fmt::format("{}: cannot be read; check its permissions", path.string()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMaxFileBytes)
    return fail(
        fmt::format("{}: larger than {} bytes, the most a grid file has", path.string(), kMaxFileBytes));
  return read_text(text, path, options);
}

std::uint64_t points(const Grid& grid) {
  return grid.spec == nullptr ? 0 : grid.spec->points;
}

}  // namespace sweep::grid
