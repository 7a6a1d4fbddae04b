#include "orchestrator/answers/exchange.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/fail.h"
#include "base/text.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/metrics/derive.h"

namespace sweep::answers {
namespace {

// A rate above what the hardware can do is a slip in a unit, in the model's dimensions or in the hardware.
Expected<void> check_peak(const ImportedRow& row) {
  const Metrics& m = row.result->metrics;
  const auto& t = row.entry.trial;
  if (m.mfu.value_or(0) <= 1) return {};
  return fail(
      fmt::format("{}: {} tokens/s per rank are {} times what {} can compute in {} for model '{}'; check the "
                  "unit of the column (--map COLUMN=FIELD:UNIT), the hardware and the model's dimensions "
                  "(--model)",
                  row.entry.source, significant(m.tokens_per_s_gpu.value_or(0)), significant(*m.mfu),
                  t.hardware, t.precision, t.model));
}

std::string by_outcome(const std::map<Outcome, i64>& counts) {
  std::string out;
  for (const auto& [outcome, count] : counts)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, to_string(outcome));
  return out.empty() ? "none" : out;
}

}  // namespace

Expected<ImportReport> derive_imported(std::vector<ImportedRow>& rows,
                                       const std::map<std::string, double>& usd_per_node_hour) {
  std::unordered_map<std::string_view, const ImportedRow*> last;
  for (auto& row : rows) {
    last[row.entry.id] = &row;
    if (!row.result) continue;
    Metrics& m = row.result->metrics;
    if (row.result->outcome != Outcome::kOk) {
      m.formula_version = metrics::kFormulaVersion;
      continue;
    }
    const auto own = usd_per_node_hour.find(row.entry.trial.hardware);
    if (!m.usd_per_node_hour && own != usd_per_node_hour.end()) m.usd_per_node_hour = own->second;
    m = metrics::derive_from_rate(row.entry.trial, m);
    SWEEP_TRY(check_peak(row));
  }
  ImportReport out;
  for (const auto& [id, row] : last) {
    ++out.outcomes[row->result ? row->result->outcome : row->entry.verdict];
    out.with_mfu += row->result && row->result->metrics.mfu;
  }
  return out;
}

std::string import_text(const ImportReport& r) {
  std::string out;
  for (const auto& note : r.notes) out += safe_text(note) + '\n';
  if (r.left_out > 0) out += fmt::format("left out: {} without an answer\n", counted(r.left_out, "row"));
  if (r.counts.repeated > 0)
    out += fmt::format("more than one row: {}; all are kept, the last one counts\n",
                       counted(r.counts.repeated, "configuration"));
  if (r.counts.replaced > 0)
    out += fmt::format("replaced: {} of an earlier import of these lines\n",
                       counted(r.counts.replaced, "configuration"));
  return out + fmt::format("{}: sweep '{}' in {}: {} ({}), {} new, {} known; mfu computed for {}\n",
                           safe_text(r.file), safe_text(r.sweep), safe_text(r.db),
                           counted(r.counts.trials, "configuration"), by_outcome(r.outcomes),
                           counted(r.counts.added, "result"), r.counts.known, r.with_mfu);
}

nlohmann::json import_json(const ImportReport& r) {
  nlohmann::json outcomes = nlohmann::json::object();
  for (const auto& [outcome, count] : r.outcomes) outcomes[std::string(to_string(outcome))] = count;
  return {{"file", r.file},
          {"sweep", r.sweep},
          {"db", r.db},
          {"configurations", r.counts.trials},
          {"outcomes", outcomes},
          {"results_new", r.counts.added},
          {"results_known", r.counts.known},
          {"repeated", r.counts.repeated},
          {"replaced", r.counts.replaced},
          {"rows_left_out", r.left_out},
          {"with_mfu", r.with_mfu},
          {"notes", r.notes}};
}

std::string merge_text(const MergeReport& r) {
  std::string out;
  for (std::size_t i = 0; i < r.from.size(); ++i) {
    const auto& c = r.counts[i];
    for (const auto& note : c.notes) out += "note: " + note + '\n';
    if (c.unfinished > 0)
      out += fmt::format(
          "note: left out of '{}': {} without an end; `sweep resume --db {}` finishes what is unfinished\n",
          r.from[i], counted(c.unfinished, "attempt"), r.from[i]);
    out += fmt::format("{}: from {}: {}, {}, {} new; {} replaced, {} known\n", r.into, r.from[i],
                       counted(c.sweeps, "sweep"), counted(c.trials, "trial"), counted(c.attempts, "result"),
                       counted(c.replaced, "result"), c.known);
  }
  return out;
}

nlohmann::json merge_json(const MergeReport& r) {
  nlohmann::json from = nlohmann::json::array();
  for (std::size_t i = 0; i < r.from.size(); ++i) {
    const auto& c = r.counts[i];
    from.push_back({{"from", r.from[i]},
                    {"sweeps_new", c.sweeps},
                    {"trials_new", c.trials},
                    {"results_new", c.attempts},
                    {"events_new", c.events},
                    {"results_replaced", c.replaced},
                    {"results_known", c.known},
                    {"unfinished", c.unfinished},
                    {"notes", c.notes}});
  }
  return {{"into", r.into}, {"merged", from}};
}

}  // namespace sweep::answers
