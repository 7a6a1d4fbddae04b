#include "orchestrator/driver/confirmation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/expected.h"
#include "base/quantiles.h"
#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/statistics/statistics.h"
#include "orchestrator/metrics/steps.h"
#include "schema/sweep_options.h"

namespace sweep::driver {
namespace {

constexpr i64 kMoreSteps = 3;    // times the sweep's own
constexpr i64 kSpareRounds = 2;  // beyond those asked for, for allocations that were lost

// The sweep that holds the new results: the same options, more steps, and a link to the one it confirms.
Expected<store::SweepRow> confirming_sweep(const store::SweepRow& sweep, const ConfirmRequest& request,
                                           MeasurePlan& measure) {
  SWEEP_TRY(check_may_run(sweep));
  auto own = confirming_options(sweep.options, request);
  own.confirms = sweep.name;
  measure = *own.measure;
  store::SweepRow out;
  out.name = sweep.name + "-confirm";
  out.question = fmt::format("Does the ranking of the best of sweep '{}' hold?", sweep.name);
  out.grid_path = sweep.grid_path, out.grid_text = sweep.grid_text;
  out.options = std::move(own);
  return out;
}

// Error: there is a sweep of that name for another purpose.
Expected<void> check_name_is_free(store::Store& store, const store::SweepRow& wanted, const std::string& of) {
  const auto known = store.find_sweep(wanted.name);
  if (!known) return {};
  if (known->options.confirms == of) return {};
  return fail(
      fmt::format("sweep '{}' is there already and confirms nothing; the results would be mixed with its own",
                  wanted.name));
}

// Each allocation begins with another configuration, so that none is always the first or the last.
std::vector<PlanEntry> rotated(const std::vector<PlanEntry>& plan, std::size_t round) {
  std::vector<PlanEntry> out;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    out.push_back(plan[(i + round) % plan.size()]);
    out.back().order = static_cast<i64>(i);
  }
  return out;
}

std::size_t allocations_done(const std::vector<answers::Remeasured>& all) {
  std::size_t out = 0;
  for (const auto& each : all) out = std::max(out, each.visits.size());
  return out;
}

bool is_enough(const std::vector<answers::Remeasured>& all, i64 allocations) {
  return std::ranges::all_of(all, [&](const answers::Remeasured& each) {
    return !each.problem.empty() || static_cast<i64>(each.visits.size()) >= allocations;
  });
}

class Confirmation {
 public:
  Confirmation(SweepDriver& driver, const ConfirmRequest& request, const MakeObserver& make_observer,
               const Say& say)
      : driver_(driver), request_(request), make_observer_(make_observer), say_(say) {}

  Expected<ConfirmReport> run(const store::SweepRow& of, const std::vector<ResultRow>& best) {
    SWEEP_TRY(choose_sweep(of));
    SWEEP_TRY(choose_plan(of, best));
    for (i64 round = 0;; ++round) {
      ConfirmReport report;
      SWEEP_GET(report.measured,
                remeasured(driver_.store(), driver_.sweep().id, best, measure_, request_.metric));
      if (is_enough(report.measured, request_.allocations) || round >= request_.allocations + kSpareRounds)
        return report;
      SWEEP_GET(auto end, measure_in_one_allocation(allocations_done(report.measured)));
      if (end.end == run::End::kDone) continue;
      report.ended_early = std::move(end);
      return report;
    }
  }

 private:
  Expected<void> choose_sweep(const store::SweepRow& of) {
    SWEEP_GET(const auto wanted, confirming_sweep(of, request_, measure_));
    SWEEP_TRY(check_name_is_free(driver_.store(), wanted, of.name));
    return driver_.make(wanted);
  }

  Expected<void> choose_plan(const store::SweepRow& of, const std::vector<ResultRow>& best) {
    SWEEP_GET(const auto plan, driver_.store().plan(of.id));
    for (const auto& row : best)
      for (const auto& entry : plan)
        if (entry.id == row.trial_id) plan_.push_back(entry);
    return {};
  }

  // Every configuration once.
  Expected<run::RunEnd> measure_in_one_allocation(std::size_t round) {
    const SweepOptions& kept = driver_.sweep().options;
    const LaunchRequest launch = with_kept(request_.launch, kept);
    SWEEP_GET(const auto choice, kept_launcher(kept, launch));
    const auto plan = rotated(plan_, round);
    auto report = run_with_lease(driver_, {plan, measure_, {Outcome::kOk}}, [&](SweepDriver& own) {
      say_(fmt::format("{}: allocation {} of {}, {} configurations, {} x {} steps each", own.sweep().name,
                       round + 1, request_.allocations, plan.size(), measure_.repeats, measure_.steps));
      return own.run(choice, launch, make_observer_);
    });
    if (report) return std::move(report->end);
    const auto& error = report.error();
    if (error.problem != DriveProblem::kBusy) return tl::unexpected(error.error);
    return fail(fmt::format("{}; let it end, or watch it with `sweep status {} --watch`", error.error.message,
                            driver_.sweep().name));
  }

  SweepDriver& driver_;
  const ConfirmRequest& request_;
  const MakeObserver& make_observer_;
  const Say& say_;
  std::vector<PlanEntry> plan_;
  MeasurePlan measure_;
};

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
  SWEEP_GET(const auto stored, store.records_of(attempt.id));
  std::vector<double> out;
  if (!value || !metrics.step_ms || *value <= 0) return out;
  const bool per_time = answers::follows_step(metric) == answers::FollowsStep::kInversely;
  for (const double median : repeat_medians(stored.records, attempt.attempt.trial))
    out.push_back(per_time ? *value * *metrics.step_ms / median : *value * median / *metrics.step_ms);
  return out;
}

}  // namespace

SweepOptions confirming_options(SweepOptions options, const ConfirmRequest& request) {
  const MeasurePlan before = options.measure.value_or(MeasurePlan());
  MeasurePlan measure = before;
  measure.steps = request.steps > 0 ? request.steps : kMoreSteps * before.steps;
  measure.repeats = std::max(request.repeats, before.repeats);
  measure.early_stop = false;
  options.measure = measure;
  const double longer = static_cast<double>(measure.repeats * measure.steps) /
                        static_cast<double>(std::max<i64>(1, before.repeats * before.steps));
  if (options.trial_seconds) *options.trial_seconds *= std::max(1.0, longer);
  options.gpu_hours.reset(), options.usd.reset();
  options.strategy.clear();
  options.auto_micro_batch = false, options.history = false, options.audit.reset();
  return options;
}

Expected<store::SweepRow> confirmed_sweep(store::Store& store, store::SweepRow sweep) {
  if (sweep.options.confirms.empty()) return sweep;
  return store.find_sweep(sweep.options.confirms);
}

Expected<ConfirmReport> confirm_best(SweepDriver& driver, const store::SweepRow& of,
                                     const std::vector<ResultRow>& best, const ConfirmRequest& request,
                                     const MakeObserver& make_observer, const Say& say) {
  return Confirmation(driver, request, make_observer, say).run(of, best);
}

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
    SWEEP_GET(const auto attempts, store.attempts(confirming, row.trial_id));
    for (const auto& attempt : attempts) {
      SWEEP_GET(const auto result, store.result_of(attempt.id));
      if (!result || attempt.attempt.measure != measure) continue;
      if (is_infrastructure(result->outcome)) continue;
      each.problem.clear();
      if (result->outcome != Outcome::kOk) {
        each.problem = fmt::format("{}: {}", to_string(result->outcome), result->reason);
        continue;
      }
      SWEEP_GET(auto values, repeat_values(store, attempt, result->metrics, metric));
      each.visits.push_back({attempt.allocation, std::move(values)});
    }
    out.push_back(std::move(each));
  }
  return out;
}

}  // namespace sweep::driver
