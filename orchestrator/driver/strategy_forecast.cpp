#include "orchestrator/driver/strategy_forecast.h"

#include <fmt/format.h>

#include <algorithm>

#include "orchestrator/plan/planner.h"
#include "schema/rehearsal.h"

namespace sweep::driver {

std::string strategy_sentence(const sweep::Strategy& s) {
  return fmt::format(fmt::runtime(info_of(s.kind).bounds), fmt::arg("max_trials", s.max_trials),
                     fmt::arg("least_gain", 100 * s.least_gain));
}

search::Most most_run(const std::vector<PlanEntry>& entries, const sweep::Strategy& strategy) {
  std::vector<search::Candidate> candidates;
  std::vector<double> gpu_hours;
  for (const PlanEntry& entry : entries) {
    if (!entry.admitted) continue;
    candidates.push_back(search::candidate_of(entry, plan::memory_share(entry)));
    gpu_hours.push_back(entry.predicted.seconds.value_or(0) / 3600 *
                        static_cast<double>(entry.trial.world()));
  }
  return search::most_trials(candidates, strategy, gpu_hours);
}

namespace {
i64 ended_trials(const run::Snapshot& shot) {
  i64 ended = shot.counts.ran_unsupported;
  for (const auto& [outcome, count] : shot.counts.by_outcome)
    ended += outcome == Outcome::kPruned || outcome == Outcome::kUnsupported ? 0 : count;
  return ended;
}
}  // namespace

std::optional<double> seconds_of_all(const store::SweepRow& sweep, const run::Snapshot& shot) {
  return is_rehearsal(sweep.name) && ended_trials(shot) == 0 ? std::nullopt : shot.seconds_left;
}

Expected<std::optional<double>> seconds_left(store::Store& store, const store::SweepRow& sweep,
                                             const run::Snapshot& shot) {
  const auto of_all = seconds_of_all(sweep, shot);
  const sweep::Strategy strategy = kept_strategy(sweep.options);
  if (strategy.runs_all() || !of_all || shot.counts.pending == 0) return of_all;
  SWEEP_GET(const auto plan, store.plan(sweep.id));
  const i64 waiting = shot.counts.pending + shot.counts.running;
  const i64 left = std::clamp<i64>(most_run(plan, strategy).trials - ended_trials(shot), 0, waiting);
  return std::optional(*of_all * static_cast<double>(left) / static_cast<double>(waiting));
}

}  // namespace sweep::driver
