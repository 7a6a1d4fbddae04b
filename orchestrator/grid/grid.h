// Grid: a grid file as read, which stands for many trials. Reading gives a Grid or an error with
// file:line:column; expanding gives its trials.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "orchestrator/grid/recipes.h"
#include "schema/attempt.h"
#include "schema/launch_settings.h"
#include "schema/plan_entry.h"
#include "schema/strategy.h"

namespace sweep::grid {

struct Limits {
  std::optional<double> gpu_hours, usd;
  std::optional<double> trial_seconds;  // nullopt: auto
  std::optional<double> hang_seconds;   // nullopt: auto
  std::optional<double> start_seconds;  // before the first step is done; nullopt: hang_seconds
  i64 retries_crash = 1;                // further tries after a crash
  i64 retries_infra = 3;                // further tries after node_lost
  double memory_margin = 0.1;  // predicted memory above the limit by more than this share does not run
};

class GridSpec;  // private to the room: axes, expressions with their places in the file

struct Grid {
  std::string name, question;
  std::filesystem::path path;  // path for messages: "<stdin>" or "<pipe>" for a stream
  bool from_stream = false;    // it cannot be read again: what goes on later needs `text`
  std::string text;            // the file as read
  MeasurePlan measure;
  Limits limits;
  std::optional<Strategy> strategy;  // nullopt: the file states none
  bool auto_micro_batch = false;     // `micro_batch_size: auto`
  std::string suggested;             // the section of this name: "tp: 2, zero: 3"; "": none
  LaunchSettings launch;             // checked
  std::string recipe;                // the built-in one that the workload names; "": none
  std::string working_folder;        // folder of its command; "": the files' own, or no command
  std::shared_ptr<const GridSpec> spec;
};

// Whether the grid sets this axis (by base, grid, zip or derive). REQUIRES: a name of an axis.
bool sets_axis(const Grid&, std::string_view axis);

// Whether the axis has its product's default in every point: nothing sets it, and nothing derives it.
bool leaves_unset(const Grid&, std::string_view axis);
// The text of the grid with these values ("tp: 2, zero: 3") as its section `suggested`. Lines keep their numbers.
// REQUIRES: it has no such section.
Expected<std::string> with_suggested(const Grid&, std::string_view values);

struct ReadOptions {
  std::uint64_t max_points = 100'000'000;  // before `where`
  BuiltInRecipes recipes = {};             // recipes that a workload may name
};

// A file, or a stream: "-", /dev/stdin, a pipe.
Expected<Grid> read_file(const std::filesystem::path&, const ReadOptions& = {});
Expected<Grid> read_text(std::string_view yaml, const std::filesystem::path& shown_as,
                         const ReadOptions& = {});

// Every distinct trial the grid names, in grid order: admitted ones, and pruned ones (rule where | exclude |
// rank_algebra | divisibility) with their reason. Points that `where` or `exclude` drops are counted, and
// listed up to `list_dropped`; a trial that was listed so comes once more if another point is that trial too, and
// then takes the place of the first. Calls sink for each; stops early when it returns false.
struct ExpandCounts {
  std::uint64_t points = 0, admitted = 0, dropped_where = 0, dropped_exclude = 0, pruned = 0, duplicates = 0;
};
Expected<ExpandCounts> expand(const Grid&, const std::function<bool(PlanEntry&&)>& sink,
                              std::uint64_t list_dropped = 1000);

}  // namespace sweep::grid
