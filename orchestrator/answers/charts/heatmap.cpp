#include "orchestrator/answers/charts/heatmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "base/fail.h"
#include "orchestrator/answers/rehearsed.h"
#include "orchestrator/answers/statistics/importance.h"
#include "orchestrator/answers/statistics/statistics.h"
#include "schema/ranking.h"
#include "schema/rehearsal.h"

namespace sweep::answers {
namespace {

// Each value of `first` comes with one value of `second`: together they would draw a diagonal.
bool follows_from(std::span<const ResultRow> rows, const Field& second, const Field& first) {
  const Indexed from = index_of(rows, first), to = index_of(rows, second);
  std::vector<std::optional<std::size_t>> seen(from.keys.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto& known = seen[from.of[i]];
    if (!known) known = to.of[i];
    if (*known != to.of[i]) return false;
  }
  return true;
}

// The axes in the order in which they are chosen: those that matter most (importance.h), then those with most values,
// so that a cell hides as few configurations as possible.
std::vector<const Field*> by_importance(std::span<const ResultRow> rows, const Field& metric,
                                        const std::vector<Field>& varying) {
  constexpr double kLeast = 0.01;  // less is noise
  const auto found = importance(rows, metric, varying, {});
  struct Rank {
    const Field* field;
    bool follows;
    double share;
    std::size_t values;
  };
  std::vector<Rank> ranks;
  for (const Field& field : varying) {
    const auto it =
        std::ranges::find_if(found, [&](const auto& one) { return one.axis.name() == field.name(); });
    const double share = it != found.end() && it->share >= kLeast ? it->share : 0;
    ranks.push_back({&field, follows_from_others(field), share, index_of(rows, field).keys.size()});
  }
  std::ranges::stable_sort(ranks, {}, [](const Rank& rank) {
    return std::tuple(rank.follows, -rank.share, -std::ptrdiff_t(rank.values));
  });
  std::vector<const Field*> out;
  for (const Rank& rank : ranks) out.push_back(rank.field);
  return out;
}

// The first of the axes that neither follows from `one` nor tells it: the two span a plane. Null: there is none.
const Field* beside(std::span<const ResultRow> rows, const Field& one,
                    const std::vector<const Field*>& order) {
  const auto it = std::ranges::find_if(order, [&](const Field* field) {
    return !follows_from(rows, *field, one) && !follows_from(rows, one, *field);
  });
  return it == order.end() ? nullptr : *it;
}

// Unless axes are chosen: the first of by_importance and the next that is independent of it, else the next; of these, the
// one with more values goes down. Where one axis tells all the others, its values make one row.
Expected<std::vector<Field>> chosen_axes(std::span<const ResultRow> rows, const HeatmapOptions& options,
                                         const Field& metric, const std::vector<Field>& varying) {
  std::vector<Field> out;
  for (const std::string& name : {options.rows, options.cols}) {
    if (name.empty()) continue;
    SWEEP_GET(auto field, Field::resolve(name, rows));
    out.push_back(field);
  }
  if (out.size() == 2 && out[0].name() == out[1].name()) {
    return fail("--rows and --cols are both '{}'; give two different axes.", out[0].name());
  }
  const auto taken = [&](const Field& f) {
    return std::any_of(out.begin(), out.end(), [&](const Field& o) { return o.name() == f.name(); });
  };
  const bool free = out.empty();
  const auto order = out.size() < 2 ? by_importance(rows, metric, varying) : std::vector<const Field*>();
  if (out.empty() && !order.empty()) out.push_back(*order.front());
  if (out.size() == 1)
    if (const Field* second = beside(rows, out[0], order)) out.push_back(*second);
  for (const Field* field : order) {
    if (out.size() < 2 && !taken(*field) &&
        (!follows_from_others(*field) || !follows_from(rows, *field, out[0])))
      out.push_back(*field);
  }
  if (free && out.size() == 2 && index_of(rows, out[0]).keys.size() < index_of(rows, out[1]).keys.size())
    std::swap(out[0], out[1]);
  const bool one_row = out.size() == 1 && options.rows.empty() && options.cols.empty();
  for (const char* fallback : {"model", "nodes"}) {
    if (out.size() < 2 && !taken(Field(*find_column(fallback)))) out.emplace_back(*find_column(fallback));
  }
  if (one_row || (options.rows.empty() && !options.cols.empty())) std::swap(out[0], out[1]);
  return out;
}

CellState state_of(const Cell& cell) {
  if (cell.best) return CellState::kMeasured;
  if (cell.count[std::size_t(CellOutcome::kOk)] > 0) return CellState::kNotMeasured;
  const i64 total = cell.total();
  if (total == 0) return CellState::kEmpty;
  if (cell.count[std::size_t(CellOutcome::kPending)] > 0) return CellState::kPending;
  static constexpr std::pair<CellOutcome, CellState> kPure[] = {{CellOutcome::kOom, CellState::kOom},
                                                                {CellOutcome::kPruned, CellState::kPruned},
                                                                {CellOutcome::kFailed, CellState::kFailed}};
  for (const auto& [outcome, state] : kPure) {
    if (cell.count[std::size_t(outcome)] == total) return state;
  }
  return CellState::kMixed;
}

// Whether rows of one cell differ in it.
bool differs_within(const Indexed& of, const std::vector<std::size_t>& cell_of) {
  std::unordered_map<std::size_t, std::size_t> first;
  for (std::size_t i = 0; i < cell_of.size(); ++i) {
    if (first.try_emplace(cell_of[i], of.of[i]).first->second != of.of[i]) return true;
  }
  return false;
}

std::vector<std::size_t> places(const Indexed& rows, const Indexed& cols) {
  std::vector<std::size_t> out = rows.of;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i] * cols.keys.size() + cols.of[i];
  return out;
}

// The axes that cells would mix, each fixed to its value in the combination with most results.
std::vector<Slice> slices_of(std::span<const ResultRow> rows, const Heatmap& map) {
  std::vector<Slice> out;
  std::vector<Indexed> indices;
  const auto cell_of = places(index_of(rows, map.rows), index_of(rows, map.cols));
  for (const std::string& key : map.apart) {
    const Field field(*find_column(key));
    Indexed index = index_of(rows, field);
    if (index.keys.size() < 2 || !differs_within(index, cell_of)) continue;
    out.push_back({field, index.keys, 0});
    indices.push_back(std::move(index));
  }
  // The first of equals wins: combinations are ascending.
  std::map<std::vector<std::size_t>, std::pair<i64, i64>> results;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::size_t> at;
    for (const Indexed& index : indices) at.push_back(index.of[i]);
    const bool measured = cell_outcome_of(rows[i]) == CellOutcome::kOk && number(map.value.of(rows[i]));
    auto& [ok, all] = results[std::move(at)];
    ok += measured, ++all;
  }
  const auto most = std::ranges::max_element(results, {}, [](const auto& one) { return one.second; });
  for (std::size_t s = 0; s < out.size(); ++s) out[s].kept = most->first[s];
  return out;
}

std::vector<ResultRow const*> passing(std::span<const ResultRow> rows, const std::vector<Slice>& slices) {
  std::vector<ResultRow const*> out;
  for (const ResultRow& row : rows) {
    if (std::ranges::all_of(slices, [&](const Slice& s) { return s.axis.of(row) == s.values[s.kept]; }))
      out.push_back(&row);
  }
  return out;
}

// The axes that differ between rows of one cell, each with its number of values.
std::vector<Hidden> hidden_of(const Heatmap& map, const std::vector<const ResultRow*>& rows,
                              const std::vector<std::size_t>& cell_of) {
  std::vector<Hidden> out;
  for (const Field& field : map.varying) {
    if (field.name() == map.rows.name() || field.name() == map.cols.name()) continue;
    std::vector<std::optional<Value>> first(map.cells.size());
    std::set<Value> values;
    bool differs = false;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Value value = field.of(*rows[i]);
      if (value.index() == 0) continue;
      auto& seen = first[cell_of[i]];
      if (!seen) seen = value;
      differs |= *seen != value;
      values.insert(std::move(value));
    }
    if (differs) out.push_back({field, values.size()});
  }
  return out;
}

void fill(Heatmap& map, const std::vector<const ResultRow*>& rows, const std::vector<std::size_t>& cell_of) {
  const Better better = find_column(map.objective.name())->better;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ResultRow& row = *rows[i];
    Cell& cell = map.cells[cell_of[i]];
    const auto outcome = std::size_t(cell_outcome_of(row));
    ++cell.count[outcome];
    ++map.count[outcome];
    if (outcome != std::size_t(CellOutcome::kOk)) continue;
    const auto value = number(map.value.of(row)), goal = number(map.objective.of(row));
    if (!value || !goal) continue;
    if (cell.best && !goes_before(better, row, *goal, *cell.best, *cell.goal)) continue;
    cell.best = &row, cell.value = value, cell.goal = goal;
  }
}

// Extremes, states, colours, and the best cell of all, of each row and of each column.
void finish(Heatmap& map) {
  const Better better = find_column(map.objective.name())->better;
  const auto take = [&](std::optional<std::size_t>& best, std::size_t at) {
    const Cell &cell = map.cells[at], *before = best ? &map.cells[*best] : nullptr;
    if (!before ||
        ranks_before(better, *cell.goal, cell.best->trial_id, *before->goal, before->best->trial_id))
      best = at;
  };
  map.best_of_row.resize(map.row_keys.size()), map.best_of_col.resize(map.col_keys.size());
  std::vector<double> values;
  for (std::size_t at = 0; at < map.cells.size(); ++at) {
    Cell& cell = map.cells[at];
    cell.state = state_of(cell);
    if (!cell.value) continue;
    values.push_back(*cell.value);
    map.low = std::min(map.low.value_or(*cell.value), *cell.value);
    map.high = std::max(map.high.value_or(*cell.value), *cell.value);
    if (!may_be_best(*cell.best)) continue;
    for (auto* best :
         {&map.best, &map.best_of_row[at / map.col_keys.size()], &map.best_of_col[at % map.col_keys.size()]})
      take(*best, at);
  }
  map.colours = colours_for(std::move(values), lower_is_better(map.value.name()));
  if (!map.best) return;
  const auto interval = [&](const Cell& cell) { return interval_of(*cell.best, map.objective.name()); };
  const Cell& best = map.cells[*map.best];
  for (Cell& cell : map.cells)
    cell.tied = cell.best && may_be_best(*cell.best) &&
                are_tied(*best.goal, interval(best), *cell.goal, interval(cell));
}

}  // namespace

CellOutcome cell_outcome_of(const ResultRow& row) {
  if (row.state != State::kFinished) return CellOutcome::kPending;
  switch (row.outcome) {
    case Outcome::kOk:
      return CellOutcome::kOk;
    case Outcome::kOom:
      return CellOutcome::kOom;
    case Outcome::kPruned:
    case Outcome::kUnsupported:
      return CellOutcome::kPruned;
    default:
      return CellOutcome::kFailed;
  }
}

std::string_view to_string(CellOutcome outcome) {
  static constexpr std::string_view kNames[kCellOutcomes] = {"ok", "oom", "pruned", "failed", "pending"};
  return kNames[std::size_t(outcome)];
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
  SWEEP_GET(const auto value, resolve_metric(options.value));
  SWEEP_GET(const auto objective,
            resolve_ranked(options.objective.empty() ? options.value : options.objective));
  std::vector<Field> differ = varying(rows);
  SWEEP_GET(const auto axes, chosen_axes(rows, options, objective, differ));
  Heatmap map{.rows = axes.at(0),
              .cols = axes.at(1),
              .value = value,
              .objective = objective,
              .names = Names(rows),
              .title = options.title,
              .question = options.question,
              .rehearsed = std::ranges::any_of(rows, [](const auto& row) { return is_rehearsal(row.sweep); }),
              .row_keys = {},
              .col_keys = {},
              .cells = {},
              .varying = std::move(differ),
              .apart = {},
              .slices = {},
              .hidden = {},
              .colours = {},
              .low = {},
              .high = {},
              .best = {},
              .best_of_row = {},
              .best_of_col = {}};
  for (const std::string_view key : kKeptApart) {
    if (std::ranges::find(options.chosen, key) == options.chosen.end()) map.apart.emplace_back(key);
  }
  if (!rows.empty()) map.slices = slices_of(rows, map);
  const auto shown = passing(rows, map.slices);
  Indexed row_at = index_of(shown, map.rows), col_at = index_of(shown, map.cols);
  const std::vector<std::size_t> cell_of = places(row_at, col_at);
  map.row_keys = std::move(row_at.keys);
  map.col_keys = std::move(col_at.keys);
  if (map.row_keys.size() * map.col_keys.size() > kMostCells) {
    return fail("{} x {} values of '{}' and '{}' are more than {} cells; choose axes with fewer values.",
                map.row_keys.size(), map.col_keys.size(), map.rows.name(), map.cols.name(), kMostCells);
  }
  map.cells.resize(map.row_keys.size() * map.col_keys.size());
  fill(map, shown, cell_of);
  finish(map);
  map.hidden = hidden_of(map, shown, cell_of);
  return map;
}

Table cells_table(const Heatmap& map) {
  Table table;
  const CellLines lines = cell_lines(map);
  table.columns = {map.rows.name(), map.cols.name(), "state", map.value.name()};
  for (std::size_t f = 0; f < kCellOutcomes; ++f) table.columns.emplace_back(to_string(CellOutcome(f)));
  for (const char* name : {"trial", "layout"}) table.columns.emplace_back(name);
  for (std::size_t r = 0; r < map.row_keys.size(); ++r) {
    for (std::size_t c = 0; c < map.col_keys.size(); ++c) {
      const Cell& cell = map.at(r, c);
      std::vector<Value> line = {map.row_keys[r], map.col_keys[c], Value{std::string(to_string(cell.state))},
                                 cell.value ? Value{*cell.value} : Value{}};
      for (const i64 count : cell.count) line.emplace_back(count);
      line.push_back(cell.best ? Value{cell.best->trial_id} : Value{});
      std::string text;
      if (cell.best) text = fmt::format("{}", fmt::join(cell_text(*cell.best, lines), " "));
      line.push_back(text.empty() ? Value{} : Value{text});
      table.rows.push_back(std::move(line));
    }
  }
  if (map.rehearsed) mark_rehearsed(table);
  return table;
}

}  // namespace sweep::answers
