// The report's comparison with another sweep: the configurations that both have, each metric of both side by side, and the
// largest batch before cudaMalloc retries on either side.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "orchestrator/answers/format.h"
#include "orchestrator/answers/pages/report_parts.h"
#include "orchestrator/answers/statistics/batch_curve.h"
#include "orchestrator/answers/statistics/transfer.h"
#include "schema/rehearsal.h"

namespace sweep::answers::parts {
namespace {

constexpr std::string_view kBytes[] = {"peak_reserved_bytes", "peak_allocated_bytes",
                                       "memory_reported_bytes"};
constexpr std::string_view kTimes[] = {"step_ms", "tokens_per_s_gpu", "mfu"};

// Trials at the largest batch before cudaMalloc retries or an out-of-memory error.
std::set<std::string> starred(std::span<const ResultRow> rows) {
  std::set<std::string> out;
  for (const BatchCurve& curve : batch_curves(rows, setting_fields(rows)))
    if (curve.star) out.insert(curve.points[*curve.star].row->trial_id);
  return out;
}

std::string outcome_text(const ResultRow& row) {
  return row.state == State::kFinished ? std::string(to_string(row.outcome)) : "not run yet";
}

// "16 ★": the batch, the star, and the retries where they were counted.
Value end_of(const ResultRow& row, const std::set<std::string>& stars) {
  std::string out = outcome_text(row);
  if (row.outcome == Outcome::kOk && row.metrics.alloc_retries.value_or(0) > 0)
    out += fmt::format(", {} retries", *row.metrics.alloc_retries);
  return Value{out + (stars.contains(row.trial_id) ? " ★" : "")};
}

Value difference(std::optional<double> here, std::optional<double> there) {
  if (!here || !there || *there == 0) return {};
  return Value{signed_percent(*here / *there - 1)};
}

void add_metric(Table& table, const Transfer& found, const Field& metric, const Names& names) {
  double largest = 0;
  bool both = false;
  for (const auto& each : found.shared) {
    const auto here = number(metric.of(*each.a)), there = number(metric.of(*each.b));
    both |= here && there;
    largest = std::max({largest, std::fabs(here.value_or(0)), std::fabs(there.value_or(0))});
  }
  if (!both) return;
  const Scale scale = scale_for(metric.unit(), largest);
  const std::string head = names.with_unit(metric, scale);
  for (const std::string& column : {head + " here", head + " there", std::string("difference")})
    table.columns.push_back(column);
  const auto cell = [&](std::optional<double> value) { return value ? Value{scale(*value)} : Value{}; };
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const auto &a = *found.shared[i].a, &b = *found.shared[i].b;
    const auto here = a.outcome == Outcome::kOk ? number(metric.of(a)) : std::nullopt;
    const auto there = b.outcome == Outcome::kOk ? number(metric.of(b)) : std::nullopt;
    for (const Value& value : {cell(here), cell(there), difference(here, there)})
      table.rows[i].push_back(value);
  }
}

// Each setting's batches stand below one another, ascending.
void by_setting_and_batch(std::vector<SharedConfiguration>& shared, std::span<const Field> differ) {
  const auto less = [&](const SharedConfiguration& a, const SharedConfiguration& b) {
    const auto batch = [](const SharedConfiguration& each) { return each.a->trial.micro_batch_size; };
    for (const Field& field : differ) {
      if (field.name() == "micro_batch_size" || field.name() == "global_batch_size") continue;
      const Value x = field.of(*a.a), y = field.of(*b.a);
      if (x != y) return value_less(x, y);
    }
    return batch(a) < batch(b);
  };
  std::ranges::stable_sort(shared, less);
}

}  // namespace

Expected<std::string> beside(const ReportInput& in) {
  TransferOptions options;
  options.metric = in.metric, options.match = in.beside_match;
  SWEEP_GET(auto found, transfer(in.rows, in.beside_rows, options));
  std::vector<ResultRow> shared;
  for (const auto& each : found.shared) shared.push_back(*each.a);
  auto differ = varying(shared);
  std::erase_if(differ, [&](const Field& field) {
    return std::ranges::none_of(found.match, [&](const Field& each) { return each.name() == field.name(); });
  });
  by_setting_and_batch(found.shared, differ);
  const auto here = starred(in.rows), there = starred(in.beside_rows);
  Table table;
  table.columns = {"configuration", "outcome here", "outcome there"};
  for (const auto& each : found.shared)
    table.rows.push_back({name_of(*each.a, differ), end_of(*each.a, here), end_of(*each.b, there)});
  const Names names(in.rows);
  for (const std::string_view metric : kBytes) add_metric(table, found, Field(*find_column(metric)), names);
  const bool modelled = is_rehearsal(in.sweep) || is_rehearsal(in.beside);
  for (const std::string_view metric : kTimes)
    if (!modelled) add_metric(table, found, Field(*find_column(metric)), names);
  std::string out = paragraph(fmt::format("Here: {}. There: {}. In both: {}; only here: {}, only there: {}.",
                                          safe_text(in.sweep), safe_text(in.beside), found.shared.size(),
                                          found.alone_a, found.alone_b));
  out += html_table(table, names);
  return out + fmt::format(
                   "<p class=\"small\">★ the largest batch before cudaMalloc retries or an out-of-memory "
                   "error. Only "
                   "what ended ok has figures.{}</p>\n",
                   modelled ? " Times of a rehearsal are modelled: they are left out." : "");
}

}  // namespace sweep::answers::parts
