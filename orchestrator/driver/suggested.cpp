#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/fail.h"
#include "base/text.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/statistics/best.h"
#include "orchestrator/answers/tables/suggest.h"
#include "orchestrator/driver/earlier_results.h"
#include "orchestrator/driver/planning.h"
#include "orchestrator/store/store.h"
#include "schema/columns.h"
#include "schema/labels.h"

namespace sweep::driver {
namespace {

using answers::Suggestion;

// What a machine is, and what the agent may use of it: never taken over.
constexpr std::array<std::string_view, 8> kMachine{"model",
                                                   "hardware",
                                                   "nodes",
                                                   "gpus_per_node",
                                                   "program",
                                                   "workload",
                                                   "memory_cap_bytes",
                                                   "host_memory_cap_bytes"};
// What is trained: an earlier result that differs in it answers another question.
constexpr std::array<std::string_view, 12> kTask{
    "lora_rank", "lora_alpha", "lora_targets",    "quantize_base",   "packing",   "lengths",
    "data",      "checkpoint", "eval_batch_size", "encoder_seq_len", "grad_clip", "weights_load"};

bool is_among(std::span<const std::string_view> names, std::string_view key) {
  return std::ranges::find(names, key) != names.end();
}

// What the trials of a grid are about.
struct Asked {
  Trial first;  // model and hardware are those of all
  std::set<i64> worlds;
  std::map<std::string_view, std::set<Value>> values;  // values of each axis
};

Expected<Asked> asked_by(const grid::Grid& grid) {
  Asked out;
  std::set<std::string> models, machines;
  ResultRow row;
  const auto counts = grid::expand(grid, [&](PlanEntry&& entry) {
    if (!entry.admitted) return true;
    row.trial = std::move(entry.trial);
    if (out.worlds.empty()) out.first = row.trial;
    models.insert(row.trial.model), machines.insert(row.trial.hardware);
    out.worlds.insert(row.trial.world());
    for (const Column& c : columns())
      if (c.role == Role::kAxis) out.values[c.key].insert(c.get(row));
    return true;
  });
  if (!counts) return tl::unexpected(counts.error());
  if (models.size() > 1 || machines.size() > 1)
    return fail(
        ErrorKind::kConflict, "--suggested",
        fmt::format("--suggested takes the values of one earlier result, and {} asks about {}: give it one "
                    "model and one hardware",
                    grid.path.string(), fmt::join(models.size() > 1 ? models : machines, ", ")));
  if (out.first.workload == Workload::kCommand)
    return fail(
        ErrorKind::kUnsupported, "--suggested",
        "--suggested knows the axes of the built-in step, and this grid runs a command; `sweep suggest` "
        "prints what ran best");
  return out;
}

// Another GPU may stand in for the one that is asked for, never a processor.
bool comparable(const Trial& earlier, const Trial& asked) {
  return earlier.workload == asked.workload && earlier.spec == asked.spec &&
         (earlier.hardware == "cpu") == (asked.hardware == "cpu");
}

double distance(double a, double b) {
  return a > 0 && b > 0 ? std::abs(std::log(a / b)) : HUGE_VAL;
}

double memory_of(const std::string& hardware) {
  const auto* known = shape::known_hardware(hardware);
  return known != nullptr ? static_cast<double>(known->memory_bytes.value_or(0)) : 0;
}

// The nearest place: the same hardware, else that with the most similar memory; then the number of ranks.
const Suggestion* nearest(const std::vector<Suggestion>& all, const Asked& asked) {
  const auto far = [&](const Suggestion& each) {
    const Trial& t = each.best.trial;
    const bool other = t.hardware != asked.first.hardware;
    double ranks = HUGE_VAL;
    for (const i64 world : asked.worlds)
      ranks = std::min(ranks, distance(static_cast<double>(t.world()), static_cast<double>(world)));
    return std::tuple(other, other ? distance(memory_of(t.hardware), memory_of(asked.first.hardware)) : 0,
                      ranks, t.nodes != asked.first.nodes);
  };
  const auto least = std::ranges::min_element(all, {}, far);
  return least == all.end() ? nullptr : &*least;
}

// Those whose values of these axes are among the grid's.
template <class Counts>
std::vector<ResultRow> agreeing(std::vector<ResultRow> rows, const Asked& asked, Counts&& counts) {
  std::erase_if(rows, [&](const ResultRow& row) {
    return std::ranges::any_of(columns(), [&](const Column& c) {
      return c.role == Role::kAxis && counts(c.key) && !asked.values.at(c.key).contains(c.get(row));
    });
  });
  return rows;
}

struct Source {
  Suggestion from;
  bool agrees = false;  // it agrees with all that the grid states
};

Expected<Source> source_for(const grid::Grid& grid, const Asked& asked, store::Store& store) {
  SWEEP_GET(auto rows, answers::measured_rows(store, asked.first.model, grid.name));
  std::erase_if(rows, [&](const ResultRow& row) { return !comparable(row.trial, asked.first); });
  auto task = agreeing(std::move(rows), asked, [](std::string_view key) { return is_among(kTask, key); });
  auto stated = agreeing(task, asked, [&](std::string_view key) {
    return !is_among(kMachine, key) && grid::sets_axis(grid, key);
  });
  for (auto* each : {&stated, &task})
    if (const auto places = answers::suggestions(std::move(*each));
        const auto* found = nearest(places, asked))
      return Source{*found, each == &stated};
  return fail(
      ErrorKind::kMissing, "--suggested",
      fmt::format("nothing to take: the database has no result of another sweep with {} on {} that trains "
                  "the same; leave --suggested out, or run a grid first (`sweep suggest` lists what ran)",
                  asked.first.model, asked.first.hardware == "cpu" ? "cpu" : "GPUs"));
}

struct Taken {
  std::string key, line;  // "tp: 2"
};
std::vector<Taken> taken_from(const grid::Grid& grid, const ResultRow& row) {
  std::vector<Taken> out;
  for (const Column& c : columns()) {
    if (c.role != Role::kAxis || is_among(kMachine, c.key) || !grid::leaves_unset(grid, c.key)) continue;
    if (!knows_axis(row.trial.labels, c.key) || c.get(row) == c.default_value) continue;
    std::string line = answers::axis_line(c, row);
    if (line.empty()) continue;
    line.pop_back();
    out.push_back({std::string(c.key), std::move(line)});
  }
  return out;
}

std::string source_sentence(const Source& source) {
  const ResultRow& best = source.from.best;
  return fmt::format("suggested: from trial {} of sweep {}, the fastest of {} that ran on {} with {} x {}{}",
                     best.trial_id, answers::safe_text(best.sweep), source.from.ran,
                     counted(best.trial.nodes, "node"), best.trial.gpus_per_node, best.trial.hardware,
                     source.agrees ? "" : "; none ran with all values that this grid states");
}

// The values of the stored sweep of this name; "": there is none, or it has none.
Expected<std::string> stored_values(store::Store& store, const grid::Grid& grid,
                                    const grid::ReadOptions& options) {
  const auto sweep = store.find_sweep(grid.name);
  if (!sweep || sweep->grid_text.find("suggested") == std::string::npos) return std::string();
  SWEEP_GET(const auto before, grid::read_text(sweep->grid_text, grid.path, options));
  return before.suggested;
}

Expected<Suggested> rewritten(const grid::Grid& grid, const grid::ReadOptions& options, Suggested out,
                              const std::string& values) {
  SWEEP_GET(const auto text, grid::with_suggested(grid, values));
  SWEEP_GET(auto read, grid::read_text(text, grid.path, options));
  out.grid = std::move(read), out.grid.from_stream = grid.from_stream;
  return out;
}

}  // namespace

Expected<Suggested> with_suggested(grid::Grid grid, const grid::ReadOptions& options, const std::string& db) {
  if (!grid.suggested.empty()) {
    Suggested own{std::move(grid), {}, true};
    own.said.push_back("suggested: the grid has this section already, and keeps it: " + own.grid.suggested);
    return own;
  }
  SWEEP_GET(const auto asked, asked_by(grid));
  if (asked.worlds.empty())
    return Suggested{std::move(grid), {"suggested: nothing is taken: the grid has no trial that could run"}};
  SWEEP_GET(auto store, store::Store::open(db, store::Mode::kReadOnly));
  SWEEP_GET(const auto before, stored_values(*store, grid, options));
  if (!before.empty())
    return rewritten(grid, options,
                     {{}, {fmt::format("suggested: as sweep {} has them: {}", grid.name, before)}, true},
                     before);
  SWEEP_GET(const auto source, source_for(grid, asked, *store));
  Suggested out;
  out.said.push_back(source_sentence(source));
  std::string values;
  for (const Taken& each : taken_from(grid, source.from.best)) {
    values += (values.empty() ? "" : ", ") + each.line;
    out.said.push_back("suggested: " + each.line);
  }
  if (!values.empty()) return rewritten(grid, options, std::move(out), values);
  out.said.emplace_back("suggested: nothing to take: it has the defaults, or what the grid states");
  out.grid = std::move(grid);
  return out;
}

Expected<void> keep_suggested(store::Store& store, i64 sweep, const Planned& planned) {
  if (planned.suggested.empty() || planned.suggested_again) return {};
  return store.add_event(sweep, EventKind::kSuggested, fmt::format("{}", fmt::join(planned.suggested, "; ")));
}

}  // namespace sweep::driver
