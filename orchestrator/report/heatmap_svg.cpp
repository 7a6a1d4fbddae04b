#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "orchestrator/report/heatmap.h"
#include "orchestrator/report/palette.h"

namespace sweep::report {
namespace {

constexpr double kMargin = 24, kCharWidth = 6.1;       // of the 10 px layout text
constexpr double kBoldWidth = 7.2, kCountWidth = 5.5;  // of a state's 11 px words, and the 9 px below them
constexpr double kNarrowest = 780;                     // room for the lines at the top and the legend
constexpr std::size_t kTextColumns = 110;              // of title and question, per line

// Of a cell where none ended ok: "2 OOM · 1 pruned".
std::string mixed_counts(const Cell& c) {
  std::string parts;
  for (std::size_t f = 1; f < kFates; ++f) {
    if (c.count[f] > 0)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : " · ", c.count[f],
                           Fate(f) == Fate::kOom ? "OOM" : to_string(Fate(f)));
  }
  return parts;
}

// The look of cells without a value: fill or pattern, text colour, words.
struct Look {
  std::string_view fill, ink, words;
};
Look look_of(CellState state) {
  switch (state) {
    case CellState::kOom:
      return {"url(#oom)", "#7a1f1f", "OOM"};
    case CellState::kPruned:
      return {"#e6e8eb", "#4d565f", "pruned"};
    case CellState::kFailed:
      return {"url(#failed)", "#5b3a00", "failed"};
    case CellState::kPending:
      return {"#ffffff", "#4d565f", "not run yet"};
    case CellState::kMixed:
      return {"url(#mixed)", "#3d3d3d", "none ok"};
    case CellState::kNotMeasured:
      return {"#ffffff", "#4d565f", "not measured"};
    default:
      return {"none", "#8a939c", "–"};
  }
}

constexpr std::string_view kPatterns = R"svg(<defs>
<pattern id="oom" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="7" height="7" fill="#fbe9e7"/><rect width="2" height="7" fill="#eeb9b3"/></pattern>
<pattern id="failed" width="7" height="7" patternUnits="userSpaceOnUse"><rect width="7" height="7" fill="#fff3dc"/><circle cx="3.5" cy="3.5" r="1.2" fill="#e3b35f"/></pattern>
<pattern id="mixed" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" height="8" fill="#f1efec"/><rect width="8" height="1" fill="#e0dbd3"/></pattern>
</defs>
)svg";

std::string ramp() {
  std::string out = "<defs><linearGradient id=\"ramp\">";
  for (std::size_t i = 0; i < kViridis.size(); ++i)
    out += fmt::format("<stop offset=\"{:.4g}\" stop-color=\"{}\"/>", double(i) / double(kViridis.size() - 1),
                       kViridis[i]);
  return out + "</linearGradient></defs>\n";
}

std::vector<std::string> wrapped(std::string_view raw) {
  std::vector<std::string> lines;
  std::string rest = safe_text(raw);
  while (display_width(rest) > kTextColumns) {
    const auto cut = rest.rfind(' ', kTextColumns);
    if (cut == std::string::npos || cut == 0) break;
    lines.push_back(rest.substr(0, cut));
    rest.erase(0, cut + 1);
  }
  if (!rest.empty()) lines.push_back(rest);
  return lines;
}

class Drawing {
 public:
  explicit Drawing(const Heatmap& map) : map_(map), axes_(layout_axes(map)) {
    scale_ = scale_for(map.value.unit(),
                       std::max(std::fabs(map.low.value_or(0)), std::fabs(map.high.value_or(0))));
    measure();
  }

  std::string draw() {
    head();
    for (std::size_t r = 0; r < map_.row_keys.size(); ++r) {
      for (std::size_t c = 0; c < map_.col_keys.size(); ++c)
        cell(map_.at(r, c), left_ + cell_w_ * double(c), top_ + cell_h_ * double(r));
    }
    axis_labels();
    legend();
    const double height = top_ + cell_h_ * double(map_.row_keys.size()) + 92;
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
               "{0:.0f} {1:.0f}\" "
               "role=\"img\" font-family=\"system-ui, 'Segoe UI', 'Liberation Sans', Arial, sans-serif\">\n"
               "<title>{2}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
               width(), height, escape_xml(title_of(map_))) +
           std::string(kPatterns) + ramp() + out_ + "</svg>\n";
  }

 private:
  double width() const {
    const double cells = left_ + cell_w_ * double(map_.col_keys.size()) + kMargin;
    return std::max(cells, kNarrowest);
  }

  void measure() {
    std::size_t label = display_width(map_.rows.name()), text = 9;
    for (const Value& key : map_.row_keys) label = std::max(label, display_width(fit(show(key), 28)));
    for (const Value& key : map_.col_keys) text = std::max(text, display_width(fit(show(key), 20)));
    for (const Cell& c : map_.cells) {
      if (c.best)
        text = std::max({text, layout(*c.best, axes_.first).size(), layout(*c.best, axes_.second).size()});
    }
    cell_w_ = double(text) * kCharWidth + 18;
    for (const Cell& c : map_.cells) {  // words instead of a value have sizes of their own
      if (c.value) continue;
      const double state = double(look_of(c.state).words.size()) * kBoldWidth;
      const double counts = c.state == CellState::kMixed ? double(mixed_counts(c).size()) * kCountWidth : 0;
      cell_w_ = std::max(cell_w_, std::max(state, counts) + 10);
    }
    cell_h_ = 44 + 12 * double(!axes_.first.empty()) + 12 * double(!axes_.second.empty()) - 6;
    left_ = kMargin + double(label) * 7.4 + 14;
    top_ = kMargin + 22 * double(wrapped(title_of(map_)).size()) +
           16 * double(wrapped(map_.question).size()) + 81;
  }

  void text(double x, double y, std::string_view words, std::string_view attributes) {
    fmt::format_to(std::back_inserter(out_), "<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y,
                   attributes, escape_xml(words));
  }

  void head() {
    double y = kMargin + 14;
    for (const std::string& line : wrapped(title_of(map_)))
      text(kMargin, std::exchange(y, y + 22), line, "font-size=\"18\" font-weight=\"600\" fill=\"#16202a\"");
    for (const std::string& line : wrapped(map_.question))
      text(kMargin, std::exchange(y, y + 16), line, "font-size=\"12\" fill=\"#4d565f\"");
    std::string counts;
    i64 total = 0;
    for (std::size_t f = 0; f < kFates; ++f) {
      total += map_.count[f];
      if (map_.count[f] > 0)
        counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", map_.count[f], to_string(Fate(f)));
    }
    static constexpr std::string_view kSmall = "font-size=\"11\" fill=\"#4d565f\"";
    text(kMargin, y,
         fmt::format("{}{}{} of the configuration with the {} {} in each cell.", map_.value.name(),
                     scale_.unit.empty() ? "" : " in ", scale_.unit,
                     lower_is_better(map_.objective.name()) ? "lowest" : "highest", map_.objective.name()),
         kSmall);
    text(kMargin, y + 15,
         fmt::format(
             "{} configurations: {}.{}", total, counts.empty() ? "none" : counts,
             map_.low ? " Below each value: its layout, and how many of the cell's configurations ran." : ""),
         kSmall);
  }

  void cell(const Cell& c, double x, double y) {
    const double w = cell_w_ - 3, h = cell_h_ - 3;
    std::string fill, ink;
    if (c.value) {
      const Paint p = paint(share_of(*c.value, *map_.low, *map_.high, lower_is_better(map_.value.name())));
      fill = p.fill;
      ink = p.light_text ? "#ffffff" : "#10161c";
    } else {
      const Look look = look_of(c.state);
      fill = look.fill;
      ink = look.ink;
    }
    const bool outline =
        c.state == CellState::kEmpty || c.state == CellState::kPending || c.state == CellState::kNotMeasured;
    fmt::format_to(
        std::back_inserter(out_),
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"3\" fill=\"{}\"{}/>\n", x, y,
        w, h, fill, outline ? " stroke=\"#c3cad1\" stroke-dasharray=\"3 3\"" : "");
    const auto put = [&](double dy, std::string_view words, int size, bool bold) {
      text(x + w / 2, y + dy, words,
           fmt::format("text-anchor=\"middle\" font-size=\"{}\"{} fill=\"{}\"", size,
                       bold ? " font-weight=\"600\"" : "", ink));
    };
    if (!c.value) return words(c, put, h);
    put(17, scale_(*c.value), 14, true);
    double dy = 30;
    for (const auto* fields : {&axes_.first, &axes_.second}) {
      if (!fields->empty()) put(std::exchange(dy, dy + 12), layout(*c.best, *fields), 10, false);
    }
    put(h - 5, fmt::format("{} of {}", c.count[0], c.total()), 9, false);
  }

  template <class Put>
  void words(const Cell& c, const Put& put, double h) {
    put(h / 2 + (c.total() > 0 ? -1 : 4), look_of(c.state).words, 11, c.state != CellState::kEmpty);
    if (c.total() == 0) return;
    if (c.state != CellState::kMixed) return put(h / 2 + 12, fmt::format("{}", c.total()), 10, false);
    put(h / 2 + 12, mixed_counts(c), 9, false);
  }

  void axis_labels() {
    const double mid = left_ + cell_w_ * double(map_.col_keys.size()) / 2;
    text(mid, top_ - 30, map_.cols.name(),
         "text-anchor=\"middle\" font-size=\"12\" font-weight=\"600\" fill=\"#16202a\"");
    text(left_ - 10, top_ - 10, map_.rows.name(),
         "text-anchor=\"end\" font-size=\"12\" font-weight=\"600\" fill=\"#16202a\"");
    for (std::size_t c = 0; c < map_.col_keys.size(); ++c) {
      text(left_ + cell_w_ * (double(c) + 0.5) - 1.5, top_ - 10, fit(show(map_.col_keys[c]), 20),
           "text-anchor=\"middle\" font-size=\"12\" fill=\"#16202a\"");
    }
    for (std::size_t r = 0; r < map_.row_keys.size(); ++r) {
      text(left_ - 10, top_ + cell_h_ * (double(r) + 0.5) + 2, fit(show(map_.row_keys[r]), 28),
           "text-anchor=\"end\" font-size=\"12\" fill=\"#16202a\"");
    }
  }

  void legend() {
    const double y = top_ + cell_h_ * double(map_.row_keys.size()) + 24, x = kMargin, w = 240;
    double next = x;
    if (map_.low) {
      const bool lower = lower_is_better(map_.value.name());
      fmt::format_to(
          std::back_inserter(out_),
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"12\" rx=\"2\" fill=\"url(#ramp)\"/>\n",
          x, y, w);
      const bool log = is_logarithmic(*map_.low, *map_.high);
      const double mid = log ? std::sqrt(*map_.low * *map_.high) : (*map_.low + *map_.high) / 2;
      const double ends[] = {lower ? *map_.high : *map_.low, mid, lower ? *map_.low : *map_.high};
      static constexpr std::string_view kAnchor[] = {"start", "middle", "end"};
      for (int i = 0; i < 3; ++i) {
        text(x + w / 2 * i, y + 26, scale_(ends[i]),
             fmt::format("text-anchor=\"{}\" font-size=\"10\" fill=\"#16202a\"", kAnchor[i]));
      }
      text(x, y + 42,
           fmt::format("{}{}{}; brighter is better{}", map_.value.name(), scale_.unit.empty() ? "" : ", ",
                       scale_.unit, log ? "; logarithmic" : ""),
           "font-size=\"10\" fill=\"#4d565f\"");
      next = x + w + 28;
    }
    static constexpr CellState kShown[] = {CellState::kOom,   CellState::kPruned,  CellState::kFailed,
                                           CellState::kMixed, CellState::kPending, CellState::kNotMeasured,
                                           CellState::kEmpty};
    double sy = y;
    for (const CellState state : kShown) {
      if (std::none_of(map_.cells.begin(), map_.cells.end(), [&](const Cell& c) { return c.state == state; }))
        continue;
      const Look look = look_of(state);
      const std::string_view meaning = state == CellState::kEmpty   ? "no such configuration"
                                       : state == CellState::kMixed ? "none ok, several reasons"
                                                                    : look.words;
      fmt::format_to(std::back_inserter(out_),
                     "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"20\" height=\"12\" rx=\"2\" fill=\"{}\" "
                     "stroke=\"#c3cad1\"/>\n",
                     next, sy, look.fill);
      text(next + 26, sy + 10, meaning, "font-size=\"10\" fill=\"#16202a\"");
      sy += 17;
      if (sy > y + 40) {
        sy = y;
        next += 160;
      }
    }
  }

  const Heatmap& map_;
  LayoutAxes axes_;
  Scale scale_;
  double cell_w_ = 0, cell_h_ = 0, left_ = 0, top_ = 0;
  std::string out_;
};

}  // namespace

std::string to_svg(const Heatmap& map) {
  return Drawing(map).draw();
}

}  // namespace sweep::report
