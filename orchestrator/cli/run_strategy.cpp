#include "orchestrator/cli/run_strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <ostream>
#include <set>

#include "base/files.h"
#include "base/proc.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/statistics/best.h"
#include "schema/sweep_options.h"
#include "schema/version.h"

namespace sweep::cli {
namespace {

Expected<void> take_over_answers(Io& io, driver::SweepDriver& driver, const driver::LaunchChoice& choice) {
  const std::string host = choice.config->uses_this_machine() ? proc::host_name() : "";
  const auto reused = driver.store().reuse(driver.sweep().id, std::string(kVersion) + " " + kBuild, host);
  if (!reused) return tl::unexpected(reused.error());
  const auto from = reused->sweeps.empty() ? "" : fmt::format(" ({})", fmt::join(reused->sweeps, ", "));
  const auto text = fmt::format("{} trials have their answers from earlier sweeps{} and are not run again",
                                reused->trials, from);
  io.err << "reuse: " << answers::safe_text(text) << '\n';
  if (reused->trials == 0) return {};
  return driver.store().add_event(driver.sweep().id, "reuse", text);
}

// Trials that the database has answered: measured ones; with the same strategy as then also those that it left out.
std::set<std::string> answered(const std::string& db, const std::string& sweep, const Strategy& strategy) {
  std::set<std::string> out;
  std::error_code ec;
  if (!std::filesystem::exists(db, ec)) return out;
  const auto opened = open_sweep({db, sweep}, store::Mode::kReadOnly);
  const auto rows = opened ? opened->store->results(opened->sweep.id).value_or(std::vector<ResultRow>())
                           : std::vector<ResultRow>();
  const bool same = opened && kept_strategy(opened->sweep.options) == strategy;
  for (const ResultRow& row : rows)
    if (row.state == State::kFinished && !row.again && (same || row.outcome != Outcome::kPruned))
      out.insert(row.trial_id);
  return out;
}

}  // namespace

void add_strategy_options(CLI::App& c, StrategyFlags& o) {
  c.add_option("--strategy", o.kind,
               strategy_sentences() + " (docs/search.md); absent: the grid's, else grid")
      ->check(CLI::IsMember(strategy_words()));
  c.add_option("--max-trials", o.max_trials,
               "of " + strategies_of(StrategyScope::kQuestion) +
                   ": the most trials of each model, hardware and sequence length")
      ->check(above_zero());
  c.add_option(
       "--audit", o.audit,
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

std::optional<Strategy> chosen_strategy(const grid::Grid& grid, const StrategyFlags& o) {
  if (!grid.strategy && !grid.auto_micro_batch && o.kind.empty() && !o.max_trials && o.audit.empty())
    return std::nullopt;
  Strategy out = grid.strategy.value_or(Strategy());
  if (!o.kind.empty()) out.kind = *strategy_from(o.kind);
  if (o.max_trials) out.max_trials = *o.max_trials;
  out.auto_micro_batch = grid.auto_micro_batch;
  if (o.rehearses) {
    if (!out.finds_what_fits()) return std::nullopt;
    Strategy sizes;
    if (!out.auto_micro_batch) sizes.kind = out.kind;
    sizes.auto_micro_batch = out.auto_micro_batch;
    sizes.at_once = out.at_once, sizes.history = sizes.skip_recompute = false;
    return sizes;
  }
  if (!o.audit.empty()) out.audit = answers::parse_share(o.audit, "share of an audit").value_or(0);
  return out;
}

Expected<void> can_decide(const Strategy& strategy, const StrategyFlags& o) {
  if (const auto why = strategy.conflict()) return fail(ErrorKind::kConflict, "strategy", std::string(*why));
  if (o.max_trials && !o.rehearses && strategy.scope() != StrategyScope::kQuestion)
    return fail(
        ErrorKind::kConflict, "--max-trials",
        fmt::format("--max-trials bounds {}; strategy {} has no such bound, so leave it out, or name one of "
                    "them with --strategy",
                    strategies_of(StrategyScope::kQuestion), to_string(strategy.kind)));
  return {};
}

search::Most most_left(const std::vector<PlanEntry>& entries, const Strategy& strategy, const std::string& db,
                       const std::string& sweep) {
  const auto done = answered(db, sweep, strategy);
  if (done.empty()) return driver::most_run(entries, strategy);
  std::vector<PlanEntry> left;
  for (const PlanEntry& entry : entries)
    if (!done.contains(entry.id)) left.push_back(entry);
  return driver::most_run(left, strategy);
}

Expected<void> begin_strategy(Io& io, driver::SweepDriver& driver, const grid::Grid& grid,
                              const driver::LaunchChoice& choice, const StrategyFlags& o) {
  const auto strategy = chosen_strategy(grid, o);
  if (strategy && !strategy->runs_all())
    io.err << "strategy " << to_string(strategy->kind) << ": " << driver::strategy_sentence(*strategy)
           << '\n';
  return o.reuse ? take_over_answers(io, driver, choice) : Expected<void>();
}

void add_suggested(CLI::App& c, bool& suggested) {
  c.add_flag("--suggested", suggested,
             "axes that the grid leaves unset get the values of the best earlier result of its model in this "
             "database, on the nearest hardware and number of GPUs; nothing that the grid states changes");
}

void say_suggested(Io& io, const driver::Planned& planned) {
  for (const auto& line : planned.suggested) io.err << answers::safe_text(line) << '\n';
}

Expected<void> keep_suggested(driver::SweepDriver& driver, const driver::Planned& planned) {
  if (planned.suggested.empty() || planned.suggested_again) return {};
  return driver.store().add_event(driver.sweep().id, "suggested",
                                  fmt::format("{}", fmt::join(planned.suggested, "; ")));
}

void say_changes(Io& io, const store::SweepRow& before, const MeasurePlan* measure) {
  const SweepOptions& kept = before.options;
  const std::string now = std::string(kVersion) + " " + kBuild;
  if (measure && kept.measure.value_or(MeasurePlan()) != *measure)
    io.err << "note: the measuring plan changed; earlier results are kept as they are "
              "(`sweep resume --retry ok` measures them again)\n";
  if (!kept.build.empty() && kept.build != now)
    io.err << fmt::format("note: earlier results of this sweep come from build {}; this is {}\n", kept.build,
                          now);
  const auto grid =
      measure || before.grid_path.empty() ? std::string() : files::read(before.grid_path).value_or("");
  if (!grid.empty() && grid != before.grid_text)
    io.err << fmt::format(
        "note: {0} is another grid now than the one that this sweep runs; `sweep run {0}` takes over what "
        "changed\n",
        answers::safe_text(before.grid_path));
}

}  // namespace sweep::cli
