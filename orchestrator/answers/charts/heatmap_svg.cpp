#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/answers/charts/palette.h"
#include "orchestrator/answers/charts/svg.h"
#include "schema/rehearsal.h"

namespace sweep::answers {
namespace {

constexpr double kMargin = 24, kCharWidth = 6.1;  // width of a character of the 10 px layout text
// Widths of a state's 11 px words, and of the 9 px ones below them.
constexpr double kBoldWidth = 7.2, kCountWidth = 5.5;
constexpr double kLabelWidth = 7.4;                // width of the 12 px labels
constexpr double kPage = 1060, kWidestCell = 230;  // cells grow until the picture fills a page
constexpr double kBetween = 3, kMarginGap = 10,
                 kMarginHeight = 26;  // between cells; around the row and column bests
// Limits of title and question, and of the lines below.
constexpr std::size_t kTextColumns = 110, kSmallColumns = 170;
constexpr std::string_view kDark = "#16202a", kFaint = "#4d565f";

// The counts of a cell in which no trial ended ok: "2 OOM · 1 pruned".
std::string counts_of(const Cell& c) {
  std::string parts;
  for (std::size_t f = 1; f < kCellOutcomes; ++f) {
    if (c.count[f] > 0)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : " · ", c.count[f],
                           CellOutcome(f) == CellOutcome::kOom       ? "OOM"
                           : CellOutcome(f) == CellOutcome::kPending ? "to run"
                                                                     : to_string(CellOutcome(f)));
  }
  return parts;
}

// The look of cells without a value: fill or pattern, text colour, border.
struct Look {
  std::string_view fill, ink, border;
};
Look look_of(CellState state) {
  switch (state) {
    case CellState::kOom:
      return {"url(#oom)", "#7a1f1f", ""};
    case CellState::kPruned:
      return {"#e6e8eb", "#4d565f", ""};
    case CellState::kFailed:
      return {"url(#failed)", "#5b3a00", ""};
    case CellState::kPending:
      return {"#e8f1fb", "#1d4f80", "stroke=\"#5b93c7\" stroke-dasharray=\"4 3\""};
    case CellState::kMixed:
      return {"url(#mixed)", "#3d3d3d", ""};
    case CellState::kNotMeasured:
      return {"#ffffff", "#4d565f", "stroke=\"#8a939c\""};
    default:
      return {"none", "#8a939c", ""};
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

std::vector<std::string> wrapped(std::string_view raw, std::size_t columns) {
  std::vector<std::string> lines;
  std::string rest = safe_text(raw);
  while (display_width(rest) > columns) {
    const auto cut = rest.rfind(' ', columns);
    if (cut == std::string::npos || cut == 0) break;
    lines.push_back(rest.substr(0, cut));
    rest.erase(0, cut + 1);
  }
  if (!rest.empty()) lines.push_back(rest);
  return lines;
}

class Drawing {
 public:
  explicit Drawing(const Heatmap& map) : map_(map), lines_(cell_lines(map)) {
    scale_ = scale_for(map.value.unit(),
                       std::max(std::fabs(map.low.value_or(0)), std::fabs(map.high.value_or(0))));
    for (const Value& key : map.row_keys) row_names_.push_back(name_of(key));
    for (const Value& key : map.col_keys) col_names_.push_back(name_of(key));
    row_names_ = shortened(std::move(row_names_), kRowLabel);
    col_names_ = shortened(std::move(col_names_), kColLabel);
    sentences();
    measure();
  }

  std::string draw() {
    head();
    for (std::size_t r = 0; r < map_.row_keys.size(); ++r) {
      for (std::size_t c = 0; c < map_.col_keys.size(); ++c)
        cell(map_.at(r, c), left_ + cell_w_ * double(c), top_ + cell_h_ * double(r));
    }
    marginals();
    axis_labels();
    const double height = legend() + kMargin;
    return svg_page(width(), height, title_of(map_), std::string(kPatterns) + ramp() + out_);
  }

 private:
  static std::string name_of(const Value& key) {
    return key.index() == 0 ? std::string(kNotResolved) : show(key);
  }
  bool has_row_bests() const { return map_.low && map_.col_keys.size() > 1; }
  bool has_col_bests() const { return map_.low && map_.row_keys.size() > 1; }
  double cells_right() const { return left_ + cell_w_ * double(map_.col_keys.size()); }
  double cells_bottom() const { return top_ + cell_h_ * double(map_.row_keys.size()); }
  double width() const {
    return std::max(cells_right() + (has_row_bests() ? kMarginGap + side_w_ : 0) + kMargin, kPage);
  }

  // Writes the sentences between the title and the picture.
  void sentences() {
    if (map_.rehearsed) said_.push_back(std::string(kRehearsedNote) + ".");
    said_.push_back(what_is_shown(map_) + (map_.best ? " " : "") + best_words(map_));
    if (const auto text = slices_text(map_); !text.empty()) said_.push_back("Only " + text + ".");
    if (const auto text = hidden_text(map_); !text.empty()) said_.push_back(text);
    if (const auto text = mix_warning(map_); !text.empty()) said_.push_back("⚠ " + text);
    for (const auto& price : prices_shown(map_)) said_.push_back("Price of " + price + ".");
    std::string counts;
    i64 total = 0;
    for (std::size_t f = 0; f < kCellOutcomes; ++f) {
      total += map_.count[f];
      if (map_.count[f] > 0)
        counts +=
            fmt::format("{}{} {}", counts.empty() ? "" : ", ", map_.count[f],
                        CellOutcome(f) == CellOutcome::kPending ? "not run yet" : to_string(CellOutcome(f)));
    }
    said_.push_back(fmt::format(
        "{}: {}.{}", counted(total, "configuration"), counts.empty() ? "none" : counts,
        map_.low ? " In a cell: the value, its configuration, and how many of the cell's ended ok." : ""));
    std::vector<std::string> lines;
    for (const auto& sentence : said_) {
      for (auto& line : wrapped(sentence, kSmallColumns)) lines.push_back(std::move(line));
    }
    said_ = std::move(lines);
  }

  void measure() {
    std::size_t label = display_width(map_.names.of(map_.rows)), lines = 0;
    for (const auto& name : row_names_) label = std::max(label, display_width(name));
    double least = 9 * kCharWidth;
    for (const auto& name : col_names_)
      least = std::max(least, double(display_width(name)) * kLabelWidth - 8);
    for (const Cell& c : map_.cells) {
      if (!c.best) {
        const double counts = c.total() > 0 ? double(display_width(counts_of(c))) * kCountWidth : 0;
        least = std::max({least, double(display_width(words_of(c.state))) * kBoldWidth - 8, counts - 8});
        continue;
      }
      const auto text = cell_text(*c.best, lines_);
      lines = std::max(lines, text.size());
      for (const auto& line : text) least = std::max(least, double(display_width(line)) * kCharWidth);
    }
    least += 18;
    side_w_ = 74;
    left_ = kMargin + double(label) * kLabelWidth + 14;
    const double room = (kPage - left_ - kMargin - (has_row_bests() ? kMarginGap + side_w_ : 0)) /
                        double(std::max<std::size_t>(map_.col_keys.size(), 1));
    cell_w_ = std::max(least, std::min(room, kWidestCell));
    cell_h_ = 44 + 12 * double(lines);
    top_ = kMargin + 22 * double(wrapped(title_of(map_), kTextColumns).size()) +
           16 * double(wrapped(map_.question, kTextColumns).size()) + 15 * double(said_.size()) + 58;
  }

  void text(double x, double y, std::string_view words, std::string_view attributes) {
    out_ += svg_text(x, y, words, attributes);
  }
  void box(double x, double y, double w, double h, std::string_view fill, std::string_view border) {
    fmt::format_to(
        std::back_inserter(out_),
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"3\" fill=\"{}\" {}/>\n", x,
        y, w, h, fill, border);
  }

  void head() {
    double y = kMargin + 14;
    for (const std::string& line : wrapped(title_of(map_), kTextColumns))
      text(kMargin, std::exchange(y, y + 22), line, "font-size=\"18\" font-weight=\"600\" fill=\"#16202a\"");
    for (const std::string& line : wrapped(map_.question, kTextColumns))
      text(kMargin, std::exchange(y, y + 16), line, "font-size=\"12\" fill=\"#4d565f\"");
    for (const std::string& line : said_)
      text(kMargin, std::exchange(y, y + 15), line, "font-size=\"11\" fill=\"#4d565f\"");
  }

  void cell(const Cell& c, double x, double y) {
    const double w = cell_w_ - kBetween, h = cell_h_ - kBetween;
    std::string fill, ink;
    std::string_view border;
    if (c.value) {
      const Paint p = paint(map_.colours.share(*c.value));
      fill = p.fill;
      ink = p.light_text ? "#ffffff" : "#10161c";
      if (c.tied)
        border = has_winner(map_)
                     ? "class=\"best\" stroke=\"#d1007f\" stroke-width=\"3\""
                     : "class=\"tied\" stroke=\"#d1007f\" stroke-width=\"2\" stroke-dasharray=\"5 3\"";
    } else {
      const Look look = look_of(c.state);
      fill = look.fill, ink = look.ink, border = look.border;
    }
    box(x, y, w, h, fill, border);
    const auto put = [&](double dy, std::string_view words, int size, bool bold) {
      text(x + w / 2, y + dy, words,
           fmt::format("text-anchor=\"middle\" font-size=\"{}\"{} fill=\"{}\"", size,
                       bold ? " font-weight=\"600\"" : "", ink));
    };
    if (!c.value) return words(c, put, h);
    put(19, (!c.tied ? "" : has_winner(map_) ? "★ " : "≈ ") + scale_(*c.value), 14, true);
    double dy = 32;
    for (const auto& line : cell_text(*c.best, lines_)) put(std::exchange(dy, dy + 12), line, 10, false);
    put(h - 6, fmt::format("{} of {} ok", c.count[0], c.total()), 9, false);
  }

  template <class Put>
  void words(const Cell& c, const Put& put, double h) {
    put(h / 2 + (c.total() > 0 ? -1 : 4), words_of(c.state), 11, c.state != CellState::kEmpty);
    if (c.total() > 0) put(h / 2 + 12, counts_of(c), 9, false);
  }

  // The best of each row at its end, and of each column below it.
  void marginals() {
    static constexpr std::string_view kHead =
        "text-anchor=\"middle\" font-size=\"10\" fill=\"#4d565f\" class=\"marginal\"";
    const auto put = [&](std::optional<std::size_t> at, double x, double y, double w, double h) {
      if (!at) return;
      const double value = *map_.cells[*at].value;
      const Paint p = paint(map_.colours.share(value));
      box(x, y, w, h, p.fill, "class=\"marginal\"");
      text(x + w / 2, y + h / 2 + 4, scale_(value),
           fmt::format("text-anchor=\"middle\" font-size=\"11\" fill=\"{}\"",
                       p.light_text ? "#ffffff" : "#10161c"));
    };
    if (has_row_bests()) {
      const double x = cells_right() + kMarginGap;
      text(x + (side_w_ - kBetween) / 2, top_ - 10, "row best", kHead);
      for (std::size_t r = 0; r < map_.row_keys.size(); ++r)
        put(map_.best_of_row[r], x, top_ + cell_h_ * double(r), side_w_ - kBetween, cell_h_ - kBetween);
    }
    if (has_col_bests()) {
      const double y = cells_bottom() + kMarginGap - kBetween;
      text(left_ - 10, y + 16, "column best", "text-anchor=\"end\" font-size=\"10\" fill=\"#4d565f\"");
      for (std::size_t c = 0; c < map_.col_keys.size(); ++c)
        put(map_.best_of_col[c], left_ + cell_w_ * double(c), y, cell_w_ - kBetween,
            kMarginHeight - kBetween);
    }
  }

  void axis_labels() {
    text((left_ + cells_right()) / 2, top_ - 30, map_.names.with_unit(map_.cols, scale_of(map_.cols)),
         "text-anchor=\"middle\" font-size=\"12\" font-weight=\"600\" fill=\"#16202a\"");
    text(left_ - 10, top_ - 10, map_.names.of(map_.rows),
         "text-anchor=\"end\" font-size=\"12\" font-weight=\"600\" fill=\"#16202a\"");
    for (std::size_t c = 0; c < col_names_.size(); ++c) {
      text(left_ + cell_w_ * (double(c) + 0.5) - 1.5, top_ - 10, col_names_[c],
           "text-anchor=\"middle\" font-size=\"12\" fill=\"#16202a\"");
    }
    for (std::size_t r = 0; r < row_names_.size(); ++r) {
      text(left_ - 10, top_ + cell_h_ * (double(r) + 0.5) + 2, row_names_[r],
           "text-anchor=\"end\" font-size=\"12\" fill=\"#16202a\"");
    }
  }
  static Scale scale_of(const Field& field) { return {1, std::string(field.unit()), false}; }

  // Answers where it ends.
  double legend() {
    const double y = cells_bottom() + (has_col_bests() ? kMarginGap + kMarginHeight : 0) + 20;
    const double next = map_.low ? legend_of_colours(y) : kMargin;
    return std::max(y + (map_.low ? 44 : 0), legend_of_states(next, y));
  }

  double legend_of_colours(double y) {
    const double x = kMargin, w = 260;
    const Colours& of = map_.colours;
    fmt::format_to(
        std::back_inserter(out_),
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"12\" rx=\"2\" fill=\"url(#ramp)\"/>\n", x,
        y, w);
    const std::string low = (of.below ? "≤ " : "") + scale_(of.low),
                      high = (of.above ? "≥ " : "") + scale_(of.high);
    const std::string mid = scale_(of.log ? std::sqrt(of.low * of.high) : (of.low + of.high) / 2);
    const std::string ends[] = {of.lower_is_better ? high : low, mid, of.lower_is_better ? low : high};
    static constexpr std::string_view kAnchor[] = {"start", "middle", "end"};
    for (int i = 0; i < 3; ++i) {
      text(x + w / 2 * i, y + 26, ends[i],
           fmt::format("text-anchor=\"{}\" font-size=\"10\" fill=\"{}\"", kAnchor[i], kDark));
    }
    text(x, y + 42,
         fmt::format("{}; brighter is {}{}{}", map_.names.with_unit(map_.value, scale_),
                     find_column(map_.value.name())->better == Better::kNone ? "more" : "better",
                     of.log ? "; logarithmic" : "", of.below || of.above ? "; outliers share an end" : ""),
         fmt::format("font-size=\"10\" fill=\"{}\"", kFaint));
    return x + w + 90;
  }

  double legend_of_states(double x, double y) {
    double sy = y;
    for (const auto& [state, key, word, meaning] : kStateWords) {
      if (std::none_of(map_.cells.begin(), map_.cells.end(),
                       [&, shown = state](const Cell& c) { return c.state == shown; }))
        continue;
      const Look look = look_of(state);
      box(x, sy, 22, 13, look.fill, look.border);
      if (state == CellState::kEmpty)
        text(x + 11, sy + 10, "–",
             fmt::format("text-anchor=\"middle\" font-size=\"10\" fill=\"{}\"", look.ink));
      text(x + 28, sy + 10, meaning, fmt::format("font-size=\"10\" fill=\"{}\"", kDark));
      sy += 18;
      if (sy > y + 40) sy = y, x += 220;
    }
    return y + 48;
  }

  const Heatmap& map_;
  CellLines lines_;
  Scale scale_;
  std::vector<std::string> row_names_, col_names_, said_;
  double cell_w_ = 0, cell_h_ = 0, side_w_ = 0, left_ = 0, top_ = 0;
  std::string out_;
};

}  // namespace

std::string to_svg(const Heatmap& map) {
  return Drawing(map).draw();
}

}  // namespace sweep::answers
