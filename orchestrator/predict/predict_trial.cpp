#include "orchestrator/predict/predict.h"
#include "orchestrator/predict/step_cost.h"

namespace sweep::predict {
namespace {

// The time of a step of our own: that of what its profile was fitted to, and the share of what the trial has beside it.
TimePrediction step_time(const Trial& t, const Case& of, const MemoryPrediction& memory) {
  const Trial fitted = fitted_part(t);
  thread_local Layout layout;
  thread_local StageTimes times;
  make_layout(fitted, of.profile, layout);
  of.profile.time_model->stage_times(layout, of.profile, of.hardware, times);
  TimePrediction out =
      of.profile.time_model->seconds({fitted, layout, times, of.profile, of.hardware, of.refused}, memory);
  out.scale(beyond_fitted(t, fitted, of.hardware));
  return out;
}

}  // namespace

void predict_trial(const Trial& t, const TrainerProfile& p, const shape::Hardware& h, StepRules step_rules,
                   TrialPrediction& out) {
  make_layout(t, p, out.layout);
  p.time_model->stage_times(out.layout, p, h, out.times);
  out.refusal = p.memory_model->refusal(t, out.layout, p, step_rules);
  const Case c{t, out.layout, out.times, p, h, out.refusal.has_value()};
  out.memory = p.memory_model->bytes(c);
  const bool beyond =
      p.memory_model == &step_memory_model() && !is_fitted(t) && h.peak_for(t.precision, t.tf32);
  out.time = beyond ? step_time(t, c, out.memory) : p.time_model->seconds(c, out.memory);
}

}  // namespace sweep::predict
