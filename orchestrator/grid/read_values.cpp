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
    return tl::unexpected(
        document_.error(entry.place, {ErrorKind::kUnsupported, entry.key},
                        fmt::format("'{}' is set by the grid's section 'workload'", entry.key)));
  }
  if (slot && spec_.scope.is_axis(*slot)) return *slot;
  if (slot && spec_.scope.at(*slot).origin == Origin::kDimension) {
    return tl::unexpected(
        document_.error(entry.place, {ErrorKind::kUnsupported, entry.key},
                        fmt::format("'{}' is a dimension of the model, not an axis; list models "
                                    "with their dimensions under grid: model",
                                    entry.key)));
  }
  if (slot && spec_.scope.at(*slot).origin == Origin::kWorld) {
    return tl::unexpected(
        document_.error(entry.place, {ErrorKind::kUnsupported, entry.key},
                        "'world' follows from dp x tp x pp x cp; give those, or use it in where"));
  }
  const std::string own = spec_.workload ? fmt::format(
                                               "; an axis of the command's own is declared under workload: "
                                               "`axes: {{{}: DEFAULT}}`",
                                               entry.key)
                                         : "";
  return tl::unexpected(document_.error(entry.place, {ErrorKind::kUnknownName, entry.key},
                                        fmt::format("'{}' is not an axis {}{}{}", entry.key, section,
                                                    suggestion(entry.key, spec_.scope.axis_names()), own)));
}

Expected<Dimension> ValueReader::one(const Node& node, Slot slot) {
  Dimension out;
  const std::string& name = spec_.scope.at(slot).name;
  if (node.is_list() || (node.is_map() && !is_value(spec_.scope.at(slot), node))) {
    return tl::unexpected(
        document_.error(node.place, {ErrorKind::kInvalidValue, name},
                        fmt::format("{} takes a single value here, not {}; several values belong under grid",
                                    name, node.kind_name())));
  }
  SWEEP_TRY(append(node, spec_.scope.at(slot), out));
  if (out.slots.empty()) out.slots = {slot};
  if (out.count > 1)
    return tl::unexpected(
        document_.error(node.place, {ErrorKind::kInvalidValue, name},
                        fmt::format("{} takes a single value here, not {}; several values belong under grid",
                                    name, out.count)));
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
      return tl::unexpected(document_.error(node.place, {ErrorKind::kInvalidValue, symbol.name},
                                            fmt::format("{} has no values; list at least one", symbol.name)));
    for (const NodePtr& item : node.items) SWEEP_TRY(append(*item, symbol, out));
  } else if (forms) {
    SWEEP_TRY(check_keys(document_, node, std::array<std::string_view, 2>{"pow2", "range"},
                         fmt::format("of {}", symbol.name)));
    if (node.entries.size() != 1)
      return tl::unexpected(document_.error(
          node.place, {ErrorKind::kInvalidValue, symbol.name},
          fmt::format("{} takes one form: a list, {{pow2: [a, b]}} or {{range: [a, b, step]}}",
                      symbol.name)));
    if (symbol.type != Type::kInt)
      return tl::unexpected(
          document_.error(node.place, {ErrorKind::kInvalidValue, symbol.name},
                          fmt::format("{} does not take whole numbers; list its values", symbol.name)));
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
    return tl::unexpected(document_.error(
        list.place, {ErrorKind::kInvalidValue, entry.key},
        fmt::format("{} takes {}", entry.key,
                    numbers == 2 ? "[first, last], both powers of two" : "[first, last, step]")));
  }
  const auto [min, max] = range_of(symbol);
  const auto first = read_int(document_, *list.items[0], symbol.name, min, max);
  if (!first) return tl::unexpected(first.error());
  const auto last = read_int(document_, *list.items[1], symbol.name, min, max);
  if (!last) return tl::unexpected(last.error());
  if (*first > *last) {
    return tl::unexpected(document_.error(
        list.place, {ErrorKind::kInvalidValue, entry.key},
        fmt::format("{} from {} to {} is empty; write the smaller number first", entry.key, *first, *last)));
  }
  return std::pair(*first, *last);
}

Status ValueReader::append_pow2(const Node& node, const Symbol& symbol, Dimension& out) {
  const auto ends = bounds(node.entries[0], symbol, 2);
  if (!ends) return tl::unexpected(ends.error());
  const auto [first, last] = *ends;
  for (const i64 end : {first, last}) {
    if (end >= 1 && std::has_single_bit(static_cast<std::uint64_t>(end))) continue;
    return tl::unexpected(
        document_.error(node.entries[0].value->place, {ErrorKind::kInvalidValue, fmt::format("{}", end)},
                        fmt::format("pow2: {} is not a power of two; take 1, 2, 4, 8, ...", end)));
  }
  for (i64 value = first; value <= last; value *= 2) out.cells.push_back({value});
  out.count = out.cells.size();
  out.held.assign(out.count, Presence::kValue);
  return {};
}

Status ValueReader::append_range(const Node& node, const Symbol& symbol, Dimension& out) {
  const auto ends = bounds(node.entries[0], symbol, 3);
  if (!ends) return tl::unexpected(ends.error());
  const auto [first, last] = *ends;
  const auto step =
      read_int(document_, *node.entries[0].value->items[2], "the step of range", 1, i64{1} << 50);
  if (!step) return tl::unexpected(step.error());
  if (static_cast<std::uint64_t>((last - first) / *step) >= kMaxAxisValues) {
    return tl::unexpected(
        document_.error(node.entries[0].value->place, {ErrorKind::kInvalidValue, symbol.name},
                        fmt::format("range gives {} values; at most {} an axis, take a larger step",
                                    (last - first) / *step + 1, kMaxAxisValues)));
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
  const auto value = cell(node, symbol);
  if (!value) return tl::unexpected(value.error());
  out.cells.push_back(*value);
  out.held.push_back(Presence::kValue);
  return {};
}

Expected<std::string> ValueReader::lengths_file(const Node& node, const std::filesystem::path& path) const {
  auto file = read_input(path, kMaxLengthsFile, Streams::kRefused);
  if (file) return std::move(file->bytes);
  return tl::unexpected(document_.error(
      node.place, file.error(),
      fmt::format("lengths: {} (the path is relative to the grid file)", file.error().message)));
}

// A file's lengths become part of the trial: its id follows from what is in the file, and no rank reads it.
Expected<std::string> ValueReader::lengths(const Node& node) const {
  const auto word = read_word(document_, node, "lengths", kMaxLengthsText);
  if (!word) return word;
  constexpr std::string_view kFile = "file ";
  std::string text = *word;
  if (text.starts_with(kFile)) {
    const auto path = (folder_ / text.substr(kFile.size())).lexically_normal();
    const auto file = lengths_file(node, path);
    if (!file) return file;
    const auto listed = shape::lengths_of_file(*file, path.string());
    if (!listed) return tl::unexpected(document_.error(node.place, listed.error(), listed.error().message));
    text = *listed;
  }
  const auto lengths = shape::Lengths::parse(text);
  if (!lengths) return tl::unexpected(document_.error(node.place, lengths.error(), lengths.error().message));
  return lengths->text();
}

// The length that so many percent of a file's documents do not exceed, rounded up to a multiple.
Expected<i64> ValueReader::percentile(const Node& node) const {
  SWEEP_TRY(check_keys(document_, node, std::array<std::string_view, 3>{"percentile", "of", "multiple_of"},
                       "of seq_len"));
  const Node* const of = node.find("of");
  if (of == nullptr)
    return tl::unexpected(document_.error(node.place, {ErrorKind::kMissing, "of"},
                                          "seq_len: a percentile is `of` a file of lengths; add of: FILE"));
  const auto percent = read_real(document_, *node.find("percentile"), "percentile", 0.001, 100);
  if (!percent) return tl::unexpected(percent.error());
  const auto name = read_word(document_, *of, "of");
  if (!name) return tl::unexpected(name.error());
  const Node* const step = node.find("multiple_of");
  const auto multiple =
      step == nullptr ? Expected<i64>(1) : read_int(document_, *step, "multiple_of", 1, i64{1} << 20);
  if (!multiple) return multiple;
  const auto path = (folder_ / *name).lexically_normal();
  const auto file = lengths_file(*of, path);
  if (!file) return tl::unexpected(file.error());
  const auto all = shape::read_lengths(*file, path.string());
  if (!all) return tl::unexpected(document_.error(of->place, all.error(), all.error().message));
  const i64 tokens = (shape::percentile(*all, *percent) + *multiple - 1) / *multiple * *multiple;
  if (tokens <= axis_domain("seq_len")->max) return tokens;
  return tl::unexpected(document_.error(of->place, {ErrorKind::kInvalidValue, "seq_len"},
                                        fmt::format("seq_len: {} tokens are too many", tokens)));
}

// A map of names and values, or the text of the axis. Each refusal has the place of what is wrong.
Expected<std::string> ValueReader::variables(const Node& node) const {
  if (node.is_scalar()) {
    if (node.text.empty()) return node.text;
    const auto word = read_word(document_, node, "env", kMaxVariablesText);
    if (!word) return word;
    const auto read = rank_variables_from(*word);
    if (!read) return tl::unexpected(document_.error(node.place, read.error(), read.error().message));
    return text_of(*read);
  }
  if (node.is_map() && node.entries.empty()) return "";  // no variables
  SWEEP_TRY(need_map(document_, node, node.place, "env"));
  RankVariables out;
  for (const Entry& entry : node.entries) {
    const Node& value = *entry.value;
    const std::string text = value.is_scalar() ? value.text : "";
    const auto one = rank_variables_from(entry.key + "=" + text);
    if (!one) return tl::unexpected(document_.error(entry.place, one.error(), one.error().message));
    if (one->size() != 1 || one->begin()->second != text)
      return tl::unexpected(document_.error(value.place, {ErrorKind::kInvalidValue, entry.key},
                                            fmt::format("env: the value of {} has a blank", entry.key)));
    out.merge(RankVariables(*one));
  }
  return text_of(out);
}

Expected<Cell> ValueReader::cell(const Node& node, const Symbol& symbol) {
  Cell out{0};
  if (is_percentile(symbol, node)) {
    const auto value = percentile(node);
    if (!value) return tl::unexpected(value.error());
    out.i = *value;
  } else if (symbol.type == Type::kInt) {
    const auto [min, max] = range_of(symbol);
    const auto value = read_int(document_, node, symbol.name, min, max);
    if (!value) return tl::unexpected(value.error());
    out.i = *value;
  } else if (symbol.type == Type::kReal) {
    const auto value = read_real(document_, node, symbol.name, -1e300, 1e300);
    if (!value) return tl::unexpected(value.error());
    out.r = *value;
  } else if (symbol.type == Type::kBool) {
    const auto value = read_flag(document_, node, symbol.name);
    if (!value) return tl::unexpected(value.error());
    out.i = *value ? 1 : 0;
  } else if (symbol.name == "lengths" && symbol.origin == Origin::kAxis) {
    const auto value = lengths(node);
    if (!value) return tl::unexpected(value.error());
    out.i = spec_.scope.words.id(*value);
  } else if (is_env(symbol)) {
    const auto value = variables(node);
    if (!value) return tl::unexpected(value.error());
    out.i = spec_.scope.words.id(*value);
  } else {
    auto value = read_word(document_, node, symbol.name);
    if (!value) return tl::unexpected(value.error());
    if (symbol.name == "hardware" && is_mixed(*value)) {
      const auto mix = shape::find_hardware(*value);
      if (!mix) return tl::unexpected(document_.error(node.place, mix.error(), mix.error().message));
    } else if (!takes(symbol, *value)) {
      return tl::unexpected(document_.error(node.place, {ErrorKind::kInvalidValue, *value},
                                            fmt::format("'{}' is not a value of {}{}", *value, symbol.name,
                                                        suggestion(*value, symbol.values))));
    }
    out.i = spec_.scope.words.id(*value);
  }
  return out;
}

}  // namespace sweep::grid
