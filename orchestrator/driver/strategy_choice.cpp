#include "orchestrator/driver/strategy_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/files.h"
#include "base/proc.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/driver/strategy_forecast.h"
#include "schema/sweep_options.h"
#include "schema/version.h"

namespace sweep::driver {
namespace {

std::string this_build() {
  return std::string(kVersion) + " " + kBuild;
}

// A rehearsal measures nothing: of a strategy it keeps what finds sizes that fit.
std::optional<sweep::Strategy> rehearsed(const sweep::Strategy& wanted) {
  if (!wanted.finds_what_fits()) return std::nullopt;
  sweep::Strategy sizes;
  if (!wanted.auto_micro_batch) sizes.kind = wanted.kind;
  sizes.auto_micro_batch = wanted.auto_micro_batch;
  sizes.at_once = wanted.at_once, sizes.history = sizes.skip_recompute = false;
  return sizes;
}

}  // namespace

std::optional<sweep::Strategy> chosen_strategy(const grid::Grid& grid, const StrategyRequest& o) {
  if (!grid.strategy && !grid.auto_micro_batch && !o.kind && !o.max_trials && !o.audit) return std::nullopt;
  sweep::Strategy out = grid.strategy.value_or(sweep::Strategy());
  if (o.kind) out.kind = *o.kind;
  if (o.max_trials) out.max_trials = *o.max_trials;
  out.auto_micro_batch = grid.auto_micro_batch;
  if (o.rehearses) return rehearsed(out);
  if (o.audit) out.audit = *o.audit;
  return out;
}

Expected<void> can_decide(const sweep::Strategy& strategy, const StrategyRequest& o) {
  if (const auto why = strategy.conflict()) return fail(ErrorKind::kConflict, "strategy", std::string(*why));
  if (o.max_trials && !o.rehearses && strategy.scope() != StrategyScope::kQuestion)
    return fail(
        ErrorKind::kConflict, "--max-trials",
        fmt::format("--max-trials bounds {}; strategy {} has no such bound, so leave it out, or name one of "
                    "them with --strategy",
                    strategies_of(StrategyScope::kQuestion), to_string(strategy.kind)));
  return {};
}

Expected<std::set<std::string>> answered_trials(store::Store& store, const store::SweepRow& sweep,
                                                const sweep::Strategy& strategy) {
  SWEEP_GET(const auto rows, store.results(sweep.id));
  const bool same = kept_strategy(sweep.options) == strategy;
  std::set<std::string> out;
  for (const ResultRow& row : rows)
    if (row.state == State::kFinished && !row.again && (same || row.outcome != Outcome::kPruned))
      out.insert(row.trial_id);
  return out;
}

search::Most most_left(const std::vector<PlanEntry>& entries, const sweep::Strategy& strategy,
                       const std::set<std::string>& answered) {
  if (answered.empty()) return most_run(entries, strategy);
  std::vector<PlanEntry> left;
  for (const PlanEntry& entry : entries)
    if (!answered.contains(entry.id)) left.push_back(entry);
  return most_run(left, strategy);
}

Expected<std::string> reuse_answers(SweepDriver& driver, const LaunchChoice& choice) {
  const std::string host = choice.config->uses_this_machine() ? proc::host_name() : "";
  SWEEP_GET(const auto reused, driver.store().reuse(driver.sweep().id, this_build(), host));
  const auto from = reused.sweeps.empty() ? "" : fmt::format(" ({})", fmt::join(reused.sweeps, ", "));
  auto text = fmt::format("{} trials have their answers from earlier sweeps{} and are not run again",
                          reused.trials, from);
  if (reused.trials > 0) SWEEP_TRY(driver.store().add_event(driver.sweep().id, EventKind::kReuse, text));
  return text;
}

std::vector<std::string> changes_since(const store::SweepRow& before, const MeasurePlan* measure) {
  const SweepOptions& kept = before.options;
  std::vector<std::string> out;
  if (measure && kept.measure.value_or(MeasurePlan()) != *measure)
    out.emplace_back(
        "the measuring plan changed; earlier results are kept as they are "
        "(`sweep resume --retry ok` measures them again)");
  if (!kept.build.empty() && kept.build != this_build())
    out.push_back(fmt::format("earlier results of this sweep come from build {}; this is {}", kept.build,
                              this_build()));
  const auto grid =
      measure || before.grid_path.empty() ? std::string() : files::read(before.grid_path).value_or("");
  if (!grid.empty() && grid != before.grid_text)
    out.push_back(
        fmt::format("{0} is another grid now than the one that this sweep runs; `sweep run {0}` takes over "
                    "what changed",
                    answers::safe_text(before.grid_path)));
  return out;
}

}  // namespace sweep::driver
