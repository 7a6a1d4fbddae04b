#include "orchestrator/report/report_page.h"

#include <fmt/format.h>

#include "orchestrator/report/fields.h"
#include "orchestrator/report/format.h"
#include "orchestrator/report/heatmap.h"
#include "orchestrator/report/heatmap_assets.h"
#include "orchestrator/report/report_parts.h"
#include "orchestrator/report/tables.h"

namespace sweep::report {
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

// A heading may be cut behind an underscore, where the page is too narrow for its table.
std::string breakable(std::string_view heading) {
  std::string out;
  for (const char c : escape_xml(heading)) out += c == '_' ? std::string("_<wbr>") : std::string(1, c);
  return out;
}

std::string html_table(const Table& table) {
  std::string out = "<div class=\"wide\"><table>\n<tr>";
  const auto cells = shown_cells(table);
  for (std::size_t c = 0; c < cells.heads.size(); ++c)
    out += fmt::format("<th{}>{}</th>", cells.numbers[c] ? " class=\"n\"" : "", breakable(cells.heads[c]));
  out += "</tr>\n";
  for (std::size_t r = 0; r < cells.rows.size(); ++r) {
    out += "<tr>";
    for (std::size_t c = 0; c < cells.rows[r].size(); ++c) {
      out +=
          fmt::format("<td{}>{}</td>", cells.numbers[c] ? " class=\"n\"" : "", escape_xml(cells.rows[r][c]));
    }
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

}  // namespace parts

namespace {

std::string counts_line(const ReportInput& in) {
  i64 count[kFates] = {};
  for (const ResultRow& row : in.rows) ++count[std::size_t(fate_of(row))];
  std::string parts;
  for (std::size_t f = 0; f < kFates; ++f) {
    if (count[f] > 0)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", count[f], to_string(Fate(f)));
  }
  return fmt::format("{} configurations{}{}. Made {} by sweep {}.", in.rows.size(), parts.empty() ? "" : ": ",
                     parts, in.made_at, in.version);
}

std::string section(std::string_view id, std::string_view title, const std::string& body) {
  return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, title, body);
}

std::string page(const ReportInput& in, const std::string& sections) {
  const std::string name = escape_xml(in.sweep);
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  out +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "img-src data:\">\n";
  out += fmt::format("<title>{} - sweep report</title>\n<style>\n{}</style>\n</head>\n<body>\n", name,
                     report_css());
  out += fmt::format("<header>\n<h1>{}</h1>\n", name);
  if (!in.question.empty()) out += fmt::format("<p class=\"question\">{}</p>\n", escape_xml(in.question));
  out += fmt::format("<p class=\"meta\">{}</p>\n</header>\n<main>\n", escape_xml(counts_line(in)));
  return out + sections + "</main>\n</body>\n</html>\n";
}

}  // namespace

Expected<std::string> report_html(const ReportInput& in) {
  if (const auto metric = resolve_metric(in.metric); !metric) return tl::unexpected(metric.error());
  for (const std::string& axis : {in.heatmap_rows, in.heatmap_cols}) {
    if (axis.empty()) continue;
    if (const auto field = Field::resolve(axis, in.rows); !field) return tl::unexpected(field.error());
  }
  BestOptions options;
  options.metric = in.metric;
  const auto groups = best(in.rows, options);
  if (!groups) return tl::unexpected(groups.error());
  std::string out = section("answer", "Answer", parts::answer(in, *groups, options));
  out += section("cost", "What it costs", parts::cost(in));
  out += section("heatmap", "Landscape", parts::landscape(in));
  out += section("memory", "Memory against speed", parts::memory_and_speed(in));
  out += section("scaling", "Scaling by nodes", parts::scaling(in));
  out += section("batch", "Batch size", parts::batches(in));
  out += section("time", "Where the time goes", parts::time_split(in));
  out += section("failures", "What did not work, and why", parts::failures(in));
  out += section("environment", "Where it was measured", parts::environment(in));
  out += section("reproduce", "How to repeat it", parts::reproduce(in));
  return page(in, out);
}

}  // namespace sweep::report
