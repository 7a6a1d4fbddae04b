#include "orchestrator/cli/run_strategy.h"

#include <fmt/format.h>

#include <filesystem>
#include <ostream>

#include "orchestrator/answers/format.h"
#include "orchestrator/answers/statistics/best.h"
#include "orchestrator/driver/strategy_forecast.h"

namespace sweep::cli {

void add_strategy_options(CLI::App& c, StrategyFlags& o) {
  c.add_option_function<std::string>(
       "--strategy", [&o](const std::string& word) { o.wanted.kind = strategy_from(word); },
       strategy_sentences() + " (docs/search.md); absent: the grid's, else grid")
      ->check(CLI::IsMember(strategy_words()));
  c.add_option("--max-trials", o.wanted.max_trials,
               "of " + strategies_of(StrategyScope::kQuestion) +
                   ": the most trials of each model, hardware and sequence length")
      ->check(above_zero());
  c.add_option_function<std::string>(
       "--audit",
       [&o](const std::string& text) {
         o.wanted.audit = answers::parse_share(text, "share of an audit").value_or(0);
       },
       "also run this share of the trials pruned for memory, by history or by the strategy, to measure how "
       "often pruning is wrong (2%)")
      ->type_name("SHARE")
      ->check([](const std::string& text) {
        const auto share = answers::parse_share(text, "share of an audit");
        return share ? std::string() : share.error().message;
      });
  c.add_option("--usd", o.usd,
               "start nothing more when this much is spent, computed with the most expensive hardware of the "
               "sweep; a "
               "bound like "
               "--gpu-hours")
      ->check(above_zero());
  c.add_flag(
      "--reuse", o.reuse,
      "take the answers of other sweeps of this database for the same configurations, where build, measuring "
      "plan and hardware (for cpu: this host) are the same");
}

search::Most most_left(const std::vector<PlanEntry>& entries, const Strategy& strategy,
                       const SweepSelector& where) {
  std::set<std::string> answered;
  std::error_code ec;
  if (std::filesystem::exists(where.db, ec))
    if (const auto opened = open_sweep(where, store::Mode::kReadOnly))
      answered =
          driver::answered_trials(*opened->store, opened->sweep, strategy).value_or(std::set<std::string>());
  return driver::most_left(entries, strategy, answered);
}

Expected<void> begin_strategy(Io& io, driver::SweepDriver& driver, const grid::Grid& grid,
                              const driver::LaunchChoice& choice, const StrategyFlags& o) {
  const auto strategy = driver::chosen_strategy(grid, o.wanted);
  if (strategy && !strategy->runs_all())
    io.err << "strategy " << to_string(strategy->kind) << ": " << driver::strategy_sentence(*strategy)
           << '\n';
  if (!o.reuse) return {};
  SWEEP_GET(const auto reused, driver::reuse_answers(driver, choice));
  io.err << "reuse: " << answers::safe_text(reused) << '\n';
  return {};
}

void add_suggested(CLI::App& c, bool& suggested) {
  c.add_flag("--suggested", suggested,
             "axes that the grid leaves unset get the values of the best earlier result of its model in this "
             "database, on the nearest hardware and number of GPUs; nothing that the grid states changes");
}

void say_suggested(Io& io, const driver::Planned& planned) {
  for (const auto& line : planned.suggested) io.err << answers::safe_text(line) << '\n';
}

void say_changes(Io& io, const store::SweepRow& before, const MeasurePlan* measure) {
  for (const auto& change : driver::changes_since(before, measure)) io.err << "note: " << change << '\n';
}

}  // namespace sweep::cli
