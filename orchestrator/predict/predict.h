// Prediction of memory and time for one trial under a trainer profile. Pure; about a microsecond each.
#pragma once
#include "orchestrator/predict/time_model.h"

namespace sweep::predict {

// All of it. A refused trial has predictions too, but under our own step no memory.
struct TrialPrediction {
  Layout layout;
  StageTimes times;
  std::optional<Refusal> refusal;
  MemoryPrediction memory;
  TimePrediction time;  // zeros where there is none
  std::string no_time;  // why there is none; empty: there is
  std::string depends;  // choices of the program that would change the verdict; empty: none
};
// Axes that nobody states, so that the trainer's program decides. A prediction takes zero 0 and bf16.
struct Unstated {
  bool zero = false, precision = false;
};
// Hardware without a peak of the precision: nothing says how fast it would be. Empty: it has one.
std::string why_no_time(const Trial&, const shape::Hardware&);
// Reuses the memory of `out`.
void predict_trial(const Trial&, const TrainerProfile&, const shape::Hardware&, StepRules,
                   TrialPrediction& out, Unstated = {});

// The time of a step of our own under its profile: that of what the profile was fitted to, and what the trial has beside it
// (step_cost.h). REQUIRES: a precision that the hardware has.
TimePrediction step_time(const Trial&, const TrainerProfile&, const shape::Hardware&,
                         const MemoryPrediction&);

}  // namespace sweep::predict
