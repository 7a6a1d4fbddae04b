#include "orchestrator/report/heatmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace sweep::report {
namespace {

constexpr std::size_t kMaxCells = 10'000;

// Axes that mostly follow from others: no one's first choice for a picture.
bool follows(const Field& field) {
  static const std::set<std::string_view> names = {"gpus_per_node", "grad_accum", "global_batch_size"};
  return names.contains(field.name());
}

// Without a wish: the two axes with most values, so that a cell hides as few configurations as possible.
Expected<std::vector<Field>> chosen_axes(std::span<const ResultRow> rows, const HeatmapOptions& options,
                                         const std::vector<Field>& varying) {
  std::vector<Field> out;
  for (const std::string& name : {options.rows, options.cols}) {
    if (name.empty()) continue;
    auto field = Field::resolve(name, rows);
    if (!field) return tl::unexpected(field.error());
    out.push_back(*field);
  }
  if (out.size() == 2 && out[0].name() == out[1].name()) {
    return fail(fmt::format("--rows and --cols are both '{}'; give two different axes.", out[0].name()));
  }
  std::vector<std::pair<std::size_t, const Field*>> spread;
  for (const Field& field : varying) spread.emplace_back(index_of(rows, field).keys.size(), &field);
  std::stable_sort(spread.begin(), spread.end(), [](const auto& a, const auto& b) {
    return follows(*a.second) != follows(*b.second) ? follows(*b.second) : a.first > b.first;
  });
  const auto taken = [&](const Field& f) {
    return std::any_of(out.begin(), out.end(), [&](const Field& o) { return o.name() == f.name(); });
  };
  for (const auto& [count, field] : spread) {
    if (out.size() < 2 && !taken(*field)) out.push_back(*field);
  }
  for (const char* fallback : {"model", "nodes"}) {
    if (out.size() < 2 && !taken(Field(*find_column(fallback)))) out.emplace_back(*find_column(fallback));
  }
  if (options.rows.empty() && !options.cols.empty()) std::swap(out[0], out[1]);
  return out;
}

bool better(double a, const ResultRow& x, double b, const ResultRow& y, bool lower) {
  if (a != b) return lower ? a < b : a > b;
  return x.trial_id < y.trial_id;
}

CellState state_of(const Cell& cell) {
  if (cell.best) return CellState::kMeasured;
  if (cell.count[std::size_t(Fate::kOk)] > 0) return CellState::kNotMeasured;
  const i64 total = cell.total();
  if (total == 0) return CellState::kEmpty;
  static constexpr std::pair<Fate, CellState> kPure[] = {{Fate::kOom, CellState::kOom},
                                                         {Fate::kPruned, CellState::kPruned},
                                                         {Fate::kFailed, CellState::kFailed},
                                                         {Fate::kPending, CellState::kPending}};
  for (const auto& [fate, state] : kPure) {
    if (cell.count[std::size_t(fate)] == total) return state;
  }
  return CellState::kMixed;
}

void fill(Heatmap& map, std::span<const ResultRow> rows, const std::vector<std::size_t>& row_at,
          const std::vector<std::size_t>& col_at) {
  const bool lower = lower_is_better(map.objective.name());
  std::vector<double> best(map.cells.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t at = row_at[i] * map.col_keys.size() + col_at[i];
    Cell& cell = map.cells[at];
    const auto fate = std::size_t(fate_of(rows[i]));
    ++cell.count[fate];
    ++map.count[fate];
    if (fate != std::size_t(Fate::kOk)) continue;
    const auto value = number(map.value.of(rows[i])), goal = number(map.objective.of(rows[i]));
    if (!value || !goal) continue;
    if (cell.best && !better(*goal, rows[i], best[at], *cell.best, lower)) continue;
    cell.best = &rows[i];
    cell.value = value;
    best[at] = *goal;
  }
  for (Cell& cell : map.cells) {
    cell.state = state_of(cell);
    if (!cell.value) continue;
    map.low = std::min(map.low.value_or(*cell.value), *cell.value);
    map.high = std::max(map.high.value_or(*cell.value), *cell.value);
  }
}

}  // namespace

Fate fate_of(const ResultRow& row) {
  if (row.state != State::kFinished) return Fate::kPending;
  switch (row.outcome) {
    case Outcome::kOk:
      return Fate::kOk;
    case Outcome::kOom:
      return Fate::kOom;
    case Outcome::kPruned:
    case Outcome::kUnsupported:
      return Fate::kPruned;
    default:
      return Fate::kFailed;
  }
}

std::string_view to_string(Fate fate) {
  static constexpr std::string_view kNames[kFates] = {"ok", "oom", "pruned", "failed", "pending"};
  return kNames[std::size_t(fate)];
}

std::string_view to_string(CellState state) {
  static constexpr std::string_view kNames[] = {"measured", "not measured", "oom",   "pruned",
                                                "failed",   "pending",      "mixed", "empty"};
  return kNames[std::size_t(state)];
}

i64 Cell::total() const {
  return std::accumulate(std::begin(count), std::end(count), i64{0});
}

Expected<Heatmap> heatmap(std::span<const ResultRow> rows, const HeatmapOptions& options) {
  const auto value = resolve_metric(options.value);
  if (!value) return tl::unexpected(value.error());
  const auto objective = options.objective.empty() ? value : resolve_metric(options.objective);
  if (!objective) return tl::unexpected(objective.error());
  std::vector<Field> differ = varying(rows);
  const auto axes = chosen_axes(rows, options, differ);
  if (!axes) return tl::unexpected(axes.error());
  Heatmap map{.rows = axes->at(0),
              .cols = axes->at(1),
              .value = *value,
              .objective = *objective,
              .title = options.title,
              .question = options.question,
              .row_keys = {},
              .col_keys = {},
              .cells = {},
              .varying = std::move(differ),
              .low = {},
              .high = {}};
  Indexed row_at = index_of(rows, map.rows), col_at = index_of(rows, map.cols);
  map.row_keys = std::move(row_at.keys);
  map.col_keys = std::move(col_at.keys);
  if (map.row_keys.size() * map.col_keys.size() > kMaxCells) {
    return fail(
        fmt::format("{} x {} values of '{}' and '{}' are more than {} cells; choose axes with fewer values.",
                    map.row_keys.size(), map.col_keys.size(), map.rows.name(), map.cols.name(), kMaxCells));
  }
  map.cells.resize(map.row_keys.size() * map.col_keys.size());
  fill(map, rows, row_at.of, col_at.of);
  return map;
}

LayoutAxes layout_axes(const Heatmap& map) {
  static constexpr std::string_view kFirst[] = {"dp", "tp", "pp", "cp", "ep"};
  static constexpr std::string_view kSecond[] = {"grad_accum", "micro_batch_size", "zero"};
  LayoutAxes out;
  for (const Field& field : map.varying) {
    if (field.name() == map.rows.name() || field.name() == map.cols.name()) continue;
    if (std::find(std::begin(kFirst), std::end(kFirst), field.name()) != std::end(kFirst))
      out.first.push_back(field);
    if (std::find(std::begin(kSecond), std::end(kSecond), field.name()) != std::end(kSecond))
      out.second.push_back(field);
  }
  return out;
}

std::string title_of(const Heatmap& map) {
  if (!map.title.empty()) return map.title;
  return fmt::format("Best {} by {} and {}", map.value.name(), map.rows.name(), map.cols.name());
}

Table cells_table(const Heatmap& map) {
  Table table;
  const LayoutAxes axes = layout_axes(map);
  table.columns = {map.rows.name(), map.cols.name(), "state", map.value.name()};
  for (std::size_t f = 0; f < kFates; ++f) table.columns.emplace_back(to_string(Fate(f)));
  for (const char* name : {"trial", "layout"}) table.columns.emplace_back(name);
  for (std::size_t r = 0; r < map.row_keys.size(); ++r) {
    for (std::size_t c = 0; c < map.col_keys.size(); ++c) {
      const Cell& cell = map.at(r, c);
      std::vector<Value> line = {map.row_keys[r], map.col_keys[c], Value{std::string(to_string(cell.state))},
                                 cell.value ? Value{*cell.value} : Value{}};
      for (const i64 count : cell.count) line.emplace_back(count);
      line.push_back(cell.best ? Value{cell.best->trial_id} : Value{});
      std::string text = cell.best ? layout(*cell.best, axes.first) : "";
      const std::string batch = cell.best ? layout(*cell.best, axes.second) : "";
      text += (text.empty() || batch.empty() ? "" : " ") + batch;
      line.push_back(text.empty() ? Value{} : Value{text});
      table.rows.push_back(std::move(line));
    }
  }
  return table;
}

}  // namespace sweep::report
