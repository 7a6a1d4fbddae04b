#include "orchestrator/answers/pages/report_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/expected.h"
#include "base/text.h"
#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/pages/page_frame.h"
#include "orchestrator/answers/pages/report_parts.h"
#include "orchestrator/answers/rehearsed.h"
#include "orchestrator/answers/tables/tables.h"
#include "schema/rehearsal.h"

namespace sweep::answers {
namespace parts {

// The line ends stay, all else is made safe.
std::string escape_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto end = text.find('\n');
    out += escape_xml(text.substr(0, end));
    if (end == std::string_view::npos) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

std::string paragraph(std::string_view text) {
  return fmt::format("<p>{}</p>\n", escape_xml(text));
}

std::string block(std::string_view text) {
  return fmt::format("<pre>{}</pre>\n", escape_lines(text));
}

std::string name_of(const ResultRow& row, std::span<const Field> varying) {
  const std::string out = setting_text(row, varying);
  return out.empty() ? safe_text(row.trial.model) : out;
}

namespace {

// Takes away columns without any value, and the axes whose value is the same in every row; says what that is.
std::string without_constants(Table& table, const Names& names) {
  std::string out;
  if (table.rows.size() < 2) return out;
  for (std::size_t c = table.columns.size(); c-- > 0;) {
    const Column* column = find_column(table.columns[c]);
    const Value& first = table.rows.front()[c];
    const bool same = std::ranges::all_of(table.rows, [&](const auto& row) { return row[c] == first; });
    const bool empty = same && first.index() == 0;
    if (!empty && (!column || column->role != Role::kAxis || !same)) continue;
    if (!empty)
      out = fmt::format("{} {}{}{}", names.of(column->key), show(first), out.empty() ? "" : ", ", out);
    table.columns.erase(table.columns.begin() + std::ptrdiff_t(c));
    for (auto& row : table.rows) row.erase(row.begin() + std::ptrdiff_t(c));
  }
  return out.empty() ? "" : fmt::format("<p class=\"small\">In every row: {}.</p>\n", escape_xml(out));
}

constexpr std::size_t kIdShown = 8;  // digits of a trial's id; commands take its beginning

// Text that is a figure with a sign, a mark or a spread, as "+1.2 %", "≥ 9.3 GiB", "16 ★" or "98.1 ± 0.2".
bool reads_as_number(std::string_view text) {
  for (const std::string_view mark : {"+", "-", "≥ "})
    if (text.starts_with(mark)) return reads_as_number(text.substr(mark.size()));
  return text.find_first_of("0123456789") == 0 && text.size() < 20;
}

}  // namespace

std::string html_table(Table table, const Names& names, std::span<const std::string> links) {
  std::string out = without_constants(table, names) + "<div class=\"wide\"><table>\n<tr>";
  const auto cells = shown_cells(table);
  std::vector<const char*> how;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Column* column = find_column(table.columns[c]);
    const bool axis = column && column->role == Role::kAxis;  // a model may be called 8B
    const bool numbers = cells.numbers[c] || (!axis && std::ranges::all_of(cells.rows, [&](const auto& row) {
                           return row[c] == "-" || reads_as_number(row[c]);
                         }));
    const bool id = table.columns[c] == "trial";
    const bool wide =
        table.columns[c] == "layout" || table.columns[c] == "configuration" || table.columns[c] == "setting";
    how.push_back(id ? " class=\"id\"" : numbers ? " class=\"n\"" : wide ? " class=\"conf\"" : "");
    const std::string head = column ? names.with_unit(Field(*column), {1, cells.units[c], false})
                             : table.units.contains(table.columns[c]) ? cells.heads[c]
                                                                      : names.of(table.columns[c]);
    out += fmt::format("<th{}>{}</th>", how.back(), escape_xml(head));
  }
  out += "</tr>\n";
  for (std::size_t r = 0; r < cells.rows.size(); ++r) {
    const auto& row = cells.rows[r];
    out += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c == 0 && r < links.size()) {
        out += fmt::format("<td><a href=\"{}\">{}</a></td>", escape_xml(links[r]), escape_xml(row[c]));
        continue;
      }
      const bool id = table.columns[c] == "trial" && row[c].size() > kIdShown;
      out += id ? fmt::format("<td{} title=\"{}\">{}</td>", how[c], escape_xml(row[c]),
                              escape_xml(row[c].substr(0, kIdShown)))
                : fmt::format("<td{}>{}</td>", how[c], escape_xml(row[c]));
    }
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

}  // namespace parts

namespace {

std::string counts_line(const ReportInput& in) {
  i64 count[kCellOutcomes] = {};
  for (const ResultRow& row : in.rows) ++count[std::size_t(cell_outcome_of(row))];
  std::string parts;
  for (std::size_t f = 0; f < kCellOutcomes; ++f) {
    if (count[f] > 0)
      parts +=
          fmt::format("{}{} {}", parts.empty() ? "" : ", ", count[f],
                      CellOutcome(f) == CellOutcome::kPending ? "not run yet" : to_string(CellOutcome(f)));
  }
  return fmt::format("{}{}{}. Made {} by sweep {}.", counted(std::int64_t(in.rows.size()), "configuration"),
                     parts.empty() ? "" : ": ", parts, in.made_at, in.version);
}

std::string page(const ReportInput& in, const std::string& sections) {
  const std::string question =
      in.question.empty() ? "" : fmt::format("<p class=\"question\">{}</p>\n", escape_xml(in.question));
  std::vector<std::optional<double>> shares;
  for (const ResultRow& row : in.rows) shares.push_back(row.metrics.step_guessed_share);
  const std::string guessed = guessed_line(shares);
  return framed_page(
      {.window = in.sweep + " - sweep report",
       .heading = in.sweep,
       .rehearsed = is_rehearsal(in.sweep),
       .lead = question + fmt::format("<p class=\"meta\">{}</p>\n",
                                      escape_xml(counts_line(in) + (guessed.empty() ? "" : " " + guessed))),
       .body = sections});
}

}  // namespace

Expected<std::string> report_html(const ReportInput& in) {
  SWEEP_TRY(resolve_ranked(in.metric));
  for (const std::string& axis : {in.heatmap_rows, in.heatmap_cols}) {
    if (axis.empty()) continue;
    SWEEP_TRY(Field::resolve(axis, in.rows));
  }
  const auto differ = varying(in.rows);
  BestOptions options;
  options.metric = in.metric;
  options.rehearsed = is_rehearsal(in.sweep);
  options.group_by = comparable_groups(differ);
  options.form.measure = measure_of(in.sweep, in.options);
  for (const Field& field : differ) options.form.swept.push_back(field.name());
  SWEEP_GET(const auto groups, best(in.rows, options));
  std::string out = section("answer", "Answer", parts::answer(in, groups, options));
  out += section("cost", "Cost", parts::cost(in, groups, options));
  out += section("heatmap", "Heatmap", parts::landscape(in));
  out += section("importance", "What matters", parts::importance_bars(in));
  out += section("stages", "Stages", parts::stages(in));
  out += section("failures", "Failed and skipped configurations", parts::failures(in));
  out += section("tradeoff", "Time vs. cost", parts::time_and_cost(in));
  out += section("fits", "What fits", parts::what_fits(in));
  out += section("memory", "Throughput vs. memory", parts::memory_and_speed(in));
  out += section("scaling", "Scaling by nodes", parts::scaling(in));
  out += section("batch", "Batch size", parts::batches(in));
  out += section("time", "Where the time goes", parts::time_split(in));
  out += section("kinds", "Nodes of several kinds", parts::several_kinds(in));
  out += section("predictions", "Predictions and what was measured", parts::predictions(in));
  if (!in.beside.empty()) {
    SWEEP_GET(const auto other, parts::beside(in));
    out += section("beside", "Beside another sweep", other);
  }
  out += section("environment", is_rehearsal(in.sweep) ? "Where it was rehearsed" : "Where it was measured",
                 parts::environment(in));
  out += section("reproduce", "Reproduce", parts::reproduce(in));
  return page(in, out);
}

}  // namespace sweep::answers
