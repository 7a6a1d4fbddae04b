// The report's charts: memory against speed, scaling, batch sizes, where the time goes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/text.h"
#include "orchestrator/answers/charts/chart.h"
#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/names.h"
#include "orchestrator/answers/pages/report_parts.h"
#include "orchestrator/answers/statistics/batch_curve.h"
#include "orchestrator/answers/statistics/time_parts.h"
#include "orchestrator/answers/tables/source_tables.h"
#include "schema/ranking.h"

namespace sweep::answers::parts {
namespace {

constexpr std::size_t kModels = 4, kCurves = 6, kBars = 10, kFewBars = 4;

std::string drawn(const std::string& svg) {
  return fmt::format("<div class=\"chart\">{}</div>\n", svg);
}

// 0 for not measured and for what is not a number.
double speed_of(const ResultRow& row) {
  const double speed = useful_rate(row.metrics).value_or(0);
  return std::isfinite(speed) ? speed : 0;
}

// The unit of speed_of(), such as "tokens/s per GPU".
std::string speed_unit(std::span<const ResultRow> rows) {
  return Names(rows).of(any_padding(rows) ? "useful_tokens_per_s_gpu" : "tokens_per_s_gpu");
}
std::string speed_text(const ResultRow& row) {
  return fmt::format("{} {}", si(speed_of(row)), speed_unit(std::span(&row, 1)));
}

double memory_of(const ResultRow& row) {
  return double(*row.metrics.peak_allocated_bytes);
}

ChartPoint memory_point(const ResultRow& row, std::span<const Field> differ, const Scale& memory) {
  const double bytes = double(*row.metrics.peak_allocated_bytes);
  return {bytes * memory.factor, speed_of(row),
          fmt::format("{}: {} {}, {}, trial {}", name_of(row, differ), memory(bytes), memory.unit,
                      speed_text(row), row.trial_id),
          ""};
}

std::string memory_chart(const std::string& model, const std::vector<const ResultRow*>& rows, double headroom,
                         std::span<const Field> differ, const std::string& unit) {
  std::set<i64> memories;
  double largest = 0;
  for (const ResultRow* row : rows) {
    largest = std::max(largest, double(*row->metrics.peak_allocated_bytes));
    if (const auto memory = device_memory(*row); memory && memories.size() < 3) memories.insert(*memory);
  }
  const Scale scale = scale_for("bytes", largest);
  Chart chart;
  chart.title = fmt::format("Throughput vs. memory, {}", model);
  chart.x = {.name = fmt::format("peak memory allocated, fullest rank [{}]", scale.unit)};
  chart.y = {.name = unit, .suffix = true};
  const auto point = [&](const ResultRow& row) { return memory_point(row, differ, scale); };
  chart.series.push_back(cloud(rows, memory_of, speed_of, point));
  ChartSeries front{.name = "Pareto front: nothing faster in as little memory", .points = {}, .step = true};
  for (const ResultRow* row :
       pareto_front(rows, memory_of, [](const ResultRow& one) { return -speed_of(one); }))
    front.points.push_back(point(*row));
  chart.series.push_back(std::move(front));
  for (const i64 memory : memories) {
    const double bytes = double(memory);
    chart.lines.push_back(
        {bytes * scale.factor, fmt::format("device memory {} {}", scale(bytes), scale.unit)});
    chart.lines.push_back(
        {bytes * scale.factor * (1 - headroom), fmt::format("{:g} % headroom", headroom * 100)});
  }
  return drawn(to_svg(chart));
}

// Crosses stand on the floor of the chart, a little apart so that none hides another.
ChartSeries curve_series(const BatchCurve& curve, const std::string& name, double floor, std::size_t number) {
  ChartSeries out{.name = name, .points = {}};
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const BatchPoint& point = curve.points[i];
    const ResultRow& row = *point.row;
    const bool star = curve.star == i;
    if (row.outcome == Outcome::kOk && speed_of(row) > 0) {
      const i64 retries = row.metrics.alloc_retries.value_or(0);
      out.points.push_back(
          {double(point.batch), speed_of(row),
           fmt::format("{} batch {}: {}{}{}", name, point.batch, speed_text(row), star ? ", the star" : "",
                       retries > 0 ? fmt::format(", {} cudaMalloc retries", retries) : ""),
           star ? "star" : ""});
    } else if (row.outcome == Outcome::kOom && curve.oom_at == point.batch) {
      const double apart = 1 + 0.025 * (static_cast<double>(number) - 2.5);
      out.points.push_back({double(point.batch) * apart, floor,
                            fmt::format("{} batch {}: out of memory", name, point.batch), "cross"});
    }
  }
  return out;
}

double best_rate(const BatchCurve& curve) {
  double out = 0;
  for (const auto& point : curve.points) {
    if (point.row->outcome == Outcome::kOk) out = std::max(out, speed_of(*point.row));
  }
  return out;
}

// The parts of the key in which the curve differs from the others; the whole key where it is alone.
std::string curve_name(const ScalingCurve& curve, const std::vector<ScalingCurve>& all) {
  std::vector<std::string> parts;
  for (std::size_t k = 0; k < curve.key.size(); ++k)
    if (all.size() == 1 ||
        std::ranges::any_of(all, [&](const ScalingCurve& other) { return other.key[k] != curve.key[k]; }))
      parts.push_back(show(curve.key[k]));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// The bar of a row; none: its parts were not measured.
std::optional<StackedBar> bar_of(const ResultRow& row, const std::string& label) {
  const auto parts = time_parts(row.metrics, row.trial);
  return parts ? std::optional(StackedBar{label, *parts}) : std::nullopt;
}

std::vector<const ResultRow*> rows_for_split(const ReportInput& in) {
  std::vector<const ResultRow*> out;
  for (const auto& curve : scaling_curves(in.rows)) {
    for (const auto& point : curve.points) {
      if (point.best && out.size() < kBars) out.push_back(point.best);
    }
  }
  if (out.size() >= kFewBars) return out;
  std::vector<const ResultRow*> ranked;
  for (const ResultRow& row : in.rows) {
    if (cell_outcome_of(row) == CellOutcome::kOk && std::find(out.begin(), out.end(), &row) == out.end())
      ranked.push_back(&row);
  }
  const std::size_t more = std::min(ranked.size(), kBars - kFewBars);
  std::partial_sort(ranked.begin(), ranked.begin() + std::ptrdiff_t(more), ranked.end(),
                    [](const ResultRow* a, const ResultRow* b) {
                      return goes_before(Better::kHigher, *a, speed_of(*a), *b, speed_of(*b));
                    });
  out.insert(out.end(), ranked.begin(), ranked.begin() + std::ptrdiff_t(more));
  return out;
}

}  // namespace

std::map<std::string, std::vector<const ResultRow*>> comparable_rows(
    const ReportInput& in, const std::function<bool(const ResultRow&)>& counts) {
  BestOptions options;
  options.group_by = comparable_groups(varying(in.rows));
  std::map<std::string, std::vector<const ResultRow*>> out;
  for (const ResultRow& row : in.rows) {
    if (cell_outcome_of(row) != CellOutcome::kOk || !counts(row)) continue;
    BestOfGroup group;
    for (const auto& key : options.group_by) group.key.push_back(find_column(key)->get(row));
    out[heading_of(group, options)].push_back(&row);
  }
  return out;
}

ChartSeries cloud(const std::vector<const ResultRow*>& rows, const Figure& x, const Figure& y,
                  const std::function<ChartPoint(const ResultRow&)>& point) {
  double most_x = std::numeric_limits<double>::min(), most_y = most_x;
  for (const ResultRow* row : rows) most_x = std::max(most_x, x(*row)), most_y = std::max(most_y, y(*row));
  ChartSeries out{.name = "configurations that ended ok", .points = {}, .line = false, .pale = true};
  std::set<std::pair<int, int>> taken;
  for (const ResultRow* row : rows)
    if (taken.emplace(int(x(*row) / most_x * 120), int(y(*row) / most_y * 80)).second)
      out.points.push_back(point(*row));
  return out;
}

std::string memory_and_speed(const ReportInput& in) {
  const auto models = comparable_rows(
      in, [](const ResultRow& row) { return row.metrics.peak_allocated_bytes && speed_of(row) > 0; });
  const auto differ = varying_among_ok(in.rows);
  std::string out;
  std::size_t drawn_models = 0;
  for (const auto& [model, rows] : models) {
    if (++drawn_models > kModels) continue;
    if (models.size() > 1) out += fmt::format("<h3>{}</h3>\n", escape_xml(model));
    out += memory_chart(model, rows, in.headroom, differ, speed_unit(in.rows));
  }
  if (models.size() > kModels)
    out += paragraph(fmt::format("{} more are not drawn.", models.size() - kModels));
  return out;
}

std::string scaling(const ReportInput& in) {
  Chart chart;
  chart.title = "Scaling efficiency by node count";
  chart.x = {.name = "nodes", .log2 = true};
  chart.y = {.name = speed_unit(in.rows) + ", fewest nodes = 100 %", .low = 0, .high = 1.05, .factor = 100};
  chart.lines.push_back({1, "", false});
  std::set<double> ticks;
  chart.height = 260;
  const auto curves = scaling_curves(in.rows);
  for (const auto& curve : curves) {
    ChartSeries series{.name = curve_name(curve, curves), .points = {}};
    for (const auto& point : curve.points) {
      if (!point.efficiency) continue;
      ticks.insert(double(point.nodes));
      series.points.push_back({double(point.nodes), *point.efficiency,
                               fmt::format("{} nodes: {:.1f} %, {}", point.nodes, *point.efficiency * 100,
                                           speed_text(*point.best)),
                               ""});
    }
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  if (ticks.size() < 2) return "";  // one node count has nothing to be compared with
  chart.x.ticks.assign(ticks.begin(), ticks.end());
  return drawn(to_svg(chart)) +
         html_table(for_people(source_table(SourceTable::kScaling, in.rows).table), Names(in.rows));
}

std::string batches(const ReportInput& in) {
  const auto setting = setting_fields(in.rows);
  auto curves = batch_curves(in.rows, setting);
  std::erase_if(curves, [](const BatchCurve& c) { return c.points.size() < 2 || !c.largest; });
  if (curves.empty()) return "";
  std::stable_sort(curves.begin(), curves.end(),
                   [](const auto& a, const auto& b) { return best_rate(a) > best_rate(b); });
  Chart chart;
  chart.title = "Tokens per second and rank by micro-batch size";
  chart.x = {.name = "micro-batch size (sequences per micro-step)", .log2 = true};
  double floor = best_rate(curves.front());
  for (std::size_t i = 0; i < std::min(kCurves, curves.size()); ++i) {
    for (const auto& point : curves[i].points) {
      if (point.row->outcome == Outcome::kOk && speed_of(*point.row) > 0)
        floor = std::min(floor, speed_of(*point.row));
    }
  }
  floor *= 0.85;
  chart.y = {.name = speed_unit(in.rows) + " (not from 0)", .low = floor, .suffix = true};
  std::vector<const ResultRow*> drawn_rows;
  for (std::size_t i = 0; i < std::min(kCurves, curves.size()); ++i)
    drawn_rows.push_back(curves[i].points.front().row);
  const auto differ = telling_apart(setting, drawn_rows);
  std::set<double> ticks;
  std::map<std::string, int> unstarred;
  for (std::size_t i = 0; i < std::min(kCurves, curves.size()); ++i) {
    chart.series.push_back(curve_series(curves[i], name_of(*curves[i].points.front().row, differ), floor, i));
    for (const auto& point : curves[i].points) ticks.insert(double(point.batch));
    if (!curves[i].star) ++unstarred[curves[i].why_no_star];
  }
  chart.x.ticks.assign(ticks.begin(), ticks.end());
  std::string out = drawn(to_svg(chart));
  std::string text =
      "★ the largest batch before cudaMalloc retries or an out-of-memory error; × where memory ran out.";
  if (curves.size() > kCurves)
    text += fmt::format(" The {} settings with the highest rate, of {}; `sweep table batch` has all.",
                        kCurves, curves.size());
  for (const auto& [why, count] : unstarred)
    text += fmt::format(" {} without a ★: {}.", counted(count, "setting"), why);
  return out + fmt::format("<p class=\"small\">{}</p>\n", escape_xml(text));
}

std::string time_split(const ReportInput& in) {
  const auto rows = rows_for_split(in);
  const auto differ = telling_apart(varying_among_ok(in.rows), rows);
  StackedBars bars{.title = "Where the time of a step goes",
                   .unit = "ms",
                   .names = {kTimeParts.begin(), kTimeParts.end()},
                   .bars = {}};
  bool waited = false;
  for (const ResultRow* row : rows) {
    if (auto bar = bar_of(*row, name_of(*row, differ))) bars.bars.push_back(std::move(*bar));
    waited |= row->metrics.exposed_comm_ms.has_value();
  }
  if (bars.bars.empty()) return "";
  std::string text =
      "The best configuration of each node count, then the next best. Each part is a median of its own, so "
      "they need not add up to the step.";
  if (!waited)
    text += " Communication was not measured apart (one rank, or not separable): it is inside backward.";
  const bool bubble =
      std::any_of(bars.bars.begin(), bars.bars.end(), [](const StackedBar& b) { return b.parts[4] > 0; });
  if (!bubble) text += " No pipeline bubble was measured.";
  return drawn(to_svg(bars)) + fmt::format("<p class=\"small\">{}</p>\n", escape_xml(text));
}

}  // namespace sweep::answers::parts
