// Strategy: in which order the trials of a sweep run, and when enough of them have been run.
#pragma once
#include <array>
#include <optional>
#include <string_view>

#include "base/integers.h"

namespace sweep {

enum class StrategyKind {
  kGrid,      // every trial, the best predicted first
  kSearch,    // few trials: predictions, corrected after each result, choose the next one
  kBatch,     // of each layout the largest and the fastest micro-batch, by bisection
  kPlaybook,  // fit in memory, reach the global batch, tune throughput
};
inline constexpr std::array<std::string_view, 4> kStrategyWords = {"grid", "search", "batch", "playbook"};
constexpr std::string_view to_string(StrategyKind kind) {
  return kStrategyWords[static_cast<std::size_t>(kind)];
}
constexpr std::optional<StrategyKind> strategy_from(std::string_view word) {
  for (std::size_t i = 0; i < kStrategyWords.size(); ++i)
    if (kStrategyWords[i] == word) return static_cast<StrategyKind>(i);
  return std::nullopt;
}

struct Strategy {
  StrategyKind kind = StrategyKind::kGrid;
  // search: the most trials of each model, hardware and sequence length.
  i64 max_trials = 12;
  // search: it stops when the best trial that is left promises less than this share.
  double least_gain = 0.01;
  // Trials that may run before the results of the others are known.
  i64 at_once = 1;
  // The grid says `micro_batch_size: auto`: of each layout only the sizes are run that show the largest that
  // fits and the fastest.
  bool auto_micro_batch = false;
  // What an out-of-memory trial says of larger micro-batches of its layout is believed. Absent: unless every
  // trial is run.
  std::optional<bool> history{};
  // A trial with recomputation is not run where the same without it fits. Absent: by strategies that ask for
  // the best trial alone.
  std::optional<bool> skip_recompute{};
  // Share of the trials pruned for memory, by history or by the strategy that are run anyway.
  double audit = 0;
  // Every trial of the plan is run, unless history says how it ends.
  bool runs_all() const { return kind == StrategyKind::kGrid && !auto_micro_batch; }
  bool uses_history() const { return history.value_or(!runs_all()); }
  // Each trial that runs out of memory may rule out others, so smaller micro-batches run first, one at a time.
  bool is_grid_with_history() const { return runs_all() && uses_history(); }
  bool skips_recompute() const {
    return skip_recompute.value_or(kind == StrategyKind::kSearch || kind == StrategyKind::kPlaybook);
  }
  bool operator==(const Strategy&) const = default;
};

}  // namespace sweep
