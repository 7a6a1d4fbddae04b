#include "orchestrator/answers/charts/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "orchestrator/answers/charts/svg.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/names.h"

namespace sweep::answers {
namespace {

constexpr std::array<std::string_view, 7> kInks = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                   "#56b4e9", "#b58900", "#333333"};
constexpr std::array<std::string_view, 7> kDashes = {"", "7 3", "2 3", "9 3 2 3", "1 2", "5 2", "12 4"};
constexpr std::string_view kText = "#16202a", kSoft = "#4d565f", kGrid = "#dde2e7";
constexpr double kLeft = 70, kRight = 24, kTop = 14, kBottom = 48, kLegendRow = 18;

// Maps values to places on the paper.
class Span {
 public:
  Span(const ChartAxis& axis, double low, double high, double from, double to)
      : log_(axis.log2), low_(of(low)), high_(of(high)), from_(from), to_(to) {}
  double at(double value) const {
    return high_ > low_ ? from_ + (of(value) - low_) / (high_ - low_) * (to_ - from_) : (from_ + to_) / 2;
  }

 private:
  double of(double value) const { return log_ ? std::log2(std::max(value, 1e-12)) : value; }
  bool log_;
  double low_, high_, from_, to_;
};

std::string open_svg(double width, double height, std::string_view title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" "
      "role=\"img\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\"><title>{2}</title>\n",
      width, height, escape_xml(title));
}

std::string nothing_drawn() {
  return fmt::format(
      "<text x=\"10.0\" y=\"34.0\" font-size=\"13\" fill=\"{}\">nothing measured to draw</text>\n</svg>\n",
      kSoft);
}

// A path of its own for each series: circle, square, triangle, diamond, then again.
std::string mark_path(std::size_t kind, double x, double y, double r) {
  switch (kind % 4) {
    case 1:
      return fmt::format("M{:.1f} {:.1f}h{:.1f}v{:.1f}h-{:.1f}z", x - r, y - r, 2 * r, 2 * r, 2 * r);
    case 2:
      return fmt::format("M{:.1f} {:.1f}l{:.1f} {:.1f}h-{:.1f}z", x, y - r * 1.2, r * 1.15, r * 2.1, r * 2.3);
    case 3:
      return fmt::format("M{:.1f} {:.1f}l{:.1f} {:.1f}l-{:.1f} {:.1f}l-{:.1f} -{:.1f}z", x, y - r * 1.3,
                         r * 1.3, r * 1.3, r * 1.3, r * 1.3, r * 1.3, r * 1.3);
    default:
      return fmt::format("M{:.1f} {:.1f}a{r:.1f} {r:.1f} 0 1 0 {d:.1f} 0a{r:.1f} {r:.1f} 0 1 0 -{d:.1f} 0z",
                         x - r, y, fmt::arg("r", r), fmt::arg("d", 2 * r));
  }
}

std::string star_path(double x, double y, double r) {
  std::string out;
  for (int i = 0; i < 10; ++i) {
    const double angle = M_PI * (i / 5.0 - 0.5), length = i % 2 ? r * 0.45 : r;
    out += fmt::format("{}{:.1f} {:.1f}", i ? "L" : "M", x + length * std::cos(angle),
                       y + length * std::sin(angle));
  }
  return out + "z";
}

struct Ends {
  double low = 0, high = 1;
  bool any = false;
  void take(double v) {
    if (!std::isfinite(v)) return;
    low = any ? std::min(low, v) : v, high = any ? std::max(high, v) : v, any = true;
  }
};

class Plot {
 public:
  explicit Plot(const Chart& chart) : chart_(chart) {
    Ends x, y;
    for (const auto& series : chart.series) {
      for (const auto& p : series.points) x.take(p.x), y.take(p.y);
    }
    empty_ = !x.any;
    for (const auto& line : chart.lines) (line.vertical ? x : y).take(line.at);
    set_ends(x, chart.x), set_ends(y, chart.y);
    x_ = x, y_ = y;
    for (const auto& series : chart.series) named_ += series.name.empty() ? 0 : 1;
    for (const auto& series : chart.series)
      if (kNameWidth * double(display_width(series.name)) + kMarkWidth > legend_width() / 2) per_row_ = 1;
    rows_ = named_ > 1 ? (named_ + per_row_ - 1) / per_row_ : 0;
    height_ = chart.height + (rows_ > 0 ? 10 + double(rows_) * kLegendRow : 0);
    floor_ = chart.height - kBottom;
  }

  std::string draw() {
    out_ = open_svg(chart_.width, empty_ ? 60 : height_, chart_.title);
    if (empty_) {
      return out_ + nothing_drawn();
    }
    const Span sx(chart_.x, x_.low, x_.high, kLeft + 8, chart_.width - kRight),
        sy(chart_.y, y_.low, y_.high, floor_, kTop + 8);
    axes(sx, sy);
    for (const bool pale : {true, false}) {
      for (std::size_t i = 0; i < chart_.series.size(); ++i) {
        if (chart_.series[i].pale == pale) draw_series(chart_.series[i], ink_of(i), sx, sy);
      }
    }
    for (const auto& line : chart_.lines) across(line, sx, sy);
    for (const auto& line : chart_.lines) name_line(line, sx, sy);  // no line runs through a name
    legend();
    return std::move(out_) + "</svg>\n";
  }

 private:
  static constexpr double kNameWidth = 7.2, kMarkWidth = 42;  // a column of a name, the line before it

  double legend_width() const { return chart_.width - kLeft - kRight; }

  static void set_ends(Ends& ends, const ChartAxis& axis) {
    if (!ends.any) return;
    if (!axis.log2) {
      const double room =
          ends.high > ends.low ? (ends.high - ends.low) * 0.05 : std::max(std::fabs(ends.high) * 0.1, 1e-9);
      ends.low -= room, ends.high += room;
    } else if (ends.low == ends.high) {
      ends.low /= 1.5, ends.high *= 1.5;
    }
    if (axis.low) ends.low = std::min(*axis.low, ends.high);
    if (axis.high) ends.high = std::max(*axis.high, ends.high);
  }

  // Pale series take no ink from the others.
  std::size_t ink_of(std::size_t series) const {
    return std::size_t(std::count_if(chart_.series.begin(), chart_.series.begin() + std::ptrdiff_t(series),
                                     [](const ChartSeries& s) { return !s.pale; }));
  }

  static std::string tick_text(const ChartAxis& axis, double value) {
    const double shown = value * axis.factor;
    if (std::fabs(shown) < 1e-12) return "0";
    return axis.suffix                                            ? si(shown)
           : shown == std::round(shown) && std::fabs(shown) < 1e6 ? fmt::format("{:.0f}", shown)
                                                                  : significant(shown);
  }

  void axes(const Span& sx, const Span& sy) {
    const auto ticks = [](const ChartAxis& axis, const Ends& ends, int count) {
      std::vector<double> out = axis.ticks;
      if (out.empty()) {
        for (const double t : round_ticks(ends.low * axis.factor, ends.high * axis.factor, count))
          out.push_back(t / axis.factor);
      }
      std::erase_if(out, [&](double t) { return t < ends.low || t > ends.high; });
      return out;
    };
    const std::string small = fmt::format("font-size=\"11\" fill=\"{}\"", kText);
    for (const double t : ticks(chart_.y, y_, 5)) {
      fmt::format_to(std::back_inserter(out_), "<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"{}\"/>\n", kLeft,
                     sy.at(t), chart_.width - kRight, kGrid);
      out_ += svg_text(kLeft - 8, sy.at(t) + 4, tick_text(chart_.y, t), small + " text-anchor=\"end\"");
    }
    double last = -1e9;
    for (const double t : ticks(chart_.x, x_, 7)) {
      const double x = sx.at(t);
      fmt::format_to(std::back_inserter(out_), "<path d=\"M{:.1f} {:.1f}v5\" stroke=\"{}\"/>\n", x, floor_,
                     kSoft);
      if (x - last < 30) continue;  // labels must not run into each other
      out_ += svg_text(x, floor_ + 18, tick_text(chart_.x, t), small + " text-anchor=\"middle\"");
      last = x;
    }
    fmt::format_to(std::back_inserter(out_), "<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"{}\"/>\n", kLeft,
                   floor_, chart_.width - kRight, kSoft);
    const std::string name = fmt::format("font-size=\"12\" fill=\"{}\" text-anchor=\"middle\"", kSoft);
    out_ += svg_text((kLeft + chart_.width - kRight) / 2, floor_ + 38, chart_.x.name, name);
    out_ +=
        svg_text(0, 0, chart_.y.name,
                 name + fmt::format(" transform=\"translate(16 {:.1f}) rotate(-90)\"", (kTop + floor_) / 2));
  }

  void draw_series(const ChartSeries& series, std::size_t number, const Span& sx, const Span& sy) {
    const std::string_view ink = series.pale ? "#6b7785" : kInks[number % kInks.size()];
    if (series.line && series.points.size() > 1) {
      std::string path;
      for (const auto& p : series.points)
        if (p.mark != "cross")
          path += series.step && !path.empty()
                      ? fmt::format("H{:.1f}V{:.1f}", sx.at(p.x), sy.at(p.y))
                      : fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", sx.at(p.x), sy.at(p.y));
      fmt::format_to(
          std::back_inserter(out_),
          "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{}\"/>\n", path,
          ink, kDashes[number % kDashes.size()]);
    }
    for (const auto& p : series.points) draw_point(p, series.pale, number, ink, sx.at(p.x), sy.at(p.y));
  }

  void draw_point(const ChartPoint& p, bool pale, std::size_t number, std::string_view ink, double x,
                  double y) {
    std::string shape;
    if (p.mark == "cross")
      shape = fmt::format(
          "<path class=\"oom\" d=\"M{:.1f} {:.1f}l10 10m0 -10l-10 10\" stroke=\"{}\" stroke-width=\"2.5\" "
          "fill=\"none\"",
          x - 5, y - 5, ink);
    else if (p.mark == "star")
      shape = fmt::format("<path class=\"star\" d=\"{}\" fill=\"{}\" stroke=\"#ffffff\"", star_path(x, y, 10),
                          ink);
    else
      shape = fmt::format("<path d=\"{}\" fill=\"{}\"{}", mark_path(pale ? 0 : number, x, y, pale ? 3 : 4),
                          ink, pale ? " fill-opacity=\"0.55\"" : " stroke=\"#ffffff\"");
    out_ += shape;
    out_ += p.hover.empty() ? "/>\n" : fmt::format("><title>{}</title></path>\n", escape_xml(p.hover));
  }

  void across(const ChartLine& line, const Span& sx, const Span& sy) {
    const std::string path =
        line.vertical ? fmt::format("M{:.1f} {:.1f}V{:.1f}", sx.at(line.at), kTop, floor_)
                      : fmt::format("M{:.1f} {:.1f}H{:.1f}", kLeft, sy.at(line.at), chart_.width - kRight);
    fmt::format_to(std::back_inserter(out_),
                   "<path d=\"{}\" stroke=\"{}\" stroke-width=\"1.5\" stroke-dasharray=\"5 4\"/>\n", path,
                   kText);
  }

  // Draws the label on a background, left of the line if it fits.
  void name_line(const ChartLine& line, const Span& sx, const Span& sy) {
    if (line.name.empty()) return;
    const double wide = 6.4 * double(display_width(line.name)) + 8;
    double x = line.vertical ? sx.at(line.at) - 6 : chart_.width - kRight - 4, y = sy.at(line.at) - 5;
    if (line.vertical) {
      y = kTop + 11 + 17 * double(said_++);
      if (x - wide < kLeft) x += wide + 12;
    }
    fmt::format_to(std::back_inserter(out_),
                   "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"15\" fill=\"#ffffff\"/>\n",
                   x - wide + 4, y - 11, wide);
    out_ += svg_text(x, y, line.name, fmt::format("font-size=\"11\" fill=\"{}\" text-anchor=\"end\"", kText));
  }

  void legend() {
    if (rows_ == 0) return;
    std::vector<std::string> names;
    for (const ChartSeries& series : chart_.series) {
      if (!series.name.empty()) names.push_back(safe_text(series.name));
    }
    const double room = legend_width() / double(per_row_) - kMarkWidth;
    names = shortened(std::move(names), std::size_t(room / kNameWidth));
    std::size_t at = 0;
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      const ChartSeries& series = chart_.series[i];
      if (series.name.empty()) continue;
      const std::size_t number = ink_of(i);
      const std::string_view ink = series.pale ? "#6b7785" : kInks[number % kInks.size()];
      const double wide = legend_width() / double(per_row_);
      const double x = kLeft + wide * double(at % per_row_),
                   y = chart_.height + 12 + double(at / per_row_) * kLegendRow;
      if (series.line)
        fmt::format_to(
            std::back_inserter(out_),
            "<path d=\"M{:.1f} {:.1f}h28\" stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{}\"/>\n", x,
            y, ink, kDashes[number % kDashes.size()]);
      fmt::format_to(std::back_inserter(out_), "<path d=\"{}\" fill=\"{}\"/>\n",
                     mark_path(series.pale ? 0 : number, x + 14, y, 4), ink);
      out_ += svg_text(x + 34, y + 4, names[at], fmt::format("font-size=\"11\" fill=\"{}\"", kText));
      ++at;
    }
  }

  const Chart& chart_;
  Ends x_, y_;
  bool empty_ = false;
  std::size_t named_ = 0, rows_ = 0, per_row_ = 2;  // sizes of the legend
  int said_ = 0;
  double height_ = 0, floor_ = 0;
  std::string out_;
};

// How wide the labels of bars are drawn.
double room_for(const StackedBars& bars) {
  double out = 60;
  for (const auto& bar : bars.bars)
    out = std::max(out, 7.2 * double(display_width(safe_text(bar.label))) + 16);
  return out;
}

}  // namespace

std::vector<double> round_ticks(double low, double high, int count) {
  if (!(high > low) || count < 1 || !std::isfinite(high - low)) return {low};
  const double rough = (high - low) / count, power = std::pow(10, std::floor(std::log10(rough)));
  const double lead = rough / power;
  const double step = power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
  std::vector<double> out;
  for (double i = std::ceil(low / step); i * step <= high + step * 1e-9; ++i) out.push_back(i * step);
  return out;
}

std::string to_svg(const Chart& chart) {
  return Plot(chart).draw();
}

namespace {

constexpr std::array<std::string_view, 7> kPartFills = {"#3b6ea5", "#8fb8de", "#e0a458", "#c0504d",
                                                        "#8a6fb0", "#c9ced4", "#6b8e4e"};

// A line below the bars: a square of its fill and the name of each part that a bar has.
std::string legend_of(const StackedBars& bars, double x, double y) {
  std::string out;
  for (std::size_t i = 0; i < bars.names.size(); ++i) {
    const auto has = [i](const StackedBar& bar) { return i < bar.parts.size() && bar.parts[i] > 0; };
    if (std::none_of(bars.bars.begin(), bars.bars.end(), has)) continue;
    fmt::format_to(std::back_inserter(out),
                   "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n", x, y + 4,
                   kPartFills[i % kPartFills.size()]);
    out += svg_text(x + 17, y + 14, bars.names[i], fmt::format("font-size=\"11\" fill=\"{}\"", kText));
    x += 30 + 6.4 * double(display_width(bars.names[i]));
  }
  return out;
}

}  // namespace

std::string to_svg(const StackedBars& bars) {
  constexpr double kBar = 20, kLabelLine = 16, kLetter = 7;
  const double end = kLetter * double(8 + display_width(bars.unit));  // room for the sum behind a bar
  const double room = room_for(bars);
  const bool above = room > bars.width * 0.4;  // long labels stand above their bars: none is ever cut
  const double label_width = above ? 0 : room, step = above ? 30 + kLabelLine : 30;
  double most = 0;
  for (const auto& bar : bars.bars) {
    double sum = 0;
    for (const double part : bar.parts) sum += part;
    most = std::max(most, sum);
  }
  std::string out = open_svg(std::max(bars.width, above ? room : 0),
                             most > 0 ? kTop + step * double(bars.bars.size()) + 30 : 60, bars.title);
  if (!(most > 0)) return out + nothing_drawn();
  const double per = (bars.width - label_width - end) / most;
  double y = kTop;
  for (const auto& bar : bars.bars) {
    out +=
        svg_text(above ? 0 : label_width - 8, y + 14, safe_text(bar.label),
                 fmt::format("font-size=\"11\"{} fill=\"{}\"", above ? "" : " text-anchor=\"end\"", kText));
    if (above) y += kLabelLine;
    double x = label_width, sum = 0;
    for (std::size_t i = 0; i < bar.parts.size(); ++i) {
      const double wide = bar.parts[i] * per;
      sum += bar.parts[i];
      if (wide <= 0) continue;
      fmt::format_to(std::back_inserter(out),
                     "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\" "
                     "stroke=\"#ffffff\"><title>{}: {} {}</title></rect>\n",
                     x, y, wide, kBar, kPartFills[i % kPartFills.size()], escape_xml(bars.names[i]),
                     significant(bar.parts[i]), escape_xml(bars.unit));
      x += wide;
    }
    out += svg_text(x + 6, y + 14, fmt::format("{} {}", significant(sum), bars.unit),
                    fmt::format("font-size=\"11\" fill=\"{}\"", kSoft));
    y += 30;
  }
  return out + legend_of(bars, label_width, y) + "</svg>\n";
}

}  // namespace sweep::answers
