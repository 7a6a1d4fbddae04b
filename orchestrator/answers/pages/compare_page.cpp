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
#include "schema/sweep_options.h"

namespace sweep::answers {
namespace {

constexpr std::size_t kPairsDrawn = 8;

// The beginning of an id: commands take it, and heads have room for it.
std::string brief(const std::string& id) {
  return id.substr(0, 8);
}

void add_bar(SpanChart& chart, const std::string& name, const ResultRow& row) {
  const auto split = time_parts(row.metrics);
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

// The options of the two sweeps that a result depends on, where they differ.
std::string option_differences(const ComparedSweeps& of) {
  const SweepOptions a = sweep_options_from(of.a_options).value_or(SweepOptions()),
                     b = sweep_options_from(of.b_options).value_or(SweepOptions());
  const auto measured = [](const SweepOptions& options) {
    return options.measure ? fmt::format("{} steps after {}, {} repeats", options.measure->steps,
                                         options.measure->warmup_steps, options.measure->repeats)
                           : "unknown";
  };
  std::string out;
  const std::tuple<const char*, std::string, std::string> all[] = {{"measured", measured(a), measured(b)},
                                                                   {"launcher", a.launcher, b.launcher},
                                                                   {"build", a.build, b.build}};
  for (const auto& [what, in_a, in_b] : all)
    if (in_a != in_b)
      out += fmt::format("{}: {} in A, {} in B\n", what, in_a.empty() ? "unknown" : in_a,
                         in_b.empty() ? "unknown" : in_b);
  return out;
}

std::string differences(const ComparedSweeps& of, const Comparison& found) {
  std::string lines = of.machines + option_differences(of), out;
  while (!lines.empty()) {
    const auto end = lines.find('\n');
    out += fmt::format("<li>{}</li>\n", escape_xml(lines.substr(0, end)));
    lines.erase(0, end == std::string::npos ? end : end + 1);
  }
  for (const auto& [where, rows] : {std::pair("A", &found.only_a), std::pair("B", &found.only_b)})
    if (!rows->empty())
      out += fmt::format("<li>{} only in {}</li>\n", counted(i64(rows->size()), "configuration"), where);
  return out.empty() ? "" : fmt::format("<ul>\n{}</ul>\n", out);
}

std::string metrics_of(const Comparison& found) {
  const Names names({});
  Table table;
  table.columns = {"metric", "better is", "B / A, median", "of", "better", "worse"};
  for (const PairedMetric& one : paired_metrics(found))
    table.rows.push_back({names.of(one.metric), word_of(one.better), significant(one.ratio) + "×", one.pairs,
                          one.improved, one.worsened});
  return table.rows.empty() ? "" : parts::html_table(std::move(table), names);
}

std::string time_of(const Comparison& found) {
  std::vector<ResultRow> rows;
  for (const Pair& pair : found.pairs) rows.push_back(*pair.a);
  const auto differ = varying(rows);
  SpanChart chart;
  std::size_t pairs = 0;
  for (const Pair& pair : found.pairs) {
    if (!time_parts(pair.a->metrics) || !time_parts(pair.b->metrics) || ++pairs > kPairsDrawn) continue;
    const std::string name = parts::name_of(*pair.a, differ);
    add_bar(chart, name + ", A", *pair.a);
    add_bar(chart, name + ", B", *pair.b);
  }
  const std::string out = time_section(std::move(chart));
  if (pairs <= kPairsDrawn || out.empty()) return out;
  return out + parts::paragraph(
                   fmt::format("The {} configurations with the largest changes, of {}.", kPairsDrawn, pairs));
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

std::string comparison_html(const ComparedSweeps& of, const Comparison& found,
                            const CompareOptions& options) {
  std::string summary;
  for (std::string text = compare_summary(found, options); !text.empty();) {
    const auto end = text.find('\n');
    summary += parts::paragraph(text.substr(0, end));
    text.erase(0, end == std::string::npos ? end : end + 1);
  }
  if (found.unanswered > 0)
    summary += parts::paragraph(
        fmt::format("{} more were not measured on both sides: nothing to compare.", found.unanswered));
  std::string body = section("summary", "Summary", summary);
  body += section("differs", "What differs", differences(of, found));
  body += section("time", "Where the time of a step goes", time_of(found));
  body += section("metrics", "Metrics", metrics_of(found));
  if (!found.pairs.empty())
    body += section("configurations", "Configurations",
                    parts::html_table(compare_shown(found, options), Names({})));
  return framed_page(
      {.window = fmt::format("{} and {}", of.a, of.b),
       .heading = fmt::format("{} and {}", of.a, of.b),
       .rehearsed = is_rehearsal(of.a) || is_rehearsal(of.b),
       .lead = fmt::format("<p class=\"question\">A: {}; B: {}</p>\n<p class=\"meta\">{}</p>\n",
                           escape_xml(of.a), escape_xml(of.b), escape_xml(of.made)),
       .body = std::move(body),
       .draws = true});
}

}  // namespace sweep::answers
