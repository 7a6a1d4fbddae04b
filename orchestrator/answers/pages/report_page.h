// Report: one self-contained HTML page that answers a sweep's question: the best configuration and its gain,
// its cost, the heatmap, what failed, where memory, batch and node count end it, where it was measured, how
// to repeat it. No network; one script, which copies; it reads and prints without it.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/statistics/node_times.h"
#include "schema/provenance.h"
#include "schema/sweep_options.h"

namespace sweep::answers {

// The configuration as another trainer takes it (orchestrator/interop writes it).
struct ForeignConfig {
  std::string trainer, text;
  std::vector<std::string> unsupported_settings;
};

struct ReportInput {
  std::string sweep, question, grid_path, grid_text;
  SweepOptions options;
  std::string db;  // the path that the command named
  std::string made_at, version;
  std::span<const ResultRow> rows;
  std::vector<std::string> shortcuts;  // trials stopped early, audits of pruning: one sentence each
  std::vector<Environment> environments;
  std::function<std::optional<Provenance>(const ResultRow&)> provenance_of;     // asked for a few rows
  std::function<std::vector<ForeignConfig>(const ResultRow&)> foreign_configs;  // asked for the winners
  std::function<std::vector<NodeTime>(const ResultRow&)> node_times_of;  // asked for a few over several kinds
  std::string metric = "tokens_per_s_gpu";
  double headroom = 0.05;  // share of device memory to stay free: the line of the memory chart
  std::string heatmap_rows, heatmap_cols;  // empty: chosen
  std::string beside;                      // another sweep to show beside this one; empty: none
  std::span<const ResultRow> beside_rows;
  std::vector<std::string>
      beside_match;  // axes that make two results one configuration; empty: all both know
};

// Error: an unknown metric or axis, or nothing in common with the sweep beside.
Expected<std::string> report_html(const ReportInput&);

}  // namespace sweep::answers
