#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "orchestrator/answers/charts/chart.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/statistics/transfer.h"

namespace sweep::answers {
namespace {

constexpr double kWhole = 100;

struct Best {
  double a = NAN, b = NAN;
};

Best best_of(const Transfer& found, std::size_t cell, bool lower) {
  Best out;
  const auto take = [&](double& best, double value) {
    if (std::isnan(best) || (lower ? value < best : value > best)) best = value;
  };
  for (const auto& each : found.shared)
    if (each.cell == cell && each.measured()) take(out.a, *each.value_a), take(out.b, *each.value_b);
  return out;
}

double share(double value, double best, bool lower) {
  return kWhole * (lower ? best / value : value / best);
}

std::string name_of(const Transfer& found, const TransferCell& cell) {
  std::string out;
  for (std::size_t i = 0; i < found.by.size(); ++i)
    out += fmt::format("{}{}={}", i ? " " : "", safe_text(found.by[i].name()), show(cell.key[i]));
  if (cell.spearman) out += fmt::format(": Spearman {:.2f}", *cell.spearman);
  if (cell.regret) out += fmt::format(", A's choice costs {:.1f} %", *cell.regret * kWhole);
  return out;
}

ChartPoint point_of(const Transfer& found, const SharedConfiguration& each, const Best& best, bool lower) {
  return {
      share(*each.value_a, best.a, lower), share(*each.value_b, best.b, lower),
      fmt::format("{}: rank {:g} in A, {:g} in B", transfer_setting(found, each), *each.rank_a, *each.rank_b),
      found.cells[each.cell].choice == std::size_t(&each - found.shared.data()) ? "star" : ""};
}

}  // namespace

std::string transfer_svg(const Transfer& found, const TransferOptions& options, const TransferNames& names) {
  const bool lower = lower_is_better(options.metric);
  Chart chart;
  chart.title = fmt::format("{} against {}: {} as a share of the best", names.b, names.a, options.metric);
  chart.width = 640, chart.height = 560;
  chart.x.name = fmt::format("{}: % of its best {} (A)", names.a, options.metric);
  chart.y.name = fmt::format("{}: % of its best {} (B)", names.b, options.metric);
  double least = kWhole;
  for (std::size_t cell = 0; cell < found.cells.size(); ++cell) {
    ChartSeries series{.name = name_of(found, found.cells[cell]), .points = {}, .line = false};
    const Best best = best_of(found, cell, lower);
    for (const auto& each : found.shared)
      if (each.cell == cell && each.measured()) series.points.push_back(point_of(found, each, best, lower));
    for (const auto& point : series.points) least = std::min({least, point.x, point.y});
    chart.series.push_back(std::move(series));
  }
  if (least < kWhole)
    chart.series.push_back({.name = "the same share in both",
                            .points = {{least, least, "", ""}, {kWhole, kWhole, "", ""}},
                            .pale = true});
  return to_svg(chart);
}

}  // namespace sweep::answers
