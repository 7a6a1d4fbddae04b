// Strategy: in which order the trials of a sweep run, and when enough of them have been run.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/integers.h"

namespace sweep {

enum class StrategyKind {
#define STRATEGY(name, ...) name,
#include "schema/strategies.def"
#undef STRATEGY
};

// The scope in which a strategy decides: nothing, since every trial is run; trials that differ by their
// micro-batch alone, or by their model alone; or trials of one model, hardware and sequence length, of which it looks
// for the best.
enum class StrategyScope { kEveryTrial, kLayout, kModels, kQuestion };

struct StrategyInfo {
  std::string_view word;
  StrategyScope scope;
  std::string_view sentence, bounds;  // words for people: schema/strategies.def
};
// Strategies in the order of StrategyKind.
inline constexpr StrategyInfo kStrategies[] = {
#define STRATEGY(name, word, scope, sentence, bounds) {#word, StrategyScope::scope, sentence, bounds},
#include "schema/strategies.def"
#undef STRATEGY
};
constexpr const StrategyInfo& info_of(StrategyKind kind) {
  return kStrategies[static_cast<std::size_t>(kind)];
}
constexpr std::string_view to_string(StrategyKind kind) {
  return info_of(kind).word;
}
// nullopt: no strategy has this word.
std::optional<StrategyKind> strategy_from(std::string_view word);
std::vector<std::string> strategy_words();
// "search and playbook": the words of those that decide on this.
std::string strategies_of(StrategyScope);
// "grid: every trial, ...; search: ..."
std::string strategy_sentences();

struct Strategy {
  StrategyKind kind = StrategyKind::kGrid;
  // search, playbook: the most trials of each model, hardware and sequence length.
  i64 max_trials = 20;
  // search: it stops when the expected gain of the best trial that is left is below this share.
  double least_gain = 0.01;
  // Trials that may run before the results of the others are known.
  i64 at_once = 1;
  // The grid says `micro_batch_size: auto`: of each layout only the sizes are run that show the largest that
  // fits and the fastest.
  bool auto_micro_batch = false;
  // An out-of-memory trial rules out larger micro-batches of its layout. nullopt: only if not every trial is
  // run.
  std::optional<bool> history{};
  // A trial with recomputation is not run if the same without it fits. nullopt: only strategies that ask for
  // the best trial alone do so.
  std::optional<bool> skip_recompute{};
  // Share of the trials pruned for memory, by history or by the strategy that are run anyway.
  double audit = 0;
  // Every trial of the plan is run, unless history says how it ends.
  bool runs_all() const { return scope() == StrategyScope::kEveryTrial; }
  StrategyScope scope() const {
    const auto own = info_of(kind).scope;
    return own == StrategyScope::kEveryTrial && auto_micro_batch ? StrategyScope::kLayout : own;
  }
  // It looks for the largest that fits, which a rehearsal can answer.
  bool finds_what_fits() const {
    return scope() == StrategyScope::kLayout || scope() == StrategyScope::kModels;
  }
  // nullopt, or why nothing can be decided.
  std::optional<std::string_view> conflict() const {
    if (scope() != StrategyScope::kModels || !auto_micro_batch) return std::nullopt;
    return "the strategy looks for the largest model at each micro-batch; give micro_batch_size its values "
           "instead of auto";
  }
  bool uses_history() const { return history.value_or(!runs_all()); }
  // Each trial that runs out of memory may rule out others, so smaller micro-batches run first, one at a time.
  bool is_grid_with_history() const { return runs_all() && uses_history(); }
  bool skips_recompute() const { return skip_recompute.value_or(scope() == StrategyScope::kQuestion); }
  bool operator==(const Strategy&) const = default;
};

}  // namespace sweep
