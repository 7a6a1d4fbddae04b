#include "orchestrator/driver/remeasured.h"

#include <fmt/format.h>

#include <map>

#include "base/quantiles.h"
#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/statistics/statistics.h"
#include "orchestrator/metrics/steps.h"

namespace sweep::driver {
namespace {

std::optional<double> value_of(const Metrics& metrics, const std::string& metric) {
  ResultRow row;
  row.metrics = metrics;
  const Column* column = find_column(metric);
  return column ? answers::number(column->get(row)) : std::nullopt;
}

// The median step time of each repeat, in milliseconds.
std::vector<double> repeat_medians(const std::vector<RankRecord>& records, const Trial& trial) {
  std::map<i64, std::vector<double>> steps;
  for (const auto& step : metrics::whole_steps(records, metrics::ranks_needed(trial, trial.world())))
    if (!step.warmup && step.step_ns > 0)
      steps[step.repeat].push_back(static_cast<double>(step.step_ns) * 1e-6);
  std::vector<double> out;
  for (auto& [repeat, times] : steps) out.push_back(*median(std::move(times)));
  return out;
}

// The metric as it would be with each repeat's median in place of the attempt's.
Expected<std::vector<double>> repeat_values(store::Store& store, const store::AttemptRow& attempt,
                                            const Metrics& metrics, const std::string& metric) {
  const auto value = value_of(metrics, metric);
  const auto stored = store.records_of(attempt.id);
  if (!stored) return tl::unexpected(stored.error());
  std::vector<double> out;
  if (!value || !metrics.step_ms || *value <= 0) return out;
  const bool per_time = answers::follows_step(metric) == answers::FollowsStep::kInversely;
  for (const double median : repeat_medians(stored->records, attempt.attempt.trial))
    out.push_back(per_time ? *value * *metrics.step_ms / median : *value * median / *metrics.step_ms);
  return out;
}

}  // namespace

Expected<std::vector<answers::Remeasured>> remeasured(store::Store& store, i64 confirming,
                                                      std::span<const ResultRow> best,
                                                      const MeasurePlan& measure, const std::string& metric) {
  const auto shown = answers::varying(best);
  std::vector<answers::Remeasured> out;
  for (const auto& row : best) {
    answers::Remeasured each;
    each.trial_id = row.trial_id;
    each.configuration = answers::setting_text(row, shown);
    each.before = value_of(row.metrics, metric).value_or(0);
    const auto attempts = store.attempts(confirming, row.trial_id);
    if (!attempts) return tl::unexpected(attempts.error());
    for (const auto& attempt : *attempts) {
      const auto result = store.result_of(attempt.id);
      if (!result) return tl::unexpected(result.error());
      if (!*result || attempt.attempt.measure != measure) continue;
      if (is_infrastructure((*result)->outcome)) continue;
      each.problem.clear();
      if ((*result)->outcome != Outcome::kOk) {
        each.problem = fmt::format("{}: {}", to_string((*result)->outcome), (*result)->reason);
        continue;
      }
      auto values = repeat_values(store, attempt, (*result)->metrics, metric);
      if (!values) return tl::unexpected(values.error());
      each.visits.push_back({attempt.allocation, std::move(*values)});
    }
    out.push_back(std::move(each));
  }
  return out;
}

}  // namespace sweep::driver
