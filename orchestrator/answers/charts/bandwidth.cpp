#include "orchestrator/answers/charts/bandwidth.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "orchestrator/answers/charts/palette.h"
#include "orchestrator/answers/charts/svg.h"
#include "orchestrator/answers/format.h"

namespace sweep::answers {
namespace {

constexpr double kGigabyte = 1e9;
constexpr double kEdge = 24, kGroupWidth = 250, kBandCellWidth = 74, kBandCellHeight = 26, kBandTop = 84,
                 kBandFoot = 30;

std::string group_words(const shape::CollectiveRow& r) {
  return fmt::format("{}, {} ranks on {} node{}, {}", safe_text(r.kind), r.ranks, r.nodes,
                     r.nodes > 1 ? "s" : "", safe_text(r.backend));
}

struct BandGrid {
  std::vector<std::string> groups;  // groups in the order of measuring
  std::set<i64> sizes;
  std::map<std::pair<std::string, i64>, const shape::CollectiveRow*> cells;
  Colours colours;
};

// Sizes are those asked for: the bytes of a group are rounded down to whole elements of its ranks.
i64 asked(i64 bytes) {
  i64 power = 1;
  while (power < bytes) power *= 2;
  return power;
}

BandGrid band_grid(const shape::HardwareProfile& p) {
  BandGrid out;
  std::vector<double> values;
  for (const auto& row : p.collectives) {
    const std::string group = group_words(row);
    if (out.groups.empty() || out.groups.back() != group) out.groups.push_back(group);
    out.sizes.insert(asked(row.bytes));
    out.cells[{group, asked(row.bytes)}] = &row;
    values.push_back(shape::bus_bandwidth(row));
  }
  out.colours = colours_for(std::move(values), /*lower_is_better=*/false);
  return out;
}

std::string cell_svg(double x, double y, const shape::CollectiveRow& row, const Colours& colours) {
  const double value = shape::bus_bandwidth(row);
  const Paint paint = answers::paint(colours.share(value));
  return fmt::format(
             "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"3\" fill=\"{}\"/>\n", x,
             y, kBandCellWidth - 3, kBandCellHeight - 3, paint.fill) +
         svg_text(x + (kBandCellWidth - 3) / 2, y + 16, significant(value / kGigabyte),
                  paint.light_text ? "font-size=\"11\" text-anchor=\"middle\" fill=\"#ffffff\""
                                   : "font-size=\"11\" text-anchor=\"middle\" fill=\"#16202a\"");
}

}  // namespace

std::string size_text(i64 bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes >= 1024 && bytes % 1024 == 0) bytes /= 1024, ++unit;
  return fmt::format("{} {}", bytes, kUnits[unit]);
}

std::string bandwidth_svg(const shape::HardwareProfile& p) {
  const BandGrid grid = band_grid(p);
  const std::string title = "Bus bandwidth of collectives by message size, GB/s";
  std::string svg;
  svg += svg_text(kEdge, kEdge + 14, title, "font-size=\"17\" font-weight=\"600\" fill=\"#16202a\"");
  svg += svg_text(kEdge, kEdge + 34, safe_text(fmt::format("{} ({}), {}", p.name, p.hosts, p.date)),
                  "font-size=\"12\" fill=\"#4d565f\"");
  if (grid.groups.empty())
    svg += svg_text(kEdge, kBandTop, "no collective was measured", "font-size=\"13\" fill=\"#4d565f\"");
  double x = kEdge + kGroupWidth;
  for (const i64 size : grid.sizes) {
    svg += svg_text(x + (kBandCellWidth - 3) / 2, kBandTop - 6, size_text(size),
                    "font-size=\"12\" text-anchor=\"middle\" fill=\"#16202a\"");
    x += kBandCellWidth;
  }
  double y = kBandTop;
  for (const std::string& group : grid.groups) {
    svg += svg_text(kEdge, y + 16, group, "font-size=\"12\" fill=\"#16202a\"");
    x = kEdge + kGroupWidth;
    for (const i64 size : grid.sizes) {
      if (const auto found = grid.cells.find({group, size}); found != grid.cells.end())
        svg += cell_svg(x, y, *found->second, grid.colours);
      x += kBandCellWidth;
    }
    y += kBandCellHeight;
  }
  return svg_page(kEdge * 2 + kGroupWidth + kBandCellWidth * static_cast<double>(grid.sizes.size()) + 200,
                  y + kBandFoot, title, svg);
}

}  // namespace sweep::answers
