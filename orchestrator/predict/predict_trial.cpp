#include "orchestrator/predict/predict.h"

namespace sweep::predict {

void predict_trial(const Trial& t, const TrainerProfile& p, const shape::Hardware& h, StepRules step_rules,
                   TrialPrediction& out) {
  make_layout(t, p, out.layout);
  p.time_model->stage_times(out.layout, p, h, out.times);
  out.refusal = p.memory_model->refusal(t, out.layout, p, step_rules);
  const Case c{t, out.layout, out.times, p, h, out.refusal.has_value()};
  out.memory = p.memory_model->bytes(c);
  out.time = p.time_model->seconds(c, out.memory);
}

}  // namespace sweep::predict
