#include <fmt/format.h>

#include "orchestrator/predict/predict.h"
#include "orchestrator/predict/step_cost.h"

namespace sweep::predict {
namespace {

TimePrediction plain_time(const Trial& t, const TrainerProfile& p, const shape::Hardware& h,
                          const MemoryPrediction& memory) {
  thread_local Layout layout;
  thread_local StageTimes times;
  make_layout(t, p, layout);
  p.time_model->stage_times(layout, p, h, times);
  return p.time_model->seconds({t, layout, times, p, h}, memory);
}

// Predicts a trial that has something beside its fitted part: the part's time is scaled by what is beside it.
TimePrediction time_beyond_fitted(const Trial& t, const Trial& fitted, const TrainerProfile& p,
                                  const shape::Hardware& h, const MemoryPrediction& memory) {
  TimePrediction out = plain_time(fitted, p, h, memory);
  const double before = out.step_s;
  out.scale(beyond_fitted(t, fitted, h));
  if (t.quantize_base == QuantizeBase::kNone) return out;
  Trial quantized = fitted;  // the model of time has the passes that make values of codes
  quantized.quantize_base = t.quantize_base;
  const double made = plain_time(quantized, p, h, memory).step_s - before;
  out.tokens_per_s_gpu *= out.step_s / (out.step_s + made);
  out.compute_s += made, out.step_s += made;
  return out;
}

}  // namespace

TimePrediction step_time(const Trial& t, const TrainerProfile& p, const shape::Hardware& h,
                         const MemoryPrediction& memory) {
  const Trial fitted = fitted_part(t);
  return is_fitted(t, fitted) ? plain_time(t, p, h, memory) : time_beyond_fitted(t, fitted, p, h, memory);
}

namespace {

Case case_of(const Trial& t, const TrainerProfile& p, const shape::Hardware& h, const TrialPrediction& out) {
  return {t, out.layout, out.times, p, h, out.refusal.has_value()};
}

// Everything but the time.
void predict_memory(const Trial& t, const TrainerProfile& p, const shape::Hardware& h, StepRules step_rules,
                    TrialPrediction& out) {
  make_layout(t, p, out.layout);
  p.time_model->stage_times(out.layout, p, h, out.times);
  out.refusal = p.memory_model->refusal(t, out.layout, p, step_rules);
  out.memory = p.memory_model->bytes(case_of(t, p, h, out));
}

bool fits(const TrialPrediction& predicted) {
  return !predicted.refusal && predicted.memory.fits();
}

// ZeRO 3 needs least, and masters in fp32 most: a choice of these that changes whether it fits.
std::string fits_otherwise(const Trial& t, const TrainerProfile& p, const shape::Hardware& h, StepRules rules,
                           Unstated unstated, bool as_taken) {
  if (as_taken ? !unstated.precision : !unstated.zero) return {};
  Trial other = t;
  if (as_taken)
    other.precision = Precision::kBf16Mixed;
  else
    other.zero = 3;
  thread_local TrialPrediction predicted;
  predict_memory(other, p, h, rules, predicted);
  if (as_taken == fits(predicted)) return {};
  return as_taken ? "precision bf16_mixed" : "zero 3";
}

}  // namespace

std::string why_no_time(const Trial& t, const shape::Hardware& h) {
  if (h.peak_for(t.precision, t.tf32)) return {};
  return fmt::format("time: no peak of {} is known on {}", t.tf32 ? "tf32" : to_string(t.precision), h.name);
}

void predict_trial(const Trial& t, const TrainerProfile& p, const shape::Hardware& h, StepRules step_rules,
                   TrialPrediction& out, Unstated unstated) {
  predict_memory(t, p, h, step_rules, out);
  out.depends = fits_otherwise(t, p, h, step_rules, unstated, fits(out));
  out.no_time = why_no_time(t, h);
  out.time = {};
  if (!out.no_time.empty()) return;
  if (p.memory_model->of_own_step()) {
    const Trial fitted = fitted_part(t);
    if (!is_fitted(t, fitted)) {
      out.time = time_beyond_fitted(t, fitted, p, h, out.memory);
      return;
    }
  }
  out.time = p.time_model->seconds(case_of(t, p, h, out), out.memory);
}

}  // namespace sweep::predict
