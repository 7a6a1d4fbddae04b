// The words of a heatmap: the lines of a cell, and the sentences above the picture.
#include <fmt/format.h>

#include <algorithm>

#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/answers/statistics/prices.h"

namespace sweep::answers {
namespace {

constexpr std::string_view kPlace[] = {"model", "hardware", "seq_len", "nodes", "gpus_per_node"};
constexpr std::string_view kParallel[] = {"dp", "tp", "pp", "cp", "ep"};
constexpr std::string_view kBatch[] = {"grad_accum", "micro_batch_size", "zero"};
// These follow from the others on a line, or are of the machine: a cell does not need them.
constexpr std::string_view kLeftOut[] = {"global_batch_size", "memory_cap_bytes", "threads", "workload"};

bool one_of(std::span<const std::string_view> keys, const Field& field) {
  return std::ranges::find(keys, field.name()) != keys.end();
}

bool differs_between_bests(const Heatmap& map, const Field& field) {
  std::optional<Value> first;
  return std::ranges::any_of(map.cells, [&](const Cell& cell) {
    if (!cell.best) return false;
    const Value value = field.of(*cell.best);
    if (!first) first = value;
    return *first != value;
  });
}

}  // namespace

CellLines possible_cell_lines(const Heatmap& map) {
  CellLines out(kCellLines);
  for (const Field& field : map.varying) {
    if (one_of(kLeftOut, field)) continue;
    const std::size_t line = one_of(kPlace, field)      ? 0
                             : one_of(kParallel, field) ? 1
                             : one_of(kBatch, field)    ? 2
                                                        : 3;
    out[line].push_back(field);
  }
  const auto in_order = [](std::vector<Field>& fields, std::span<const std::string_view> order) {
    std::ranges::sort(fields, {},
                      [&](const Field& f) { return std::ranges::find(order, f.name()) - order.begin(); });
  };
  in_order(out[1], kParallel), in_order(out[2], kBatch);
  return out;
}

CellLines cell_lines(const Heatmap& map) {
  CellLines out = possible_cell_lines(map);
  for (auto& line : out) {
    std::erase_if(line,
                  [&](const Field& f) { return f.name() == map.rows.name() || f.name() == map.cols.name(); });
  }
  for (auto* line : {&out.front(), &out.back()})
    std::erase_if(*line, [&](const Field& f) { return !differs_between_bests(map, f); });
  if (out.back().size() > kMostOthers) out.back().erase(out.back().begin() + kMostOthers, out.back().end());
  return out;
}

std::vector<std::string> cell_text(const ResultRow& row, const CellLines& lines) {
  std::vector<std::string> out;
  for (const auto& fields : lines) {
    std::string text = setting_text(row, fields);
    for (const std::string_view plain : {"model=", "hardware="}) {  // their values speak for themselves
      if (const auto at = text.find(plain); at != std::string::npos) text.erase(at, plain.size());
    }
    if (!text.empty()) out.push_back(std::move(text));
  }
  if (row.metrics.steps_saved) {
    if (out.empty()) out.emplace_back();
    out.back() += out.back().empty() ? "stopped early" : ", stopped early";
  }
  return out;
}

std::string what_is_shown(const Heatmap& map) {
  const Scale scale = scale_for(map.value.unit(), std::max(map.high.value_or(0), -map.low.value_or(0)));
  std::string out = map.names.with_unit(map.value, scale) + ", best configuration in each cell";
  if (map.objective.name() != map.value.name()) out += " by " + map.names.of(map.objective);
  return out + ".";
}

bool has_winner(const Heatmap& map) {
  return map.best && std::ranges::count(map.cells, true, &Cell::tied) == 1;
}

std::string best_words(const Heatmap& map) {
  if (!map.best) return "";
  if (has_winner(map)) return "★ the best of all.";
  return fmt::format(
      "≈ the {} best: they cannot be distinguished (equal values, or 95 % intervals that overlap).",
      std::ranges::count(map.cells, true, &Cell::tied));
}

std::string slices_text(const Heatmap& map) {
  std::string out;
  for (const Slice& slice : map.slices) {
    out += fmt::format("{}{} = {} (of {})", out.empty() ? "" : ", ", map.names.of(slice.axis),
                       show(slice.values[slice.kept]), slice.values.size());
  }
  return out;
}

std::string hidden_text(const Heatmap& map) {
  std::string out;
  for (const Hidden& one : map.hidden) {
    out += fmt::format("{}{} ({} values)", out.empty() ? "" : ", ", map.names.of(one.axis), one.values);
  }
  return out.empty() ? "" : fmt::format("Each cell is the best over {}.", out);
}

std::string mix_warning(const Heatmap& map) {
  std::string out;
  for (const Hidden& one : map.hidden) {
    if (one_of(kKeptApart, one.axis))
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", one.values,
                         one.axis.name() == "hardware" ? "kinds of hardware" : map.names.of(one.axis) + "s");
  }
  return out.empty() ? "" : fmt::format("Cells mix {}: their values are not of equal work.", out);
}

std::vector<std::string> prices_shown(const Heatmap& map) {
  if (map.value.unit() != "USD" && map.objective.unit() != "USD") return {};
  std::vector<const ResultRow*> rows;
  for (const Cell& cell : map.cells) {
    if (cell.best) rows.push_back(cell.best);
  }
  return price_sentences(rows, today());
}

std::string_view words_of(CellState state) {
  const auto found = std::ranges::find(kStateWords, state, &StateWords::state);
  return found == std::end(kStateWords) ? "–" : found->word;
}

std::string title_of(const Heatmap& map) {
  if (!map.title.empty()) return map.title;
  return fmt::format("Best {} by {} and {}", map.names.of(map.value), map.names.of(map.rows),
                     map.names.of(map.cols));
}

}  // namespace sweep::answers
