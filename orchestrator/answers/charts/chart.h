// Chart: one small chart as inline SVG: lines and points over two axes, or stacked bars. The colours differ
// for every kind of colour blindness (Okabe and Ito 2008), and each series has its own mark and dash, for
// print without colour. Without points the chart says that there are none.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace sweep::answers {

struct ChartPoint {
  double x = 0, y = 0;
  std::string hover;  // shown on hover; any text
  std::string mark;   // "" the mark of its series, "star", "cross", "dot": small and pale
};

struct ChartSeries {
  std::string name;  // any text; empty: not in the legend
  std::vector<ChartPoint> points;
  bool line = true;
  bool pale = false;  // background: many points, drawn first
  bool step = false;  // the line keeps its height up to the next point
};

struct ChartLine {  // a vertical or horizontal line across the chart
  double at = 0;
  std::string name;
  bool vertical = true;
};

struct ChartAxis {
  std::string name;  // name with its unit
  bool log2 = false;
  std::vector<double> ticks = {};             // empty: chosen
  std::optional<double> low = {}, high = {};  // forced ends
  double factor = 1;                          // ticks show value x factor
  bool suffix = false;                        // 12.3k
};

struct Chart {
  std::string title;  // any text, for those who cannot see the chart
  ChartAxis x, y;
  std::vector<ChartSeries> series;
  std::vector<ChartLine> lines;
  double width = 960, height = 340;
};
std::string to_svg(const Chart&);

struct StackedBar {
  std::string label;          // any text
  std::vector<double> parts;  // 0 or more each; as many as there are names
};
struct StackedBars {
  std::string title;
  std::string unit;
  std::vector<std::string> names;
  std::vector<StackedBar> bars;
  double width = 960;
};
std::string to_svg(const StackedBars&);

// Round numbers that span low to high: 1, 2 or 5 times a power of ten apart, about `count` of them.
std::vector<double> round_ticks(double low, double high, int count);

}  // namespace sweep::answers
