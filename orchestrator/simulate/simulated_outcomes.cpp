#include "orchestrator/simulate/simulated_outcomes.h"

#include <algorithm>
#include <cmath>

namespace sweep::simulate {
SimulatedOutcomes::SimulatedOutcomes(const Assumptions& assumed, std::span<const PlanEntry> plan,
                                     const MeasurePlan& measure)
    : assumed_(assumed), random_(assumed.seed) {
  for (const PlanEntry& entry : plan) {
    Known& known = predicted_[entry.id];
    known.steps_s =
        entry.predicted.step_ms ? *entry.predicted.step_ms / 1e3 * measure.all_steps() : kUnpredictedSteps;
    known.start_s =
        std::max(0.0, entry.predicted.seconds.value_or(known.steps_s + kUnpredictedStart) - known.steps_s);
  }
}

double SimulatedOutcomes::uniform() {
  return std::uniform_real_distribution<double>(0, 1)(random_);
}

double SimulatedOutcomes::wait(double mean_s) {
  if (!(mean_s > 0)) return 0;
  return std::isinf(mean_s) ? mean_s : std::exponential_distribution<double>(1 / mean_s)(random_);
}

i64 SimulatedOutcomes::below(i64 count) {
  return std::uniform_int_distribution<i64>(0, count - 1)(random_);
}

SimulatedOutcome SimulatedOutcomes::of(const Attempt& attempt) {
  const auto found = predicted_.find(attempt.trial_id);
  const Known known = found != predicted_.end() ? found->second : Known{kUnpredictedStart, kUnpredictedSteps};
  const double slower = std::lognormal_distribution<double>(0, assumed_.spread)(random_);
  SimulatedOutcome outcome{SimulatedOutcome::kOk, known.start_s * slower, known.steps_s * slower};
  const double draw = 100 * uniform(), part = uniform();
  if (draw < assumed_.oom_percent) {
    outcome.kind = SimulatedOutcome::kOom, outcome.steps_s = 0;  // the first step shows it
  } else if (draw < assumed_.oom_percent + assumed_.crash_percent) {
    outcome.kind = SimulatedOutcome::kCrash, outcome.steps_s *= part;
  } else if (draw < assumed_.oom_percent + assumed_.crash_percent + assumed_.hang_percent) {
    outcome.kind = SimulatedOutcome::kHang,
    outcome.steps_s = outcome.steps_s * part + attempt.deadlines.step_s;
  }
  return outcome;
}

}  // namespace sweep::simulate
