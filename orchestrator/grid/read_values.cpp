#include "orchestrator/grid/read_values.h"

#include <fmt/format.h>

#include <bit>

#include "base/expected.h"
#include "base/input_file.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/lengths.h"
#include "schema/axis_domain.h"
#include "schema/hardware_kinds.h"
#include "schema/rank_variables.h"

namespace sweep::grid {
namespace {

constexpr std::size_t kMaxLengthsText = 2048, kMaxLengthsFile = 64u << 20;  // bytes
constexpr std::size_t kMaxVariablesText = 4096;

struct Range {
  i64 min, max;
};

Range range_of(const Symbol& symbol) {
  if (symbol.origin == Origin::kDimension) return {least_dimension(symbol.name), kMaxDimension};
  if (symbol.origin == Origin::kOwn) return {-(i64{1} << 50), i64{1} << 50};
  const AxisDomain* domain = axis_domain(symbol.name);
  return domain == nullptr ? Range{0, i64{1} << 50} : Range{domain->min, domain->max};
}

bool is_env(const Symbol& symbol) {
  return symbol.name == "env" && symbol.origin == Origin::kAxis;
}

bool is_percentile(const Symbol& symbol, const Node& node) {
  return symbol.name == "seq_len" && symbol.origin == Origin::kAxis && node.is_map() &&
         node.find("percentile") != nullptr;
}

// The map is one value.
bool is_value(const Symbol& symbol, const Node& node) {
  return symbol.origin == Origin::kModel || is_env(symbol) || is_percentile(symbol, node);
}

}  // namespace

void join(Dimension& into, const Dimension& other) {
  Dimension both;
  both.count = into.count;
  both.slots = into.slots;
  both.slots.insert(both.slots.end(), other.slots.begin(), other.slots.end());
  const std::size_t a = into.slots.size(), b = other.slots.size();
  for (std::size_t row = 0; row < both.count; ++row) {
    for (const auto& [from, width] : {std::pair(&std::as_const(into), a), std::pair(&other, b)}) {
      const auto begin = static_cast<std::ptrdiff_t>(row * width),
                 end = static_cast<std::ptrdiff_t>((row + 1) * width);
      both.cells.insert(both.cells.end(), from->cells.begin() + begin, from->cells.begin() + end);
      both.held.insert(both.held.end(), from->held.begin() + begin, from->held.begin() + end);
    }
  }
  into = std::move(both);
}

Expected<Slot> ValueReader::axis(const Entry& entry, std::string_view section) const {
  const auto slot = spec_.scope.find(entry.key);
  if (entry.key == "workload" || entry.key == "program") {
    return document_.refuse(entry.place, {ErrorKind::kUnsupported, entry.key},
                            "'{}' is set by the grid's section 'workload'", entry.key);
  }
  if (slot && spec_.scope.is_axis(*slot)) return *slot;
  if (slot && spec_.scope.at(*slot).origin == Origin::kDimension) {
    return document_.refuse(
        entry.place, {ErrorKind::kUnsupported, entry.key},
        "'{}' is a dimension of the model, not an axis; list models with their dimensions under grid: model",
        entry.key);
  }
  if (slot && spec_.scope.at(*slot).origin == Origin::kWorld) {
    return document_.refuse(entry.place, {ErrorKind::kUnsupported, entry.key},
                            "'world' follows from dp x tp x pp x cp; give those, or use it in where");
  }
  const std::string own = spec_.workload ? fmt::format(
                                               "; an axis of the command's own is declared under workload: "
                                               "`axes: {{{}: DEFAULT}}`",
                                               entry.key)
                                         : "";
  return document_.refuse(entry.place, {ErrorKind::kUnknownName, entry.key}, "'{}' is not an axis {}{}{}",
                          entry.key, section, suggestion(entry.key, spec_.scope.axis_names()), own);
}

Expected<Dimension> ValueReader::one(const Node& node, Slot slot) {
  Dimension out;
  const std::string& name = spec_.scope.at(slot).name;
  if (node.is_list() || (node.is_map() && !is_value(spec_.scope.at(slot), node))) {
    return document_.refuse(node.place, {ErrorKind::kInvalidValue, name},
                            "{} takes a single value here, not {}; several values belong under grid", name,
                            node.kind_name());
  }
  SWEEP_TRY(append(node, spec_.scope.at(slot), out));
  if (out.slots.empty()) out.slots = {slot};
  if (out.count > 1)
    return document_.refuse(node.place, {ErrorKind::kInvalidValue, name},
                            "{} takes a single value here, not {}; several values belong under grid", name,
                            out.count);
  return out;
}

Expected<Dimension> ValueReader::many(const Node& node, Slot slot) {
  auto out = many(node, spec_.scope.at(slot));
  if (out && out->slots.empty()) out->slots = {slot};
  return out;
}

Expected<Dimension> ValueReader::many(const Node& node, const Symbol& symbol) {
  Dimension out;
  const bool forms = node.is_map() && !is_value(symbol, node);
  if (node.is_list()) {
    if (node.items.empty())
      return document_.refuse(node.place, {ErrorKind::kInvalidValue, symbol.name},
                              "{} has no values; list at least one", symbol.name);
    for (const NodePtr& item : node.items) SWEEP_TRY(append(*item, symbol, out));
  } else if (forms) {
    SWEEP_TRY(check_keys(document_, node, std::array<std::string_view, 2>{"pow2", "range"},
                         fmt::format("of {}", symbol.name)));
    if (node.entries.size() != 1)
      return document_.refuse(node.place, {ErrorKind::kInvalidValue, symbol.name},
                              "{} takes one form: a list, {{pow2: [a, b]}} or {{range: [a, b, step]}}",
                              symbol.name);
    if (symbol.type != Type::kInt)
      return document_.refuse(node.place, {ErrorKind::kInvalidValue, symbol.name},
                              "{} does not take whole numbers; list its values", symbol.name);
    SWEEP_TRY(node.entries[0].key == "pow2" ? append_pow2(node, symbol, out)
                                            : append_range(node, symbol, out));
  } else {
    SWEEP_TRY(append(node, symbol, out));
  }
  return out;
}

Expected<std::pair<i64, i64>> ValueReader::bounds(const Entry& entry, const Symbol& symbol,
                                                  std::size_t numbers) const {
  const Node& list = *entry.value;
  if (!list.is_list() || list.items.size() != numbers) {
    return document_.refuse(list.place, {ErrorKind::kInvalidValue, entry.key}, "{} takes {}", entry.key,
                            numbers == 2 ? "[first, last], both powers of two" : "[first, last, step]");
  }
  const auto [min, max] = range_of(symbol);
  SWEEP_GET(const auto first, read_int(document_, *list.items[0], symbol.name, min, max));
  SWEEP_GET(const auto last, read_int(document_, *list.items[1], symbol.name, min, max));
  if (first > last) {
    return document_.refuse(list.place, {ErrorKind::kInvalidValue, entry.key},
                            "{} from {} to {} is empty; write the smaller number first", entry.key, first,
                            last);
  }
  return std::pair(first, last);
}

Status ValueReader::append_pow2(const Node& node, const Symbol& symbol, Dimension& out) {
  SWEEP_GET(const auto ends, bounds(node.entries[0], symbol, 2));
  const auto [first, last] = ends;
  for (const i64 end : {first, last}) {
    if (end >= 1 && std::has_single_bit(static_cast<std::uint64_t>(end))) continue;
    return document_.refuse(node.entries[0].value->place, {ErrorKind::kInvalidValue, fmt::format("{}", end)},
                            "pow2: {} is not a power of two; take 1, 2, 4, 8, ...", end);
  }
  for (i64 value = first; value <= last; value *= 2) out.cells.push_back({value});
  out.count = out.cells.size();
  out.held.assign(out.count, Presence::kValue);
  return {};
}

Status ValueReader::append_range(const Node& node, const Symbol& symbol, Dimension& out) {
  SWEEP_GET(const auto ends, bounds(node.entries[0], symbol, 3));
  const auto [first, last] = ends;
  const auto step =
      read_int(document_, *node.entries[0].value->items[2], "the step of range", 1, i64{1} << 50);
  if (!step) return tl::unexpected(step.error());
  if (static_cast<std::uint64_t>((last - first) / *step) >= kMaxAxisValues) {
    return document_.refuse(node.entries[0].value->place, {ErrorKind::kInvalidValue, symbol.name},
                            "range gives {} values; at most {} an axis, take a larger step",
                            (last - first) / *step + 1, kMaxAxisValues);
  }
  for (i64 value = first; value <= last; value += *step) out.cells.push_back({value});
  out.count = out.cells.size();
  out.held.assign(out.count, Presence::kValue);
  return {};
}

Status ValueReader::append(const Node& node, const Symbol& symbol, Dimension& out) {
  if (symbol.origin == Origin::kModel) return append_model(node, out);
  out.count++;
  if (symbol.optional && node.kind == Node::Kind::kNull) {
    out.cells.push_back({0});
    out.held.push_back(Presence::kAbsent);
    return {};
  }
  SWEEP_GET(const auto value, cell(node, symbol));
  out.cells.push_back(value);
  out.held.push_back(Presence::kValue);
  return {};
}

Expected<std::string> ValueReader::lengths_file(const Node& node, const std::filesystem::path& path) const {
  auto file = read_input(path, kMaxLengthsFile, Streams::kRefused);
  if (file) return std::move(file->bytes);
  return document_.refuse(node.place, file.error(), "lengths: {} (the path is relative to the grid file)",
                          file.error().message);
}

// A file's lengths become part of the trial: its id follows from what is in the file, and no rank reads it.
Expected<std::string> ValueReader::lengths(const Node& node) const {
  SWEEP_GET(const auto word, read_word(document_, node, "lengths", kMaxLengthsText));
  constexpr std::string_view kFile = "file ";
  std::string text = word;
  if (text.starts_with(kFile)) {
    const auto path = (folder_ / text.substr(kFile.size())).lexically_normal();
    SWEEP_GET(const auto file, lengths_file(node, path));
    const auto listed = shape::lengths_of_file(file, path.string());
    if (!listed) return document_.refuse(node.place, listed.error());
    text = *listed;
  }
  const auto lengths = shape::Lengths::parse(text);
  if (!lengths) return document_.refuse(node.place, lengths.error());
  return lengths->text();
}

// The length that so many percent of a file's documents do not exceed, rounded up to a multiple.
Expected<i64> ValueReader::percentile(const Node& node) const {
  SWEEP_TRY(check_keys(document_, node, std::array<std::string_view, 3>{"percentile", "of", "multiple_of"},
                       "of seq_len"));
  const Node* const of = node.find("of");
  if (of == nullptr)
    return document_.refuse(node.place, {ErrorKind::kMissing, "of"},
                            "seq_len: a percentile is `of` a file of lengths; add of: FILE");
  SWEEP_GET(const auto percent, read_real(document_, *node.find("percentile"), "percentile", 0.001, 100));
  SWEEP_GET(const auto name, read_word(document_, *of, "of"));
  const Node* const step = node.find("multiple_of");
  SWEEP_GET(const auto multiple,
            step == nullptr ? Expected<i64>(1) : read_int(document_, *step, "multiple_of", 1, i64{1} << 20));
  const auto path = (folder_ / name).lexically_normal();
  SWEEP_GET(const auto file, lengths_file(*of, path));
  const auto all = shape::read_lengths(file, path.string());
  if (!all) return document_.refuse(of->place, all.error());
  const i64 tokens = (shape::percentile(*all, percent) + multiple - 1) / multiple * multiple;
  if (tokens <= axis_domain("seq_len")->max) return tokens;
  return document_.refuse(of->place, {ErrorKind::kInvalidValue, "seq_len"}, "seq_len: {} tokens are too many",
                          tokens);
}

// A map of names and values, or the text of the axis. Each refusal has the place of what is wrong.
Expected<std::string> ValueReader::variables(const Node& node) const {
  if (node.is_scalar()) {
    if (node.text.empty()) return node.text;
    SWEEP_GET(const auto word, read_word(document_, node, "env", kMaxVariablesText));
    const auto read = rank_variables_from(word);
    if (!read) return document_.refuse(node.place, read.error());
    return text_of(*read);
  }
  if (node.is_map() && node.entries.empty()) return "";  // no variables
  SWEEP_TRY(need_map(document_, node, node.place, "env"));
  RankVariables out;
  for (const Entry& entry : node.entries) {
    const Node& value = *entry.value;
    const std::string text = value.is_scalar() ? value.text : "";
    const auto one = rank_variables_from(entry.key + "=" + text);
    if (!one) return document_.refuse(entry.place, one.error());
    if (one->size() != 1 || one->begin()->second != text)
      return document_.refuse(value.place, {ErrorKind::kInvalidValue, entry.key},
                              "env: the value of {} has a blank", entry.key);
    out.merge(RankVariables(*one));
  }
  return text_of(out);
}

Expected<Cell> ValueReader::cell(const Node& node, const Symbol& symbol) {
  Cell out{0};
  if (is_percentile(symbol, node)) {
    SWEEP_GET(out.i, percentile(node));
  } else if (symbol.type == Type::kInt) {
    const auto [min, max] = range_of(symbol);
    SWEEP_GET(out.i, read_int(document_, node, symbol.name, min, max));
  } else if (symbol.type == Type::kReal) {
    SWEEP_GET(out.r, read_real(document_, node, symbol.name, -1e300, 1e300));
  } else if (symbol.type == Type::kBool) {
    SWEEP_GET(const auto value, read_flag(document_, node, symbol.name));
    out.i = value ? 1 : 0;
  } else if (symbol.name == "lengths" && symbol.origin == Origin::kAxis) {
    SWEEP_GET(const auto value, lengths(node));
    out.i = spec_.scope.words.id(value);
  } else if (is_env(symbol)) {
    SWEEP_GET(const auto value, variables(node));
    out.i = spec_.scope.words.id(value);
  } else {
    SWEEP_GET(auto value, read_word(document_, node, symbol.name));
    if (symbol.name == "hardware" && is_mixed(value)) {
      const auto mix = shape::find_hardware(value);
      if (!mix) return document_.refuse(node.place, mix.error());
    } else if (!takes(symbol, value)) {
      return document_.refuse(node.place, {ErrorKind::kInvalidValue, value}, "'{}' is not a value of {}{}",
                              value, symbol.name, suggestion(value, symbol.values));
    }
    out.i = spec_.scope.words.id(value);
  }
  return out;
}

}  // namespace sweep::grid
