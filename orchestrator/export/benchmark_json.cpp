#include "orchestrator/export/benchmark_json.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "orchestrator/export/text.h"
#include "orchestrator/export/tracker_run.h"
#include "schema/rehearsal.h"
#include "schema/values.h"

namespace sweep::exports {
namespace {

constexpr std::size_t kLongestName = 1000;  // Bencher takes 1024

// Numbers about the measuring or the plan, not about how fast the trial is.
const std::set<std::string_view> kNotFollowed = {
    "step_ms",    "step_ms_ci_low",  "step_ms_ci_high", "tokens_per_s",    "timed_steps",    "peak_rank",
    "peak_flops", "predicted_bytes", "predicted_ms",    "oom_asked_bytes", "formula_version"};

Json measures_of(const ResultRow& row) {
  Json out = Json::object();
  const Metrics& m = row.metrics;
  if (m.step_ms) {
    out["latency"] = {{"value", *m.step_ms * 1e6}};
    if (m.step_ms_ci_low) out["latency"]["lower_value"] = *m.step_ms_ci_low * 1e6;
    if (m.step_ms_ci_high) out["latency"]["upper_value"] = *m.step_ms_ci_high * 1e6;
  }
  if (m.tokens_per_s) out["throughput"] = {{"value", *m.tokens_per_s}};
  for (const Column& c : columns()) {
    if (c.role != Role::kMetric || kNotFollowed.contains(c.key)) continue;
    if (const auto value = number(c.get(row))) out[std::string(c.key)] = {{"value", *value}};
  }
  return out;
}

}  // namespace

std::vector<NamedRow> named_rows(const std::vector<ResultRow>& rows, std::span<const std::string> names) {
  std::vector<NamedRow> out;
  std::map<std::string, int> uses;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out.push_back({cut_to(valid_utf8(names[i]), kLongestName), &rows[i]});
    ++uses[out.back().name];
  }
  for (NamedRow& r : out)
    if (uses[r.name] > 1) r.name += " " + r.row->trial_id;
  return out;
}

std::string bencher_json(std::span<const NamedRow> rows) {
  Json out = Json::object();
  for (const NamedRow& r : rows) {
    if (r.row->state != State::kFinished || r.row->outcome != Outcome::kOk) continue;
    if (Json measures = measures_of(*r.row); !measures.empty()) out[r.name] = std::move(measures);
  }
  return out.dump(2) + '\n';
}

std::string github_benchmark_json(std::span<const NamedRow> rows, const Column& metric) {
  Json out = Json::array();
  for (const NamedRow& r : rows) {
    const auto value = number(metric.get(*r.row));
    if (r.row->state != State::kFinished || r.row->outcome != Outcome::kOk || !value) continue;
    Json entry = {
        {"name", r.name}, {"unit", metric.unit.empty() ? metric.key : metric.unit}, {"value", *value}};
    const Metrics& m = r.row->metrics;
    if (metric.key == "step_ms" && m.step_ms_ci_low && m.step_ms_ci_high)
      entry["range"] = fmt::format("± {}", shortest((*m.step_ms_ci_high - *m.step_ms_ci_low) / 2));
    entry["extra"] = "trial " + r.row->trial_id;
    if (is_rehearsal(r.row->sweep))
      entry["extra"] = fmt::format("trial {}; {}", r.row->trial_id, kRehearsedNote);
    out.push_back(std::move(entry));
  }
  return out.dump(2) + '\n';
}

}  // namespace sweep::exports
