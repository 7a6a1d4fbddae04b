#include "orchestrator/answers/tables/source_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/text.h"
#include "bench_kernels/shape/count.h"
#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/statistics/batch_curve.h"
#include "orchestrator/answers/statistics/stages.h"
#include "orchestrator/answers/tables/tables.h"
#include "schema/ranking.h"

namespace sweep::answers {
namespace {

constexpr std::array<std::string_view, 6> kTableNames = {"cost",      "batch",     "scaling",
                                                         "max-batch", "max-model", "stages"};

Field field_of(std::string_view column) {
  return Field(*find_column(column));
}

std::vector<Field> without(std::vector<Field> fields, std::initializer_list<std::string_view> names) {
  std::erase_if(
      fields, [&](const Field& f) { return std::find(names.begin(), names.end(), f.name()) != names.end(); });
  return fields;
}

Value text_or_null(std::string text) {
  return text.empty() ? Value{} : Value{std::move(text)};
}

std::string outcome_of(const ResultRow& row) {
  return std::string(to_string(row.outcome));
}

void push_columns(Table& table, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) table.columns.emplace_back(name);
}

void push_values(std::vector<Value>& line, const ResultRow& row, std::span<const std::string_view> names) {
  for (const std::string_view name : names) line.push_back(find_column(name)->get(row));
}
void push_values(std::vector<Value>& line, const ResultRow& row,
                 std::initializer_list<std::string_view> names) {
  push_values(line, row, std::span(names.begin(), names.size()));
}

// LLMForge: per model and context length, each batch with million tokens per hour, MFU and dollars per
// million.
struct Priced {
  const ResultRow* best = nullptr;   // ok with a rate
  const ResultRow* other = nullptr;  // else how it ended
};

// Per hour and of tokens of documents, as useful_rate().
double useful_million(const ResultRow& row) {
  return *row.metrics.mt_per_hour * useful_share_of(row.metrics);
}

// One that may be the best goes before one that was stopped early.
bool cheaper(const ResultRow& a, const ResultRow& b) {
  if (may_be_best(a) != may_be_best(b)) return may_be_best(a);
  const auto &x = a.metrics.cost_per_mt, &y = b.metrics.cost_per_mt;
  const double of_x = x.value_or(0) / useful_share_of(a.metrics),
               of_y = y.value_or(0) / useful_share_of(b.metrics);
  if (x && y && of_x != of_y) return of_x < of_y;
  return useful_million(a) > useful_million(b);
}

// The columns of the cost table: useful tokens beside all where some are padding, and the cost of a run with what is
// around its steps where that is another one.
std::vector<std::string_view> cost_columns(std::span<const ResultRow> rows) {
  std::vector<std::string_view> out = {"mt_per_hour", "mfu", "mfu_fwd_bwd", "cost_per_mt"};
  if (any_padding(rows)) out.insert(out.end(), {"useful_tokens_per_s", "useful_cost_per_mt"});
  if (const auto run = run_cost_column(rows)) out.push_back(*run);
  return out;
}

// The cheapest batch of each context length: the place but for its last part, the batch.
using Places = std::map<std::vector<Value>, Priced, ValuesLess>;
std::map<std::vector<Value>, const ResultRow*, ValuesLess> cheapest_of(const Places& places) {
  std::map<std::vector<Value>, const ResultRow*, ValuesLess> out;
  for (const auto& [place, found] : places) {
    if (!found.best) continue;
    const ResultRow*& kept = out[{place.begin(), place.end() - 1}];
    if (!kept || cheaper(*found.best, *kept)) kept = found.best;
  }
  return out;
}

SourceTableAnswer cost_table(std::span<const ResultRow> rows) {
  const std::vector<Field> place = {field_of("model"), field_of("hardware"), field_of("nodes"),
                                    field_of("seq_len"), field_of("micro_batch_size")};
  const auto rest =
      without(varying_among_ok(rows), {"model", "hardware", "nodes", "seq_len", "micro_batch_size"});
  Places places;
  for (const ResultRow& row : rows) {
    const CellOutcome outcome = cell_outcome_of(row);
    if (outcome == CellOutcome::kPending || outcome == CellOutcome::kPruned) continue;
    std::vector<Value> key;
    for (const Field& field : place) key.push_back(field.of(row));
    Priced& found = places[std::move(key)];
    if (outcome == CellOutcome::kOk && row.metrics.mt_per_hour) {
      if (!found.best ||
          goes_before(Better::kHigher, row, useful_million(row), *found.best, useful_million(*found.best)))
        found.best = &row;
    } else if (!found.other || outcome == CellOutcome::kOom) {
      found.other = &row;
    }
  }
  SourceTableAnswer out;
  for (const Field& field : place) out.table.columns.push_back(field.name());
  const auto figures = cost_columns(rows);
  push_columns(out.table, {"star", "outcome"});
  out.table.columns.insert(out.table.columns.end(), figures.begin(), figures.end());
  push_columns(out.table, {"layout", "trial"});
  const auto cheapest = cheapest_of(places);
  bool priced = false;
  for (const auto& [key, found] : places) {
    const ResultRow& row = found.best ? *found.best : *found.other;
    std::vector<Value> line = key;
    const auto star = cheapest.find({key.begin(), key.end() - 1});
    line.push_back(star != cheapest.end() && star->second == found.best ? Value{std::string(kCheapestMark)}
                                                                        : Value{});
    line.emplace_back(outcome_of(row));
    push_values(line, row, figures);
    line.push_back(text_or_null(setting_text(row, rest)));
    line.emplace_back(row.trial_id);
    out.table.rows.push_back(std::move(line));
    priced |= row.metrics.cost_per_mt.has_value();
  }
  out.notes.push_back(
      priced ? "★ the cheapest batch of its context length; cost is the price of all nodes per hour / "
               "million tokens per hour."
             : "★ the fastest batch of its context length; no cost: the hardware catalogue has no "
               "public price for this hardware.");
  return out;
}

// Lightning: batch, memory, GPU usage with deviation, TFLOP/s, iteration time, star.
std::string limit_of(const BatchCurve& curve, const BatchPoint& point) {
  if (point.row->outcome == Outcome::kOom) return "out of memory";
  if (point.row->outcome != Outcome::kOk) return outcome_of(*point.row);
  return point.row->metrics.alloc_retries.value_or(0) > 0 ? "cudaMalloc retries"
         : curve.oom_at && point.batch > *curve.oom_at    ? "above a batch that ran out of memory"
                                                          : "";
}

std::string_view memory_column(std::span<const ResultRow> rows) {
  const bool reserved =
      std::any_of(rows.begin(), rows.end(), [](const ResultRow& r) { return r.metrics.peak_reserved_bytes; });
  return reserved ? "peak_reserved_bytes" : "peak_allocated_bytes";
}

SourceTableAnswer batch_table(std::span<const ResultRow> rows) {
  const auto setting = setting_fields(rows);
  const std::string_view memory = memory_column(rows);
  SourceTableAnswer out;
  std::vector<std::string_view> figures = {memory,    "util_mean",        "util_sd",      "tflops_gpu",
                                           "step_ms", "tokens_per_s_gpu", "alloc_retries"};
  if (any_padding(rows)) figures.insert(figures.end() - 1, "useful_tokens_per_s_gpu");
  for (const Field& field : setting) add_head(out.table, field);
  push_columns(out.table, {"micro_batch_size", "star"});
  out.table.columns.insert(out.table.columns.end(), figures.begin(), figures.end());
  push_columns(out.table, {"limit", "trial"});
  std::map<std::string, std::size_t> unstarred;
  for (const BatchCurve& curve : batch_curves(rows, setting)) {
    for (std::size_t i = 0; i < curve.points.size(); ++i) {
      const BatchPoint& point = curve.points[i];
      std::vector<Value> line = curve.key;
      line.emplace_back(point.batch);
      line.push_back(curve.star == i ? Value{std::string(kCheapestMark)} : Value{});
      push_values(line, *point.row, figures);
      line.push_back(text_or_null(limit_of(curve, point)));
      line.emplace_back(point.row->trial_id);
      out.table.rows.push_back(std::move(line));
    }
    if (!curve.star) ++unstarred[curve.why_no_star];
  }
  out.notes.emplace_back("★ the largest batch before cudaMalloc retries or an out-of-memory error.");
  for (const auto& [why, count] : unstarred)
    out.notes.push_back(fmt::format("{} without a ★: {}.", counted(count, "setting"), why));
  return out;
}

SourceTableAnswer scaling_table(std::span<const ResultRow> rows) {
  const auto rest = without(varying_among_ok(rows), {"model", "hardware", "seq_len", "nodes"});
  SourceTableAnswer out;
  const bool padding = any_padding(rows);
  push_columns(out.table,
               {"model", "hardware", "seq_len", "nodes", "layout", "tokens_per_s_gpu", "tokens_per_s"});
  if (padding) push_columns(out.table, {"useful_tokens_per_s"});
  push_columns(out.table,
               {"scaling", "mfu", "mfu_reported", "step_ms", "cost_per_mt", "ok", "configurations", "trial"});
  for (const ScalingCurve& curve : scaling_curves(rows)) {
    for (const ScalingPoint& point : curve.points) {
      std::vector<Value> line = curve.key;
      line.emplace_back(point.nodes);
      const ResultRow none;
      const ResultRow& row = point.best ? *point.best : none;
      line.push_back(point.best ? text_or_null(setting_text(row, rest)) : Value{});
      push_values(line, row, {"tokens_per_s_gpu", "tokens_per_s"});
      if (padding) push_values(line, row, {"useful_tokens_per_s"});
      line.push_back(point.efficiency ? Value{*point.efficiency} : Value{});
      push_values(line, row, {"mfu", "mfu_reported", "step_ms", "cost_per_mt"});
      line.emplace_back(point.ok);
      line.emplace_back(point.total);
      line.push_back(point.best ? Value{row.trial_id} : Value{});
      out.table.rows.push_back(std::move(line));
    }
  }
  out.notes.emplace_back(
      fmt::format("The configuration with the highest {}tokens/s per rank of each node count; scaling is its "
                  "rate over that of the smallest node count measured.",
                  padding ? "useful " : ""));
  return out;
}

// The chapter's comparison: DDP against the ZeRO stages, by the largest batch that fits.
std::string method_of(const Trial& trial) {
  std::string out = trial.zero > 0 ? fmt::format("ZeRO-{}", trial.zero)
                    : trial.dp > 1 ? "DDP"
                                   : "one replica";
  if (trial.offload != Offload::kNone) out += fmt::format(" + {} offload", trial.offload);
  if (trial.recompute != Recompute::kNone) out += fmt::format(" + {} recompute", trial.recompute);
  return out;
}

std::string max_batch_note(const BatchCurve& curve) {
  if (curve.oom_at && curve.largest) return fmt::format("out of memory at {}", *curve.oom_at);
  if (curve.oom_at) return fmt::format("out of memory already at {}", *curve.oom_at);
  return curve.largest ? "no limit seen: the largest tried fits" : "no batch ended ok";
}

SourceTableAnswer max_batch_table(std::span<const ResultRow> rows, const SourceTableOptions& options) {
  const auto setting = setting_fields(rows);
  const auto shown =
      without(setting, {"model", "hardware", "nodes", "seq_len", "zero", "offload", "recompute"});
  SourceTableAnswer out;
  std::vector<std::string_view> figures = {"step_ms", "tokens_per_s"};
  if (any_padding(rows)) figures.emplace_back("useful_tokens_per_s");
  push_columns(out.table, {"model", "hardware", "nodes", "seq_len", "method", "setting", "max_batch"});
  out.table.columns.insert(out.table.columns.end(), figures.begin(), figures.end());
  if (options.epoch_tokens) out.table.columns.emplace_back("epoch_s");
  push_columns(out.table, {"peak_allocated_bytes", "note", "trial"});
  std::map<std::vector<Value>, std::vector<Value>, ValuesLess> lines;  // sorted by place, then method
  for (const BatchCurve& curve : batch_curves(rows, setting)) {
    const BatchPoint& point = curve.points[curve.largest.value_or(0)];
    ResultRow row = *point.row;
    if (!curve.largest) row.metrics = {};  // the figures of an out-of-memory trial are no answer
    std::vector<Value> line;
    push_values(line, row, {"model", "hardware", "nodes", "seq_len"});
    line.emplace_back(method_of(row.trial));
    line.push_back(text_or_null(setting_text(row, shown)));
    const std::vector<Value> key = line;
    line.push_back(curve.largest ? Value{point.batch} : Value{});
    push_values(line, row, figures);
    const auto rate = number(find_column(figures.back())->get(row));
    if (options.epoch_tokens)
      line.push_back(curve.largest && rate && *rate > 0 ? Value{*options.epoch_tokens / *rate} : Value{});
    push_values(line, row, {"peak_allocated_bytes"});
    line.emplace_back(max_batch_note(curve));
    line.emplace_back(row.trial_id);
    lines.emplace(key, std::move(line));
  }
  for (auto& [key, line] : lines) out.table.rows.push_back(std::move(line));
  out.notes.emplace_back(
      "max_batch is the largest micro-batch that ended ok; time and rate are those at that batch.");
  return out;
}

// Lightning's table of nodes: the model grown until memory is full.
SourceTableAnswer max_model_table(std::span<const ResultRow> rows) {
  const auto setting = without(varying(rows), {"model"});
  const auto shown = without(setting, {"hardware", "nodes", "seq_len", "zero", "offload", "recompute"});
  const SizeOf parameters = [](const Trial& t) -> std::optional<i64> {
    if (t.spec.layers == 0) return std::nullopt;
    return shape::parameter_count(t.spec);
  };
  SourceTableAnswer out;
  push_columns(out.table, {"hardware", "nodes", "seq_len", "method", "setting", "max_model", "parameters",
                           "step_ms", "tokens_per_s", "peak_allocated_bytes", "note", "trial"});
  for (const BatchCurve& curve : batch_curves(rows, setting, parameters)) {
    const BatchPoint& point = curve.points[curve.largest.value_or(0)];
    ResultRow row = *point.row;
    if (!curve.largest) row.metrics = {};  // the figures of an out-of-memory trial are no answer
    std::vector<Value> line;
    push_values(line, row, {"hardware", "nodes", "seq_len"});
    line.emplace_back(method_of(row.trial));
    line.push_back(text_or_null(setting_text(row, shown)));
    line.push_back(curve.largest ? Value{row.trial.model} : Value{});
    line.push_back(curve.largest ? Value{point.batch} : Value{});
    push_values(line, row, {"step_ms", "tokens_per_s", "peak_allocated_bytes"});
    const auto first_oom = std::ranges::find(curve.points, curve.oom_at.value_or(-1), &BatchPoint::batch);
    line.emplace_back(first_oom != curve.points.end()
                          ? fmt::format("out of memory with {}", first_oom->row->trial.model)
                      : curve.largest ? "no limit seen: the largest that ran fits"
                                      : "no model ended ok");
    line.emplace_back(row.trial_id);
    out.table.rows.push_back(std::move(line));
  }
  out.notes.emplace_back("max_model is the model with the most parameters that ended ok in a setting.");
  return out;
}

// 15x fine-tuning: each change on top of those before it.
SourceTableAnswer stages_table(std::span<const ResultRow> rows, const std::string& metric) {
  SourceTableAnswer out;
  push_columns(out.table, {"series", "stage", "change", "outcome", metric, "times_before", "times_first",
                           "peak_allocated_bytes", "cost_per_mt", "trial"});
  const auto factor = [](std::optional<double> f) { return f ? Value{*f} : Value{}; };
  for (const StageSeries& series : stage_series(rows, field_of(metric))) {
    for (const StageResult& stage : series.stages) {
      std::vector<Value> line = {text_or_null(series.name), stage.name, text_or_null(stage.change),
                                 std::string(to_string(cell_outcome_of(*stage.row)))};
      push_values(line, *stage.row, {metric});
      line.push_back(factor(stage.over_before));
      line.push_back(factor(stage.over_first));
      push_values(line, *stage.row, {"peak_allocated_bytes", "cost_per_mt"});
      line.emplace_back(stage.row->trial_id);
      out.table.rows.push_back(std::move(line));
    }
  }
  if (out.table.rows.empty())
    out.notes.push_back(
        "The grid has no stages: `stages:` makes a series of trials, each with one change more.");
  return out;
}

}  // namespace

std::optional<SourceTable> source_table_from(std::string_view name) {
  for (std::size_t i = 0; i < kTableNames.size(); ++i) {
    if (kTableNames[i] == name) return SourceTable(i);
  }
  return std::nullopt;
}

std::span<const std::string_view> source_table_names() {
  return kTableNames;
}

std::vector<ScalingCurve> scaling_curves(std::span<const ResultRow> rows) {
  const Field place[] = {field_of("model"), field_of("hardware"), field_of("seq_len")};
  std::map<std::vector<Value>, std::map<i64, ScalingPoint>, ValuesLess> found;
  for (const ResultRow& row : rows) {
    std::vector<Value> key;
    for (const Field& field : place) key.push_back(field.of(row));
    ScalingPoint& point = found[std::move(key)][row.trial.nodes];
    point.nodes = row.trial.nodes;
    ++point.total;
    const auto rate = useful_rate(row.metrics);
    if (cell_outcome_of(row) != CellOutcome::kOk || !rate || !std::isfinite(*rate)) continue;
    ++point.ok;
    if (!point.best ||
        goes_before(Better::kHigher, row, *rate, *point.best, *useful_rate(point.best->metrics)))
      point.best = &row;
  }
  std::vector<ScalingCurve> out;
  for (const auto& [key, points] : found) {
    ScalingCurve& curve = out.emplace_back(ScalingCurve{key, {}});
    std::optional<double> base;
    for (const auto& [nodes, point] : points) {
      curve.points.push_back(point);
      if (!point.best) continue;
      const double rate = *useful_rate(point.best->metrics);
      if (!base && rate > 0) base = rate;
      if (base) curve.points.back().efficiency = rate / *base;
    }
  }
  return out;
}

SourceTableAnswer source_table(SourceTable kind, std::span<const ResultRow> rows,
                               const SourceTableOptions& options) {
  SourceTableAnswer out = kind == SourceTable::kCost       ? cost_table(rows)
                          : kind == SourceTable::kBatch    ? batch_table(rows)
                          : kind == SourceTable::kScaling  ? scaling_table(rows)
                          : kind == SourceTable::kStages   ? stages_table(rows, options.metric)
                          : kind == SourceTable::kMaxModel ? max_model_table(rows)
                                                           : max_batch_table(rows, options);
  if (!out.table.rows.empty() || (kind == SourceTable::kStages && !rows.empty())) return out;
  const bool none_ok =
      std::ranges::none_of(rows, [](const ResultRow& row) { return row.outcome == Outcome::kOk; });
  out.notes = {none_ok ? "Nothing was measured yet: `sweep status` shows how far the sweep is."
               : kind == SourceTable::kMaxModel
                   ? "No trial that ran has a model whose parameters are known."
                   : "No trial that ran has a micro-batch size: neither its grid nor its program names one."};
  return out;
}

}  // namespace sweep::answers
