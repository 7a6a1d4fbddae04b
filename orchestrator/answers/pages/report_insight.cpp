// The report's read-outs over all configurations: which axes matter, time against cost, what fits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "orchestrator/answers/charts/chart.h"
#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/pages/report_parts.h"
#include "orchestrator/answers/statistics/importance.h"
#include "orchestrator/answers/statistics/limits.h"
#include "orchestrator/answers/statistics/pareto.h"

namespace sweep::answers::parts {
namespace {

constexpr std::size_t kAxes = 12, kCharts = 4, kLimits = 20;
constexpr double kTokensOfJob = 1e12, kLeast = 0.005;
constexpr int kShown = 4;  // times the ends of the front of time and cost

std::string small(std::string_view text) {
  return fmt::format("<p class=\"small\">{}</p>\n", escape_xml(text));
}

double days_of(const ResultRow& row) {
  const double rate = row.metrics.mt_per_hour.value_or(0) * useful_share_of(row.metrics);
  return rate > 0 ? kTokensOfJob / 1e6 / rate / 24 : std::numeric_limits<double>::quiet_NaN();
}

double usd_of(const ResultRow& row) {
  const auto price = row.metrics.cost_per_mt;
  const double per_million = price.value_or(0) / useful_share_of(row.metrics);
  return per_million > 0 ? per_million * kTokensOfJob / 1e6 : std::numeric_limits<double>::quiet_NaN();
}

ChartPoint cost_point(const ResultRow& row, std::span<const Field> differ) {
  return {days_of(row), usd_of(row) / 1000,
          fmt::format("{}: {} days, {} USD, trial {}", name_of(row, differ), significant(days_of(row)),
                      si(usd_of(row)), row.trial_id),
          ""};
}

std::string size_text(const ResultRow& row) {
  return fmt::format("{} × {}", row.trial.micro_batch_size, row.trial.seq_len);
}

Table limits_table(std::span<const MemoryLimit> limits, std::span<const Field> differ) {
  Table table;
  table.columns = {"setting",
                   "fits: micro-batch × sequence length",
                   "tokens of a micro-step",
                   "peak memory",
                   "device memory left free",
                   "did not fit",
                   "peak it reached"};
  const auto peak = [](const ResultRow* row, std::string_view bound) {
    const auto bytes = row ? row->metrics.peak_allocated_bytes : std::nullopt;
    return bytes ? Value{fmt::format("{}{}", bound, human_bytes(double(*bytes)))} : Value{};
  };
  for (const MemoryLimit& limit : limits) {
    const ResultRow& named = limit.fits ? *limit.fits : *limit.fails;
    table.rows.push_back(
        {name_of(named, differ), limit.fits ? Value{size_text(*limit.fits)} : Value{"none"},
         limit.fits ? Value{tokens_of_micro_step(*limit.fits)} : Value{}, peak(limit.fits, ""),
         limit.headroom ? Value{fmt::format("{:.0f} %", 100 * *limit.headroom)} : Value{},
         limit.fails ? Value{size_text(*limit.fails)} : Value{"not seen"}, peak(limit.fails, "≥ ")});
  }
  return table;
}

}  // namespace

std::string importance_bars(const ReportInput& in) {
  const auto metric = resolve_ranked(in.metric);
  const auto differ = varying(in.rows);
  const auto apart = comparable_groups(differ);
  std::vector<Field> axes = differ;
  std::erase_if(axes, follows_from_others);
  auto all = importance(in.rows, *metric, axes, apart);
  std::erase_if(all, [](const AxisImportance& one) { return one.share < kLeast; });
  if (all.empty()) return "";
  const Names names(in.rows);
  StackedBars bars{.title = "Share of the differences that each axis accounts for",
                   .unit = "%",
                   .names = {"share of the variance"},
                   .bars = {}};
  for (std::size_t i = 0; i < std::min(kAxes, all.size()); ++i)
    bars.bars.push_back(
        {fmt::format("{} ({} values)", names.of(all[i].axis), all[i].values), {100 * all[i].share}});
  std::string text = fmt::format(
      "The share of the variance of {} (its logarithm) that the means of an axis' values account for, "
      "corrected for their number. Axes that change together share it: the bars do not add up to 100 %.",
      names.of(in.metric));
  if (differ.size() > axes.size() || !apart.empty())
    text += fmt::format(" Each configuration is compared with those of the same {}.",
                        apart.size() > 1 ? "model, hardware and sequence length" : "model");
  return fmt::format("<div class=\"chart\">{}</div>\n", to_svg(bars)) + small(text);
}

std::string time_and_cost(const ReportInput& in) {
  auto groups = comparable_rows(
      in, [](const ResultRow& row) { return std::isfinite(days_of(row)) && std::isfinite(usd_of(row)); });
  std::erase_if(groups, [](const auto& group) { return group.second.size() < 2; });
  const auto differ = varying_among_ok(in.rows);
  const auto point = [&](const ResultRow& row) { return cost_point(row, differ); };
  std::string out;
  std::size_t drawn = 0;
  for (const auto& [name, rows] : groups) {
    if (++drawn > kCharts) break;
    Chart chart;
    const char* tokens = any_padding(in.rows) ? "1 T useful tokens" : "1 T tokens";
    chart.title = fmt::format("Cost vs. time of {}, {}", tokens, name);
    chart.x = {.name = fmt::format("days for {}", tokens), .log2 = false};
    chart.y = {.name = fmt::format("thousand USD for {}", tokens), .suffix = true};
    const auto best = pareto_front(rows, days_of, usd_of);  // results from the fastest to the cheapest
    const double slow = kShown * days_of(*best.back()), dear = kShown * usd_of(*best.front());
    std::vector<const ResultRow*> near = rows;
    std::erase_if(near, [&](const ResultRow* row) { return days_of(*row) > slow || usd_of(*row) > dear; });
    chart.series.push_back(cloud(near, days_of, usd_of, point));
    ChartSeries front{.name = "Pareto front: nothing cheaper in as little time", .points = {}, .step = true};
    for (const ResultRow* row : best) front.points.push_back(point(*row));
    chart.series.push_back(std::move(front));
    if (groups.size() > 1) out += fmt::format("<h3>{}</h3>\n", escape_xml(name));
    out += fmt::format("<div class=\"chart\">{}</div>\n", to_svg(chart));
    if (near.size() < rows.size())
      out += small(
          fmt::format("{} of {} configurations are more than {} times slower or dearer than the ends of the "
                      "front and are not drawn.",
                      rows.size() - near.size(), rows.size(), kShown));
  }
  if (groups.size() > kCharts)
    out += paragraph(fmt::format("{} more are not drawn.", groups.size() - kCharts));
  return out;
}

std::string what_fits(const ReportInput& in) {
  const auto limits = memory_limits(in.rows);
  if (limits.empty()) return "";
  auto differ = limit_fields(in.rows);
  const std::size_t shown = std::min(kLimits, limits.size());
  std::string text =
      "The most tokens of a micro-step that ended ok in each setting, and the fewest above them that ran "
      "out of memory or were pruned for it. A peak with ≥ is what was reached before memory ran out.";
  if (limits.size() > shown) text += fmt::format(" The {} largest of {} settings.", shown, limits.size());
  return html_table(limits_table(std::span(limits).first(shown), differ), Names(in.rows)) + small(text);
}

}  // namespace sweep::answers::parts
