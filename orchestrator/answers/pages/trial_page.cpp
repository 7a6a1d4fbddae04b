#include "orchestrator/answers/pages/trial_page.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/expected.h"
#include "base/text.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/pages/page_frame.h"
#include "orchestrator/answers/pages/report_parts.h"
#include "orchestrator/answers/pages/trial_parts.h"
#include "orchestrator/answers/pages/vega_charts.h"
#include "orchestrator/answers/statistics/best.h"
#include "orchestrator/answers/tables/measured.h"
#include "schema/columns.h"
#include "schema/labels.h"
#include "schema/rehearsal.h"

namespace sweep::answers {
namespace {

constexpr std::size_t kMostLogs = 8;

std::string details(std::string_view summary, const std::string& body, bool open = false) {
  return fmt::format("<details{}><summary>{}</summary>\n{}</details>\n", open ? " open" : "",
                     escape_xml(summary), body);
}

std::string outcome_word(const TrialPage& page) {
  const PlanEntry& entry = page.view.entry;
  if (!entry.admitted) return fmt::format("{} by {}", to_string(entry.verdict), entry.rule);
  if (!page.row || page.row->state != State::kFinished) return "not run yet";
  std::string out(to_string(page.row->outcome));
  if (page.row->oom_kind) out += fmt::format(" ({})", to_string(*page.row->oom_kind));
  return out;
}

std::string outcome(const TrialPage& page) {
  const PlanEntry& entry = page.view.entry;
  std::string out = fmt::format("<p class=\"winner\"><b>{}</b></p>\n", escape_xml(outcome_word(page)));
  const std::string& reason = entry.admitted && page.row ? page.row->reason : entry.reason;
  if (!reason.empty()) out += parts::paragraph(reason);
  if (page.row) {
    if (page.row->state == State::kFinished && page.row->outcome == Outcome::kOk)
      out += parts::facts_of(*page.row, Names(std::span(&*page.row, 1)));
    std::string measured;
    for (const auto& line : measured_lines(*page.row, page.provenance ? &*page.provenance : nullptr))
      measured += (measured.empty() ? "" : "; ") + line;
    if (page.attempt) out += fmt::format("<p class=\"small\">Measured: {}.</p>\n", escape_xml(measured));
  }
  if (entry.admitted)
    out += fmt::format("<p class=\"small\">Admitted by the plan, number {} in the run order.</p>\n",
                       entry.order + 1);
  return out;
}

// Axes, those at their defaults apart, then the grid's own labels.
std::string settings(const TrialPage& page) {
  const PlanEntry& entry = page.view.entry;
  ResultRow row;
  row.trial = entry.trial;
  const Names names({});
  Table given, defaults;
  given.columns = defaults.columns = {"setting", "value", "key"};
  for (const Column& c : columns()) {
    if (c.role != Role::kAxis) continue;
    const Value value = c.get(row);
    if (value.index() == 0) continue;
    const std::string text = c.type == "flag" ? (std::get<i64>(value) != 0 ? "true" : "false") : show(value);
    const bool unchanged = c.key != "model" && value == c.default_value;
    (unchanged ? defaults : given).rows.push_back({names.of(c.key), text, std::string(c.key)});
  }
  const auto labels = label_members(entry.trial.labels);
  for (const auto& [name, value] : labels.items())
    if (is_label_name(name))
      given.rows.push_back({safe_text(name),
                            safe_text(value.is_string() ? value.get<std::string>() : value.dump()),
                            std::string("the grid's own")});
  std::string out = parts::html_table(given, names);
  if (!defaults.rows.empty())
    out += details(fmt::format("{} more at their defaults", defaults.rows.size()),
                   parts::html_table(defaults, names));
  if (!page.view.command.empty()) out += "<h3>Command</h3>\n" + parts::block(page.view.command);
  if (!entry.source.empty())
    out += fmt::format("<p class=\"small\">From {}.</p>\n", escape_xml(entry.source));
  ResultRow as_row = page.row.value_or(row);
  as_row.trial_id = entry.id;
  return out + details("As a grid file",
                       parts::block(as_grid_yaml(
                           as_row, {.swept = {}, .measure = measure_of(page.sweep, page.options)})));
}

std::string memory(const TrialPage& page) {
  const Metrics none;
  const Metrics& m = page.row ? page.row->metrics : none;
  const auto predicted = m.predicted_bytes ? m.predicted_bytes : page.view.entry.predicted.bytes;
  if (!predicted && !m.peak_allocated_bytes) return "";
  const bool ok = page.row && page.row->outcome == Outcome::kOk && page.row->state == State::kFinished;
  const auto device = page.row ? device_memory(*page.row) : std::nullopt;
  i64 largest = 0;
  for (const auto& bytes : {predicted, m.peak_allocated_bytes, m.peak_reserved_bytes, device})
    largest = std::max(largest, bytes.value_or(0));
  const Scale scale = scale_for("bytes", static_cast<double>(largest));
  SpanChart chart{.title = "Memory of the fullest rank",
                  .x = scale.unit + " of the fullest rank",
                  .rows = {},
                  .kinds = {"predicted", "", "", "measured", "device"}};
  const auto bar = [&](std::string name, std::size_t kind, const std::optional<i64>& bytes) {
    if (!bytes) return;
    const std::string text = fmt::format("{}: {}", name, human_bytes(static_cast<double>(*bytes)));
    chart.spans.push_back({chart.rows.size(), kind, 0, static_cast<double>(*bytes) * scale.factor, text});
    chart.rows.push_back(text);
  };
  bar("predicted", 0, predicted);
  bar(ok ? "peak allocated" : "had reached", 3, m.peak_allocated_bytes);
  bar("peak reserved", 3, m.peak_reserved_bytes);
  bar("device memory", 4, device);
  std::string out = figure(chart);
  if (ok && predicted && m.peak_allocated_bytes && *m.peak_allocated_bytes > 0)
    out += parts::paragraph(fmt::format(
        "The prediction is {} off the peak that was allocated{}.",
        signed_percent(static_cast<double>(*predicted) / static_cast<double>(*m.peak_allocated_bytes) - 1),
        m.peak_rank ? fmt::format(", that of rank {}", *m.peak_rank) : ""));
  else if (predicted && m.peak_allocated_bytes)
    out += parts::paragraph(
        "It did not end well: what it had reached is a lower bound, no check of the prediction.");
  return out;
}

// Every metric that has a value.
std::string metrics(const TrialPage& page) {
  if (!page.row) return "";
  const Names names(std::span(&*page.row, 1));
  Table table;
  table.columns = {"metric", "value", "key"};
  for (const Column& c : columns()) {
    const Value value = c.role == Role::kMetric ? c.get(*page.row) : Value{};
    if (value.index() == 0) continue;
    const auto figure = number(value);
    const Scale scale = scale_for(c.unit, std::abs(figure.value_or(0)));
    table.rows.push_back(
        {names.of(c.key),
         figure ? fmt::format("{}{}{}", show(value, scale), scale.unit.empty() ? "" : " ", scale.unit)
                : show(value),
         std::string(c.key)});
  }
  return table.rows.empty()
             ? ""
             : details(fmt::format("{} metrics", table.rows.size()), parts::html_table(table, names));
}

std::string attempts(const TrialPage& page) {
  std::string out;
  for (const ExplainAttempt& one : page.view.attempts) {
    if (page.attempt == one.id && page.records.end && page.records.end->started_unix_ns > 0) {
      const AttemptEnd& end = *page.records.end;
      out += fmt::format("<p class=\"small\">Attempt {} ran from {} for {}.</p>\n", one.id,
                         utc_time(end.started_unix_ns),
                         duration(static_cast<double>(end.ended_unix_ns - end.started_unix_ns) / 1e9));
    }
    out += parts::block(attempt_text(one, page.view.final_attempt == one.id, page.view.entry.trial.world()));
  }
  return out;
}

std::string logs(const TrialPage& page) {
  std::string out;
  std::size_t shown = 0;
  for (const RankExit& exit : page.records.exits) {
    if (exit.log_tail.empty() || ++shown > kMostLogs) continue;
    out +=
        details(fmt::format("the log of rank {} ends", exit.rank), parts::block(exit.log_tail), shown == 1);
  }
  if (shown > kMostLogs) out += parts::paragraph(fmt::format("{} more ranks have one.", shown - kMostLogs));
  return out.empty() ? ""
                     : out + parts::block(fmt::format("sweep logs {} {} --db {}\n", page.view.entry.id,
                                                      shell_word(safe_text(page.sweep)),
                                                      shell_word(safe_text(page.db))));
}

std::string events(const TrialPage& page) {
  std::string out;
  for (const std::string& event : page.view.events) out += fmt::format("<li>{}</li>\n", escape_xml(event));
  return out.empty() ? "" : fmt::format("<ul class=\"small\">\n{}</ul>\n", out);
}

}  // namespace

Expected<TrialPage> trial_page(store::Store& store, const store::SweepRow& sweep,
                               const std::string& id_prefix) {
  TrialPage out;
  out.sweep = sweep.name, out.question = sweep.question, out.options = sweep.options;
  auto view = explain_view(store, sweep.id, id_prefix);
  if (!view) return tl::unexpected<Error>(view.error());
  out.view = std::move(*view);
  const std::string& id = out.view.entry.id;
  auto row = store.result(sweep.id, id);
  if (!row) return tl::unexpected<Error>(row.error());
  out.row = std::move(*row);
  if (out.view.final_attempt)
    out.attempt = out.view.final_attempt;
  else if (!out.view.attempts.empty())
    out.attempt = out.view.attempts.back().id;
  if (!out.attempt) return out;
  auto records = store.records_of(*out.attempt);
  if (!records) return tl::unexpected<Error>(records.error());
  out.records = std::move(*records);
  auto from = store.provenance(sweep.id, std::vector<std::string>{id});
  if (!from) return tl::unexpected<Error>(from.error());
  if (!from->empty()) out.provenance = std::move(from->front());
  return out;
}

std::string trial_html(const TrialPage& page) {
  const std::string& id = page.view.entry.id;
  std::string body = section("outcome", "Outcome", outcome(page));
  body += section("settings", "Settings", settings(page));
  body += section("time", "Where the time of a step goes, by rank", parts::step_by_rank(page));
  body += section("schedule", "The pipeline's schedule", parts::pipeline_schedule(page));
  body += section("steps", "Step by step", parts::steps(page));
  body += section("memory", "Memory", memory(page));
  body += section("load", "Load over time", parts::load(page));
  body += section("nodes", "Nodes", parts::nodes(page));
  body += section("ranks", "Ranks", parts::ranks(page));
  body += section("effective", "Settings that were really used", parts::effective_settings(page));
  body += section("metrics", "All metrics", metrics(page));
  body += section("attempts", "Attempts", attempts(page));
  body += section("log", "Logs", logs(page));
  body += section("events", "Events", events(page));
  body +=
      section("again", "This page again",
              parts::block(fmt::format("sweep explain {} {} --db {} -o trial.html\n", id,
                                       shell_word(safe_text(page.sweep)), shell_word(safe_text(page.db)))));
  std::string lead;
  if (!page.back.empty())
    lead += fmt::format("<p class=\"meta\"><a href=\"{}\">all trials</a></p>\n", escape_xml(page.back));
  lead += fmt::format("<p class=\"question\">{}</p>\n", escape_xml(page.sweep));
  if (!page.question.empty()) lead += parts::paragraph(page.question);
  lead += fmt::format("<p class=\"meta\">{}</p>\n", escape_xml(page.made));
  return framed_page({.window = fmt::format("{} of {}", id, page.sweep),
                      .heading = "Trial " + id,
                      .rehearsed = is_rehearsal(page.sweep),
                      .lead = std::move(lead),
                      .body = std::move(body),
                      .draws = true});
}

}  // namespace sweep::answers
