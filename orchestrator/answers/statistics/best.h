// The best configuration of each group of results by one metric, and those it ties with.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/statistics/statistics.h"
#include "schema/attempt.h"
#include "schema/provenance.h"
#include "schema/sweep_options.h"

namespace sweep::store {
class Store;
struct SweepRow;
}  // namespace sweep::store

namespace sweep::answers {

// Device memory of a rank of this row: memory_cap_bytes, else what the hardware catalogue says; nullopt: not
// known.
std::optional<i64> device_memory(const ResultRow&);

// How a configuration is written as a grid file.
struct GridForm {
  std::vector<std::string> swept = {};  // axes that are written though they are at their default
  std::optional<MeasurePlan> measure = {};
};
// How the sweep measured, of the options it keeps; nullopt: it does not say, or it is a rehearsal, whose two steps are no
// plan for the hardware.
std::optional<MeasurePlan> measure_of(const std::string& sweep, const SweepOptions&);

// The fields to group by, so that results are comparable: the model, and hardware and sequence length if they
// are among `differ`.
std::vector<std::string> comparable_groups(std::span<const Field> differ);

// The sweep that the results are of.
struct BestSource {
  std::string sweep = {};
  i64 chosen_of = 1;  // above 1: nobody named it, and it is the latest of so many
  std::string confirms =
      {};               // the sweep whose best it measures again; each row is of the last allocation alone
  i64 allocations = 0;  // allocations with results, of a sweep that confirms
};

struct BestOptions {
  std::vector<std::string> group_by = {"model"};
  std::string metric = "tokens_per_s_gpu";
  std::optional<double> headroom = std::nullopt;  // a fraction of device memory that must stay free: 0.05
  std::size_t runners_up = 3;                     // next best kept per group, beside the ties
  // Finds where a winner was measured; empty: nothing is said about it.
  std::function<const Provenance*(const ResultRow&)> provenance_of = {};
  GridForm form = {};
  bool rehearsed = false;  // the results are of phantom GPUs
  BestSource source = {};
};

struct BestOfGroup {
  std::vector<Value> key;           // one per group_by name
  std::optional<ResultRow> winner;  // nullopt: nothing in the group could be ranked; `why_none` says why
  double value = 0;
  std::optional<Interval> interval;  // 95 %
  // Ids of trials, best first.
  std::vector<std::string> ties;        // 95 % intervals overlap the winner's, or the values are equal
  std::vector<std::string> runners_up;  // ties not among them
  i64 without_interval = 0;      // ranked, but neither tied nor slower: they, or the winner, have no interval
  std::optional<double> median;  // median of the metric over the ranked rows
  i64 ranked = 0, not_run = 0, not_ok = 0, not_measured = 0;
  i64 pruned = 0;            // the plan never ran them
  i64 stopped_early = 0;     // left out: they ended when they were clearly slower than the best so far
  i64 too_full = 0;          // left out: less headroom than asked
  i64 unknown_headroom = 0;  // left out: peak or device memory not known
  std::string why_none;
};

// How many tie with the winner. NULL: there is no winner, or none is seen to tie and of some it cannot be told.
Value ties_of(const BestOfGroup&);
// Every configuration of the group is pruned: there never was anything to rank.
bool is_all_pruned(const BestOfGroup&);
// Why a winner has no interval: the metric does not follow from the step time, the times are modelled, the
// result was imported without its steps, or too few steps were timed.
enum class NoInterval { kMetric, kModelled, kImported, kFewSteps };
NoInterval why_no_interval(const BestOfGroup&, const BestOptions&);
std::string_view to_string(NoInterval);  // the end of a sentence

// Groups in natural order of their keys. Error: an unknown name, or a headroom outside [0, 1).
Expected<std::vector<BestOfGroup>> best(std::span<const ResultRow> rows, const BestOptions&);

// The same from columns of the results, so that a hundred thousand of them take milliseconds; only the
// winners are read in full, by their entries.
using ReadRows = std::function<Expected<std::vector<ResultRow>>(std::span<const i64> entries)>;
Expected<std::vector<BestOfGroup>> best(const ResultColumns&, const BestOptions&, const ReadRows&);
// The columns that it needs; with the axes also those that usual_metric(), varying() and the table below need.
ColumnSelection best_columns(const BestOptions&);
ColumnSelection best_columns_with_axes(const BestOptions&);

// The answer from a database; a metric and groups that are not asked for are chosen from the sweep's results.
struct BestAnswer {
  BestOptions options;
  std::vector<Field> differ{};  // varying()
  std::vector<BestOfGroup> groups{};
};
// `named`: somebody named the sweep; else it is the latest.
Expected<BestAnswer> read_best(store::Store&, const store::SweepRow&, BestOptions asked, bool named);

// "5%" or "0.05" -> 0.05; anything outside [0, 1) or unreadable is refused with a sentence that names `what`.
Expected<double> parse_share(std::string_view, std::string_view what);

// The views: a table, text, a grid file, JSON.
//
// The groups as one table: keys, what differs between the results (varying()), the metric, ties, memory.
Table best_table(std::span<const Field> differ, std::span<const BestOfGroup>, const BestOptions&);
// People's text: the table, then ties and what was left out, then the configuration to paste.
std::string best_text(std::span<const Field> differ, std::span<const BestOfGroup>, const BestOptions&,
                      std::size_t width);

// A grid file with exactly this configuration: `name`, `model` (catalogue name, else its dimensions) and
// `base`.
std::string as_grid_yaml(const ResultRow&, const GridForm& = {});
// All winners as one grid file: alone a base, several its `include`, each under comments that say what it
// won.
std::string best_yaml(std::span<const BestOfGroup>, const BestOptions&);
// The answer as one JSON array.
std::string best_json(std::span<const BestOfGroup>, const BestOptions&);

// Parts of these views: an axis as a line of YAML ("": it has no value), the name of a group, and the comments above a
// winner's configuration.
std::string axis_line(const Column&, const ResultRow&);
std::string group_name(const BestOfGroup&, const BestOptions&);
// How far the first place can be trusted, a sentence without an end each: who ties with it, and what could not be told.
std::vector<std::string> first_place_notes(const BestOfGroup&, const BestOptions&);
// Each line a comment; where several configurations follow in one file, each has its own.
std::string winner_notes(const BestOfGroup&, const BestOptions&);

}  // namespace sweep::answers
