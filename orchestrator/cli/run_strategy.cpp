#include "orchestrator/cli/run_strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>

#include "orchestrator/driver/machine.h"
#include "orchestrator/report/format.h"
#include "schema/version.h"

namespace sweep::cli {
namespace {

std::string sentence(const Strategy& s) {
  if (s.kind == StrategyKind::kBatch)
    return "the largest and the fastest micro-batch of each layout, by bisection";
  auto out = fmt::format("at most {} trials of each model, hardware and sequence length", s.max_trials);
  if (s.kind == StrategyKind::kSearch)
    out += fmt::format("; it ends when less than {:.2g} % is left to gain", 100 * s.least_gain);
  return out;
}

Expected<void> take_over_answers(Io& io, driver::SweepDriver& driver, const driver::LaunchChoice& choice) {
  const std::string host = choice.config->uses_this_machine() ? driver::this_host() : "";
  const auto reused = driver.store().reuse(driver.sweep().id, std::string(kVersion) + " " + kBuild, host);
  if (!reused) return tl::unexpected(reused.error());
  const auto from = reused->sweeps.empty() ? "" : fmt::format(" ({})", fmt::join(reused->sweeps, ", "));
  const auto text = fmt::format("{} trials have their answers from earlier sweeps{} and are not run again",
                                reused->trials, from);
  io.err << "reuse: " << report::safe_text(text) << '\n';
  if (reused->trials == 0) return {};
  return driver.store().add_event(driver.sweep().id, "reuse", text);
}

}  // namespace

void add_strategy_options(CLI::App& c, StrategyFlags& o) {
  c.add_option(
       "--strategy", o.kind,
       "grid: every trial, best predicted first; search: few trials, each chosen by the results so far; "
       "batch: the largest and the fastest micro-batch of each layout; playbook: fit in memory, reach the "
       "global batch, tune (docs/search.md); absent: the grid's, else grid")
      ->check(CLI::IsMember({"grid", "search", "batch", "playbook"}));
  c.add_option("--max-trials", o.max_trials,
               "of search and playbook: the most trials of each model, hardware and sequence length")
      ->check(CLI::PositiveNumber);
  c.add_option("--usd", o.usd,
               "start nothing more when this much is spent, at the dearest price of the sweep's hardware; a "
               "bound like "
               "--gpu-hours")
      ->check(CLI::PositiveNumber);
  c.add_flag(
      "--reuse", o.reuse,
      "take the answers of other sweeps of this database for the same configurations, where build, measuring "
      "plan and hardware (for cpu: this host) are the same");
}

std::optional<Strategy> chosen_strategy(const grid::Grid& grid, const StrategyFlags& o) {
  if (!grid.strategy && o.kind.empty() && !o.max_trials) return std::nullopt;
  Strategy out = grid.strategy.value_or(Strategy());
  if (!o.kind.empty()) out.kind = *strategy_from(o.kind);
  if (o.max_trials) out.max_trials = *o.max_trials;
  return out;
}

Expected<void> begin_strategy(Io& io, driver::SweepDriver& driver, const grid::Grid& grid,
                              const driver::LaunchChoice& choice, const StrategyFlags& o) {
  const auto strategy = chosen_strategy(grid, o);
  if (strategy && strategy->kind != StrategyKind::kGrid)
    io.err << "strategy " << to_string(strategy->kind) << ": " << sentence(*strategy) << '\n';
  return o.reuse ? take_over_answers(io, driver, choice) : Expected<void>();
}

}  // namespace sweep::cli
