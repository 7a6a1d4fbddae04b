// The report's check of the plan: each prediction that a measurement followed, with its error.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/quantiles.h"
#include "base/text.h"
#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/pages/report_parts.h"

namespace sweep::answers::parts {
namespace {

// Predictions of the built-in step's memory beyond these are named in the report. docs/predict.md has what random
// configurations showed.
constexpr double kMostBelow = 0.08, kMostAbove = 0.15;

struct Checked {
  const ResultRow* row = nullptr;
  std::optional<double> memory, time;  // predicted over measured, less 1
  bool ran_out = false;                // its peak is what it reached before: no measurement of what it needs
};

template <class T>
std::optional<double> error_of(const std::optional<T>& predicted, const std::optional<T>& measured) {
  if (!predicted || !measured || *measured <= 0) return std::nullopt;
  return static_cast<double>(*predicted) / static_cast<double>(*measured) - 1;
}

std::vector<Checked> checked(std::span<const ResultRow> rows) {
  std::vector<Checked> out;
  for (const ResultRow& row : rows) {
    const auto& m = row.metrics;
    Checked c;
    c.row = &row;
    const auto outcome = cell_outcome_of(row);
    if (outcome == CellOutcome::kOk)
      c.memory = error_of(m.predicted_bytes, m.peak_allocated_bytes),
      c.time = error_of(m.predicted_ms, m.step_ms);
    c.ran_out = outcome == CellOutcome::kOom && m.predicted_bytes && m.peak_allocated_bytes;
    if (c.memory || c.time || c.ran_out) out.push_back(c);
  }
  const auto off = [](const Checked& c) { return std::pair(c.ran_out, -std::abs(c.memory.value_or(0))); };
  std::ranges::stable_sort(out, {}, off);
  return out;
}

// A command's memory is its own: nothing is stated of it.
bool drifts(const Checked& c) {
  return c.row->trial.workload == Workload::kStep && c.memory &&
         (*c.memory < -kMostBelow || *c.memory > kMostAbove);
}

std::string median_of(std::vector<double> errors) {
  for (double& e : errors) e = std::abs(e);
  return fmt::format("{:.1f} %", 100 * *median(std::move(errors)));
}

Value percent(const std::optional<double>& error) {
  return error ? Value{signed_percent(*error)} : Value{};
}

Table table_of(const std::vector<Checked>& all, std::span<const Field> differ) {
  Table table;
  table.columns = {"configuration",   "trial",          "memory predicted", "memory measured",
                   "error of memory", "step predicted", "step measured",    "error of time"};
  const auto bytes = [](const std::optional<i64>& n) {
    return n ? Value{human_bytes(static_cast<double>(*n))} : Value{};
  };
  const auto ms = [](const std::optional<double>& n) {
    return n ? Value{fmt::format("{:.4g} ms", *n)} : Value{};
  };
  for (const Checked& c : all) {
    const auto& m = c.row->metrics;
    table.rows.push_back(
        {name_of(*c.row, differ), c.row->trial_id, bytes(m.predicted_bytes),
         c.ran_out
             ? Value{fmt::format("≥ {} (ran out)", human_bytes(static_cast<double>(*m.peak_allocated_bytes)))}
             : bytes(m.peak_allocated_bytes),
         percent(c.memory), ms(m.predicted_ms), ms(m.step_ms), percent(c.time)});
  }
  return table;
}

}  // namespace

std::string predictions(const ReportInput& in) {
  std::string out;
  for (const std::string& sentence : in.shortcuts) out += paragraph(sentence + ".");
  const auto all = checked(in.rows);
  if (all.empty()) return out;
  std::vector<double> memory, time;
  for (const Checked& c : all) {
    if (c.memory) memory.push_back(*c.memory);
    if (c.time) time.push_back(*c.time);
  }
  std::vector<std::string> errors;
  if (!memory.empty())
    errors.push_back(fmt::format("of {} predictions of memory: {}", memory.size(), median_of(memory)));
  if (!time.empty())
    errors.push_back(fmt::format("of {} predictions of step time: {}", time.size(), median_of(time)));
  if (!errors.empty()) out += paragraph(fmt::format("Median error {}.", fmt::join(errors, "; ")));
  if (const auto count = std::ranges::count(all, true, &Checked::ran_out); count > 0)
    out += paragraph(
        fmt::format("{} ran out of memory: what {} had reached (≥) is a lower bound of what is needed, and "
                    "counts as no error of a prediction.",
                    counted(count, "configuration"), count == 1 ? "it" : "they"));
  if (const auto count = std::ranges::count_if(all, drifts); count > 0)
    out +=
        paragraph(fmt::format("Warning: the memory of {} configuration{} is further off than stated (more "
                              "than {:.0f} % below or {:.0f} % above what was "
                              "measured). `sweep plan GRID --memory TRIAL` shows the parts of a prediction.",
                              count, count == 1 ? "" : "s", 100 * kMostBelow, 100 * kMostAbove));
  return out +
         fmt::format("<details{}><summary>each of them</summary><div class=\"wide\">{}</div></details>\n",
                     all.size() <= 20 ? " open" : "",
                     html_table(table_of(all, varying(in.rows)), Names(in.rows)));
}

}  // namespace sweep::answers::parts
