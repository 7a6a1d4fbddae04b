// The report's answer, its cost and its heatmap.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/pages/report_parts.h"
#include "orchestrator/answers/statistics/best.h"
#include "orchestrator/answers/statistics/prices.h"
#include "orchestrator/answers/tables/measured.h"
#include "schema/ranking.h"

namespace sweep::answers::parts {
namespace {

constexpr std::size_t kSpeltOut = 12;  // groups whose best configuration is spelt out
constexpr std::size_t kListed = 60;    // groups in the tables
constexpr double kTrillion = 1e12;

std::string value_of(const ResultRow& row, std::string_view metric) {
  const Column& column = *find_column(metric);
  const auto value = number(column.get(row));
  if (!value) return "";
  const Scale scale = scale_for(column.unit, std::abs(*value));
  return fmt::format("{}{}{}", scale(*value), scale.unit.empty() ? "" : " ", scale.unit);
}

std::string certainty(const BestOfGroup& group, const BestOptions& options) {
  std::string out;
  if (group.interval) {
    const Scale scale = scale_for(find_column(options.metric)->unit, group.value);
    out = fmt::format("95 % interval {} to {} {}. ", scale(group.interval->low), scale(group.interval->high),
                      scale.unit);
  }
  if (group.ranked < 2) return out + "The only configuration measured.";
  for (std::string& note : first_place_notes(group, options)) {
    note[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(note[0])));
    out += note + ". ";
  }
  return out;
}

// Closed until asked for; printed open.
std::string form(std::string_view name, const std::string& body) {
  return fmt::format("<details class=\"form\"><summary>{}</summary>\n{}</details>\n", escape_xml(name), body);
}

std::string forms(const ReportInput& in, const ResultRow& row, const GridForm& grid) {
  std::string out = "<div class=\"forms\">\n" + form("Grid file for sweep", block(as_grid_yaml(row, grid)));
  if (!in.foreign_configs) return out + "</div>\n";
  for (const ForeignConfig& one : in.foreign_configs(row)) {
    std::string body = block(one.text);
    if (!one.unsupported_settings.empty()) {
      body += "<p class=\"small\">Not covered by these flags:</p>\n<ul class=\"small\">";
      for (const auto& sentence : one.unsupported_settings)
        body += fmt::format("<li>{}</li>", escape_xml(sentence));
      body += "</ul>\n";
    }
    out += form(fmt::format("For {}", one.trainer), body);
  }
  return out + "</div>\n";
}

std::string one_answer(const ReportInput& in, const BestOfGroup& group, const BestOptions& options,
                       std::span<const Field> differ) {
  if (!group.winner) return paragraph(group.why_none + ".");
  const ResultRow& row = *group.winner;
  const Names names(in.rows);
  std::string out = fmt::format(
      "<p class=\"winner\"><b>{}</b> <span class=\"small\">trial {}, best of {} by {}</span></p>\n",
      escape_xml(name_of(row, differ)), escape_xml(row.trial_id), group.ranked,
      escape_xml(names.of(in.metric)));
  out += gain(in, group, options, differ);
  out += facts_of(row, names) + paragraph(certainty(group, options));
  const auto from = in.provenance_of ? in.provenance_of(row) : std::nullopt;
  std::string measured;
  for (const auto& line : measured_lines(row, from ? &*from : nullptr))
    measured += (measured.empty() ? "" : "; ") + line;
  out += fmt::format("<p class=\"small\">Measured: {}.</p>\n", escape_xml(measured));
  return out + forms(in, row, options.form);
}

std::string guess_cell(const Gain& gain) {
  if (gain.guess_is_best) return "is the best";
  if (gain.guess_ran_out) return "ran out of memory";
  return gain.over_guess ? significant(*gain.over_guess) + "×" : "";
}

// The best of each group, a row each.
Table answer_table(const ReportInput& in, std::span<const BestOfGroup> groups, const BestOptions& options,
                   std::span<const Field> differ) {
  std::vector<std::string> figures = {options.metric, "step_ms", "mfu", "peak_allocated_bytes",
                                      "cost_per_mt"};
  figures.erase(std::find(figures.begin() + 1, figures.end(), options.metric), figures.end());
  Table table;
  table.columns = options.group_by;
  table.columns.emplace_back("configuration");
  table.columns.insert(table.columns.end(), figures.begin(), figures.end());
  for (const char* name : {"over the median", "over the first guess", "tied with", "best of", "trial"})
    table.columns.emplace_back(name);
  const auto text = [](std::string value) { return value.empty() ? Value{} : Value{std::move(value)}; };
  for (const BestOfGroup& group : groups) {
    auto& line = table.rows.emplace_back(group.key);
    if (!group.winner) {
      line.emplace_back(group.why_none);
      line.resize(table.columns.size());
      continue;
    }
    const Gain gain = gain_of(in, group, options);
    line.emplace_back(name_of(*group.winner, differ));
    for (const std::string& name : figures) line.push_back(find_column(name)->get(*group.winner));
    line.push_back(gain.over_median ? Value{significant(*gain.over_median) + "×"} : Value{});
    line.push_back(text(guess_cell(gain)));
    line.insert(line.end(), {ties_of(group), Value{group.ranked}, Value{group.winner->trial_id}});
  }
  return table;
}

// One way to be best, for the table of costs: by all tokens, and where some are padding by the others.
struct Pick {
  const char* what;
  const char* metric;
  const char* useful;
};
constexpr Pick kPicks[] = {{"fastest job", "tokens_per_s", "useful_tokens_per_s"},
                           {"fastest per GPU", "tokens_per_s_gpu", "useful_tokens_per_s_gpu"},
                           {"cheapest", "cost_per_mt", "useful_cost_per_mt"}};

const ResultRow* pick(std::span<const ResultRow* const> rows, const std::string& metric) {
  const Column& column = *find_column(metric);
  const ResultRow* out = nullptr;
  double best = 0;
  for (const ResultRow* row : rows) {
    if (!may_be_best(*row)) continue;
    const auto value = number(column.get(*row));
    if (!value || (out && !ranks_before(column.better, *value, row->trial_id, best, out->trial_id))) continue;
    out = row, best = *value;
  }
  return out;
}

// The figures of the table of costs, which all its rows have.
struct CostFigures {
  bool padding = false;
  std::optional<std::string_view> run;  // the column of the cost with what is around the steps
};

std::vector<std::string> cost_heads(const CostFigures& of) {
  const char* tokens = of.padding ? "useful tokens" : "tokens";
  std::vector<std::string> out = {"best by", "configuration", "nodes",
                                  fmt::format("million {} per hour", tokens),
                                  fmt::format("USD per million {}", tokens)};
  if (of.run) out.emplace_back("with checkpoints and evaluation");
  for (const char* unit : {"days", "USD"}) out.push_back(fmt::format("{} for 1 T {}", unit, tokens));
  out.emplace_back("trial");
  return out;
}

// The cost of rows that are comparable.
Table cost_of(std::span<const ResultRow* const> rows, std::span<const Field> differ, const CostFigures& of) {
  Table table;
  table.columns = cost_heads(of);
  for (const Pick& one : kPicks) {
    const ResultRow* row = pick(rows, of.padding ? one.useful : one.metric);
    if (!row) continue;
    const double useful = useful_share_of(row->metrics);
    auto speed = row->metrics.mt_per_hour, price = row->metrics.cost_per_mt;
    if (speed) *speed *= useful;
    if (price) *price /= useful;
    const auto real = [](std::optional<double> v) { return v ? Value{significant(*v)} : Value{}; };
    const auto same = std::ranges::find_if(
        table.rows, [&](const auto& line) { return line.back() == Value{row->trial_id}; });
    if (same != table.rows.end()) {
      same->front() = fmt::format("{}, {}", show(same->front()), one.what);
      continue;
    }
    auto& line = table.rows.emplace_back(std::vector<Value>{std::string(one.what), name_of(*row, differ),
                                                            row->trial.nodes, real(speed), real(price)});
    if (of.run) line.push_back(real(number(find_column(*of.run)->get(*row))));
    line.insert(line.end(), {speed && *speed > 0 ? real(kTrillion / 1e6 / *speed / 24) : Value{},
                             price ? Value{si(*price * kTrillion / 1e6)} : Value{}, Value{row->trial_id}});
  }
  return table;
}

// The fields that tell configurations of one group apart.
std::vector<Field> within_groups(const ReportInput& in, const BestOptions& options) {
  auto out = varying_among_ok(in.rows);
  std::erase_if(out, [&](const Field& field) {
    return std::ranges::find(options.group_by, field.name()) != options.group_by.end();
  });
  return out;
}

}  // namespace

std::string facts_of(const ResultRow& row, const Names& names) {
  std::string out;
  for (const char* metric :
       {"tokens_per_s", "tokens_per_s_gpu", "mfu", "step_ms", "peak_allocated_bytes", "cost_per_mt",
        "useful_tokens_per_s", "useful_tokens_per_s_gpu", "useful_mfu", "useful_cost_per_mt"}) {
    const std::string value = value_of(row, metric);
    if (value.empty() || (std::string_view(metric).starts_with("useful_") && !has_padding(row.metrics)))
      continue;
    const auto price = row.metrics.usd_per_node_hour
                           ? shape::published_price(row.trial.hardware, *row.metrics.usd_per_node_hour)
                           : std::nullopt;
    const bool dated = price && find_column(metric)->unit == "USD";
    out += fmt::format("<li><b>{}</b> {}{}</li>", escape_xml(value), escape_xml(names.of(metric)),
                       dated ? escape_xml(fmt::format(", price of {}", price->date)) : "");
  }
  return fmt::format("<ul class=\"facts\">{}</ul>\n", out);
}

std::string heading_of(const BestOfGroup& group, const BestOptions& options) {
  std::string out;
  for (std::size_t i = 0; i < group.key.size(); ++i) {
    const std::string& axis = options.group_by[i];
    const bool plain = axis == "model" || axis == "hardware";
    out += fmt::format("{}{}{}", out.empty() ? "" : ", ", plain ? "" : Names({}).of(axis) + " ",
                       show(group.key[i]));
  }
  return out;
}

bool belongs(const ResultRow& row, const BestOfGroup& group, const BestOptions& options) {
  for (std::size_t i = 0; i < group.key.size(); ++i) {
    if (find_column(options.group_by[i])->get(row) != group.key[i]) return false;
  }
  return true;
}

std::string answer(const ReportInput& in, std::span<const BestOfGroup> groups, const BestOptions& options) {
  if (groups.empty()) return paragraph("The sweep has no configurations yet.");
  const auto differ = within_groups(in, options);
  if (groups.size() == 1) return one_answer(in, groups.front(), options, differ);
  std::string out = html_table(
      answer_table(in, groups.first(std::min(groups.size(), kListed)), options, differ), Names(in.rows));
  if (groups.size() > kListed)
    out += paragraph(fmt::format("{} more groups: `sweep best --by {}` has them.", groups.size() - kListed,
                                 fmt::join(options.group_by, ",")));
  std::size_t spelt = 0;
  for (const BestOfGroup& group : groups) {
    if (!group.winner || ++spelt > kSpeltOut) continue;
    out += fmt::format("<details class=\"group\"><summary>{}</summary>\n{}</details>\n",
                       escape_xml(heading_of(group, options)), one_answer(in, group, options, differ));
  }
  if (spelt > kSpeltOut)
    out += paragraph(fmt::format("`sweep best --by {}` spells out {} more.", fmt::join(options.group_by, ","),
                                 spelt - kSpeltOut));
  return out;
}

std::string cost(const ReportInput& in, std::span<const BestOfGroup> groups, const BestOptions& options) {
  auto differ = within_groups(in, options);
  std::erase_if(differ, [](const Field& field) { return field.name() == "nodes"; });  // a column of its own
  const CostFigures figures{any_padding(in.rows), run_cost_column(in.rows)};
  Table all;
  std::size_t listed = 0;
  for (const BestOfGroup& group : groups) {
    std::vector<const ResultRow*> rows;
    for (const ResultRow& row : in.rows) {
      if (belongs(row, group, options)) rows.push_back(&row);
    }
    Table table = cost_of(rows, differ, figures);
    if (table.rows.empty() || ++listed > kListed) continue;
    if (groups.size() > 1) {
      table.columns.insert(table.columns.begin(), options.group_by.begin(), options.group_by.end());
      for (auto& row : table.rows) row.insert(row.begin(), group.key.begin(), group.key.end());
    }
    all.columns = table.columns;
    all.rows.insert(all.rows.end(), table.rows.begin(), table.rows.end());
  }
  if (listed == 0) return "";
  std::string out = html_table(std::move(all), Names(in.rows));
  if (listed > kListed)
    out += paragraph(
        fmt::format("{} more groups are not listed; `sweep table cost` has them.", listed - kListed));
  const auto prices = price_sentences(in.rows, in.made_at);
  for (const std::string& price : prices)
    out += fmt::format("<p class=\"small price\">Price of {}. Whole nodes are counted.</p>\n",
                       escape_xml(price));
  const bool costed =
      std::ranges::any_of(in.rows, [](const ResultRow& row) { return row.metrics.cost_per_mt.has_value(); });
  if (prices.empty() && costed) {
    out += "<p class=\"small\">The price behind these costs was not recorded.</p>\n";
  } else if (prices.empty()) {
    out +=
        "<p class=\"small\">No cost: neither the site file nor the hardware catalogue has a price for this "
        "hardware.</p>\n";
  }
  return out;
}

std::string landscape(const ReportInput& in) {
  if (in.rows.empty()) return "";
  // Nodes across and models down where they vary, as people compare clusters; else the axes that matter most.
  const auto differs = [&](const char* axis) {
    const Field field(*find_column(axis));
    const Value first = field.of(in.rows.front());
    return std::any_of(in.rows.begin(), in.rows.end(),
                       [&](const ResultRow& r) { return field.of(r) != first; });
  };
  std::string across = in.heatmap_cols, down = in.heatmap_rows;
  if (across.empty() && down != "nodes" && differs("nodes")) across = "nodes";
  if (down.empty() && across != "model" && differs("model")) down = "model";
  const auto map = heatmap(in.rows, {.rows = down, .cols = across, .value = in.metric});
  if (!map) return paragraph(map.error().message);
  return fmt::format("<div class=\"wide chart\">{}</div>\n", to_svg(*map));
}

}  // namespace sweep::answers::parts
