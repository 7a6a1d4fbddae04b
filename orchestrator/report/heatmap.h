// Heatmap: the best configuration of every cell over two axes, what became of the cells without one, and how
// many configurations stand behind each. Drawn as SVG here, and as one self-contained HTML page that computes
// the same cells again under filters.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/report/fields.h"
#include "orchestrator/report/format.h"

namespace sweep::report {

// What became of a configuration, as coarse as a cell can show.
enum class Fate {
  kOk,
  kOom,
  kPruned,
  kFailed,
  kPending
};  // kPruned: unsupported too; kPending: no answer yet
inline constexpr std::size_t kFates = 5;
Fate fate_of(const ResultRow&);
std::string_view to_string(Fate);

enum class CellState {
  kMeasured,     // at least one ok configuration with a value
  kNotMeasured,  // ok ones, none of which has this metric
  kOom,
  kPruned,
  kFailed,
  kPending,  // all of one fate
  kMixed,    // no ok one, several fates
  kEmpty,    // the grid has no such configuration
};
std::string_view to_string(CellState);

struct Cell {
  CellState state = CellState::kEmpty;
  const ResultRow* best = nullptr;  // of kMeasured
  std::optional<double> value;      // of the best
  i64 count[kFates] = {};
  i64 total() const;
};

struct HeatmapOptions {
  std::string rows = {}, cols = {};        // axis or label names; empty: the two that vary with most values
  std::string value = "tokens_per_s_gpu";  // shown
  std::string objective = {};              // decides which is best; empty: value
  std::string title = {}, question = {};
};

struct Heatmap {
  Field rows, cols, value, objective;
  std::string title, question;
  std::vector<Value> row_keys, col_keys;  // ascending, numbers as numbers
  std::vector<Cell> cells;                // row by row
  std::vector<Field> varying;             // every axis that differs between rows
  std::optional<double> low, high;        // of the measured cells
  i64 count[kFates] = {};                 // of all rows
  const Cell& at(std::size_t row, std::size_t col) const { return cells[row * col_keys.size() + col]; }
};

// Error: unknown names, rows and cols the same, or a grid of more than 10,000 cells. Pointers are into rows.
Expected<Heatmap> heatmap(std::span<const ResultRow>, const HeatmapOptions&);

// The lines under a cell's value: parallelism, then batch and ZeRO; only axes that vary and are not rows or
// cols.
struct LayoutAxes {
  std::vector<Field> first, second;
};
LayoutAxes layout_axes(const Heatmap&);

std::string title_of(const Heatmap&);  // the title given, else "Best mfu by model and nodes"

std::string to_svg(const Heatmap&);
// rows: those the heatmap was made from.
std::string to_html(const Heatmap&, std::span<const ResultRow> rows);
// The same page as `sweep serve` shows it: it asks for `data.json` beside itself and draws what is new.
std::string to_live_html(const Heatmap&, std::span<const ResultRow> rows);
std::string page_data(const Heatmap&, std::span<const ResultRow> rows);  // that data.json
// One row per cell: keys, state, value, counts by fate, the best trial and its layout. For CSV and JSON
// (export/).
Table cells_table(const Heatmap&);

}  // namespace sweep::report
