#include "orchestrator/answers/pages/compare_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/pages/page_frame.h"
#include "orchestrator/answers/pages/report_parts.h"
#include "orchestrator/answers/pages/vega_charts.h"
#include "orchestrator/answers/statistics/time_parts.h"
#include "schema/rehearsal.h"

namespace sweep::answers {
namespace {

constexpr std::size_t kPairsDrawn = 8;

// The beginning of an id: commands take it, and heads have room for it.
std::string brief(const std::string& id) {
  return id.substr(0, 8);
}

void add_bar(SpanChart& chart, const std::string& name, const ResultRow& row) {
  const auto split = time_parts(row.metrics, row.trial);
  if (!split || row.outcome != Outcome::kOk) return;
  double from = 0;
  for (std::size_t kind = 0; kind < split->size(); ++kind) {
    const double to = from + (*split)[kind];
    chart.spans.push_back({chart.rows.size(), kind, from, to,
                           fmt::format("{}: {} {} ms", name, kTimeParts[kind], significant((*split)[kind]))});
    from = to;
  }
  chart.rows.push_back(fmt::format("{}: {} ms", name, significant(*row.metrics.step_ms)));
}

std::string time_section(SpanChart chart) {
  chart.title = "Where the time of a step goes", chart.x = "ms of a step";
  chart.kinds = {kTimeParts.begin(), kTimeParts.end()};
  const std::string drawn = figure(chart);
  return drawn.empty()
             ? ""
             : drawn +
                   "<p class=\"small\">Each part is a median of its own over the slowest ranks, so they "
                   "need not add up to the step.</p>\n";
}

std::string names_of(const std::vector<const ResultRow*>& rows) {
  std::string out;
  for (std::size_t i = 0; i < rows.size(); ++i) out += (i > 0 ? ", " : "") + rows[i]->trial_id;
  return out;
}

// The options of the sweeps that a result depends on, where they differ.
std::string option_differences(const ComparedSweeps& of) {
  const std::vector<SweepOptions>& sides = of.options;
  const auto measured = [](const SweepOptions& options) {
    return options.measure ? fmt::format("{} steps after {}, {} repeats", options.measure->steps,
                                         options.measure->warmup_steps, options.measure->repeats)
                           : "unknown";
  };
  std::string out;
  const auto add = [&](const char* what, auto&& text_of) {
    std::string line;
    bool differ = false;
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const std::string text = text_of(sides[i]);
      differ |= text != text_of(sides.front());
      line += fmt::format("{}{} in {}", i > 0 ? ", " : "", text.empty() ? "unknown" : text, side_letter(i));
    }
    if (differ) out += fmt::format("{}: {}\n", what, line);
  };
  add("measured", measured);
  add("launcher", [](const SweepOptions& o) { return o.launcher; });
  add("build", [](const SweepOptions& o) { return o.build; });
  return out;
}

std::string differences(const ComparedSweeps& of, std::span<const Comparison> found) {
  std::string lines = of.machines + option_differences(of) + alone_lines(found, false), out;
  while (!lines.empty()) {
    const auto end = lines.find('\n');
    out += fmt::format("<li>{}</li>\n", escape_xml(lines.substr(0, end)));
    lines.erase(0, end == std::string::npos ? end : end + 1);
  }
  return out.empty() ? "" : fmt::format("<ul>\n{}</ul>\n", out);
}

std::string ratio_text(const PairedMetric& one) {
  return significant(one.ratio) + "×";
}

Table metrics_of_two(const Comparison& found, const Names& names) {
  Table table;
  table.columns = {"metric", "better is", "B / A, median", "of", "better", "worse"};
  for (const PairedMetric& one : paired_metrics(found))
    table.rows.push_back(
        {names.of(one.metric), word_of(one.better), ratio_text(one), one.pairs, one.improved, one.worsened});
  return table;
}

// A column for each sweep: "0.97× of 12: 3 better, 9 worse".
Table metrics_of_several(std::span<const Comparison> found, const Names& names) {
  Table table;
  table.columns = {"metric", "better is"};
  for (std::size_t i = 0; i < found.size(); ++i) {
    table.columns.push_back(side_letter(i + 1) + " / A, median");
    for (const PairedMetric& one : paired_metrics(found[i])) {
      const Value name{names.of(one.metric)};
      auto line = std::ranges::find_if(table.rows, [&](const auto& row) { return row.front() == name; });
      if (line == table.rows.end())
        line = table.rows.insert(line, std::vector<Value>{name, word_of(one.better)});
      line->resize(i + 2);
      line->push_back(fmt::format("{} of {}: {} better, {} worse", ratio_text(one), one.pairs, one.improved,
                                  one.worsened));
    }
  }
  for (auto& row : table.rows) row.resize(table.columns.size());
  return table;
}

std::string metrics_of(std::span<const Comparison> found) {
  const Names names({});
  Table table = found.size() == 1 ? metrics_of_two(found.front(), names) : metrics_of_several(found, names);
  return table.rows.empty() ? "" : parts::html_table(std::move(table), names);
}

std::string time_of(std::span<const Comparison> found) {
  const auto all = by_configuration(found);
  std::vector<ResultRow> rows;
  for (const auto& one : all) rows.push_back(*one.a);
  const auto differ = varying(rows);
  const auto has_parts = [](const Pair* pair) {
    return pair && time_parts(pair->b->metrics, pair->b->trial);
  };
  SpanChart chart;
  std::size_t count = 0;
  for (const auto& one : all) {
    if (!time_parts(one.a->metrics, one.a->trial) || std::ranges::none_of(one.pairs, has_parts) ||
        ++count > kPairsDrawn)
      continue;
    const std::string name = parts::name_of(*one.a, differ);
    add_bar(chart, name + ", A", *one.a);
    for (std::size_t i = 0; i < one.pairs.size(); ++i)
      if (one.pairs[i]) add_bar(chart, fmt::format("{}, {}", name, side_letter(i + 1)), *one.pairs[i]->b);
  }
  const std::string out = time_section(std::move(chart));
  if (count <= kPairsDrawn || out.empty()) return out;
  return out + parts::paragraph(
                   fmt::format("The {} configurations with the largest changes, of {}.", kPairsDrawn, count));
}

// Each line a paragraph.
std::string summary_of(std::span<const Comparison> found, const CompareOptions& options) {
  std::string out;
  for (std::string text = compare_summary(found, options) + uncompared_lines(found); !text.empty();) {
    const auto end = text.find('\n');
    out += parts::paragraph(text.substr(0, end));
    text.erase(0, end == std::string::npos ? end : end + 1);
  }
  return out;
}

}  // namespace

std::string side_by_side_html(const SideBySide& sides, const std::string& sweep, const std::string& made) {
  const Names names({});
  Table differ = difference_table(sides);
  for (auto& line : differ.rows) line[0] = names.of(std::get<std::string>(line[0]));
  Table metrics =
      shown_metrics(sides, [&](const Field& f, const Scale& scale) { return names.with_unit(f, scale); });
  for (std::size_t i = 0; i < sides.results.size(); ++i)
    metrics.columns[i + 2] = brief(sides.results[i]->trial_id);
  SpanChart chart;
  for (const ResultRow* row : sides.results) add_bar(chart, row->trial_id, *row);
  std::string body = section("differs", "What differs", parts::html_table(std::move(differ), names));
  body += section("time", "Where the time of a step goes", time_section(std::move(chart)));
  if (!metrics.rows.empty())
    body += section("metrics", "Metrics", parts::html_table(std::move(metrics), names));
  return framed_page(
      {.window = "trials of " + sweep,
       .heading = fmt::format("{} trials side by side", sides.results.size()),
       .rehearsed = is_rehearsal(sweep),
       .lead = fmt::format("<p class=\"question\">{}</p>\n<p class=\"meta\">{}</p>\n", escape_xml(sweep),
                           escape_xml(names_of(sides.results) + ". " + made)),
       .body = std::move(body),
       .draws = true});
}

ComparedSweeps compared_sweeps(std::span<const CompareSide> sides, std::string made) {
  ComparedSweeps out;
  for (const CompareSide& side : sides) {
    out.names.push_back(side.sweep.name);
    out.options.push_back(side.sweep.options);
  }
  out.machines = machine_differences(sides);
  out.made = std::move(made);
  return out;
}

std::string comparison_html(const ComparedSweeps& of, std::span<const Comparison> found,
                            const CompareOptions& options) {
  std::string body = section("summary", "Summary", summary_of(found, options));
  body += section("differs", "What differs", differences(of, found));
  body += section("time", "Where the time of a step goes", time_of(found));
  body += section("metrics", "Metrics", metrics_of(found));
  if (std::ranges::any_of(found, [](const Comparison& one) { return !one.pairs.empty(); }))
    body += section("configurations", "Configurations",
                    parts::html_table(compare_shown(found, options), Names({})));
  std::string sides;
  for (std::size_t i = 0; i < of.names.size(); ++i)
    sides += fmt::format("{}{}: {}", i > 0 ? "; " : "", side_letter(i), of.names[i]);
  return framed_page({.window = in_words(of.names),
                      .heading = in_words(of.names),
                      .rehearsed = std::ranges::any_of(of.names, is_rehearsal),
                      .lead = fmt::format("<p class=\"question\">{}</p>\n<p class=\"meta\">{}</p>\n",
                                          escape_xml(sides), escape_xml(of.made)),
                      .body = std::move(body),
                      .draws = true});
}

}  // namespace sweep::answers
