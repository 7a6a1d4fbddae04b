// Heatmap: the best configuration of every cell over two axes, why a cell has none, and how many
// configurations each cell holds. Drawn as SVG here, and as one self-contained HTML page that computes the
// same cells again under filters.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/charts/palette.h"
#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/names.h"

namespace sweep::answers {

// How a configuration ended, as coarse as a cell can show.
enum class CellOutcome {
  kOk,
  kOom,
  kPruned,
  kFailed,
  kPending
};  // kPruned: unsupported too; kPending: no answer yet
inline constexpr std::size_t kCellOutcomes = 5;
CellOutcome cell_outcome_of(const ResultRow&);
std::string_view to_string(CellOutcome);

enum class CellState {
  kMeasured,     // at least one ok configuration with a value
  kNotMeasured,  // ok ones, none of which has this metric
  kOom,
  kPruned,
  kFailed,   // all of one kind
  kPending,  // none ok so far, and some have no answer yet
  kMixed,    // none ok, for several reasons, and none is left to run
  kEmpty,    // the grid has no such configuration
};
std::string_view to_string(CellState);

struct Cell {
  CellState state = CellState::kEmpty;
  // The best of kMeasured; one that was stopped early only if no other ended ok.
  const ResultRow* best = nullptr;
  std::optional<double> value, goal;  // the best's value that is shown, and the one that decided
  bool tied = false;                  // no worse than the best of all, as far as can be told; of the best too
  i64 count[kCellOutcomes] = {};
  i64 total() const;
};

struct HeatmapOptions {
  std::string rows = {}, cols = {};  // axis or label names; empty: the two that matter most (importance.h)
  std::string value = "tokens_per_s_gpu";  // shown
  std::string objective = {};              // decides which is best; empty: value
  std::string title = {}, question = {};
  // Axes whose values the user chose: cells may mix those that are left. Other axes of kKeptApart are fixed
  // to one value each where they vary and are neither rows nor columns.
  std::vector<std::string> chosen = {};
};

// The axes that keep results comparable: a cell holds one model, hardware and sequence length unless the user
// asks for a mix.
inline constexpr std::string_view kKeptApart[] = {"model", "hardware", "seq_len"};

// An axis that is fixed to one of its values.
struct Slice {
  Field axis;
  std::vector<Value> values;  // all of them, ascending
  std::size_t kept = 0;       // the combination with most results
};
// An axis over which cells take the best.
struct Hidden {
  Field axis;
  std::size_t values = 0;
};

struct Heatmap {
  Field rows, cols, value, objective;
  Names names;
  std::string title, question;
  bool rehearsed = false;                 // results of phantom GPUs: every form of the heatmap says so
  std::vector<Value> row_keys, col_keys;  // ascending, numbers as numbers
  std::vector<Cell> cells;                // row by row
  std::vector<Field> varying;             // every axis that differs between rows
  std::vector<std::string> apart;         // axes of kKeptApart whose values the user did not choose
  std::vector<Slice> slices;              // the fixed axes; the rest describes the rows that pass
  std::vector<Hidden> hidden;             // axes that differ within cells
  Colours colours;
  std::optional<double> low, high;  // range of the measured cells
  std::optional<std::size_t> best;  // the best cell; one that was stopped early is never the best
  std::vector<std::optional<std::size_t>> best_of_row, best_of_col;  // likewise; nullopt: nothing measured
  i64 count[kCellOutcomes] = {};
  const Cell& at(std::size_t row, std::size_t col) const { return cells[row * col_keys.size() + col]; }
};

inline constexpr std::size_t kMostCells = 10'000;
// Error: unknown names, rows and cols the same, or a grid of more than kMostCells cells. Pointers are into rows.
Expected<Heatmap> heatmap(std::span<const ResultRow>, const HeatmapOptions&);

// The axes under a cell's value, line by line: what must not be mixed and the cluster's size, parallelism,
// batch and ZeRO, the rest. Rows, columns and what does not vary are left out; of the first and the last
// line, so is what the shown configurations agree on.
using CellLines = std::vector<std::vector<Field>>;
inline constexpr std::size_t kCellLines = 4;
inline constexpr std::size_t kMostOthers = 3;  // the last line names so many; the page's box has all
CellLines cell_lines(const Heatmap&);
CellLines possible_cell_lines(const Heatmap&);  // rows, columns and what cells agree on included
inline constexpr std::string_view kNotResolved =
    "not resolved";  // text of an axis that a pruned configuration lacks
std::vector<std::string> cell_text(const ResultRow&, const CellLines&);  // lines that are not empty

// Sentences for people: what is shown; which values were fixed; what a cell is the best over.
std::string what_is_shown(const Heatmap&);
bool has_winner(const Heatmap&);          // one cell is the best of all, and no other ties with it
std::string best_words(const Heatmap&);   // how the best cells are marked; empty: nothing measured
std::string slices_text(const Heatmap&);  // "model = 1B (of 2)"; empty: none
std::string hidden_text(const Heatmap&);
std::vector<std::string> prices_shown(const Heatmap&);  // not empty if the value is in USD
std::string mix_warning(const Heatmap&);                // empty: cells compare like with like
std::string_view words_of(CellState);                   // "OOM", "not run yet", ...
// The words of a state without a value, in the order of a legend: its name in the page's script and style
// sheet, the word in a cell, and the text of a legend.
struct StateWords {
  CellState state;
  std::string_view key, word, meaning;
};
inline constexpr StateWords kStateWords[] = {
    {CellState::kOom, "oom", "OOM", "out of memory"},
    {CellState::kPruned, "pruned", "pruned", "pruned: not run, the plan says why"},
    {CellState::kFailed, "failed", "failed", "failed"},
    {CellState::kMixed, "mixed", "none succeeded", "none succeeded, for several reasons"},
    {CellState::kPending, "pending", "not run yet", "not run yet"},
    {CellState::kNotMeasured, "unmeasured", "not measured", "ran, without this metric"},
    {CellState::kEmpty, "empty", "–", "no such configuration"}};
// Columns of a row's and a column's label; longer ones lose what they have in common.
inline constexpr std::size_t kRowLabel = 44, kColLabel = 26;

std::string title_of(const Heatmap&);  // the title given, else "Best MFU by model and nodes"

std::string to_svg(const Heatmap&);
// rows: those the heatmap was made from.
std::string to_html(const Heatmap&, std::span<const ResultRow> rows);
// The same page as `sweep serve` shows it: it asks for `data.json` beside itself and draws what is new.
std::string to_live_html(const Heatmap&, std::span<const ResultRow> rows);
std::string page_data(const Heatmap&, std::span<const ResultRow> rows);  // the text of data.json
// One row per cell: keys, state, value, counts by outcome, the best trial and its layout. For CSV and JSON
// (export/).
Table cells_table(const Heatmap&);

}  // namespace sweep::answers
