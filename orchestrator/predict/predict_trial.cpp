#include "orchestrator/predict/memory.h"
#include "orchestrator/predict/predict.h"

namespace sweep::predict {
namespace {

using Part = shape::MemoryPart;

MemoryParts as_parts(const shape::PartBytes& bytes) {
  MemoryParts out;
  out.weights = bytes[Part::kWeights], out.gradients = bytes[Part::kGradients];
  out.optimizer = bytes[Part::kOptimizer], out.activations = bytes[Part::kActivations];
  out.logits = bytes[Part::kLogits], out.gather_buffers = bytes[Part::kBuffers];
  out.base = bytes[Part::kTemporary] + bytes[Part::kLibrary];
  return out;
}

// What `sweep plan` predicts.
MemoryPrediction memory_of_step(const Trial& t, const TrainerProfile& p, const shape::Hardware& h) {
  const MemoryEstimate step = estimate_memory(t);
  MemoryPrediction out;
  out.parts = as_parts(step.parts());
  out.reserved = out.wanted = out.need = step.total();
  out.fullest_stage = static_cast<i64>(step.fullest);
  if (h.memory_bytes) out.limit = p.facts.need_share * real(*h.memory_bytes);
  return out;
}

}  // namespace

void predict_trial(const Trial& t, const TrainerProfile& p, const shape::Hardware& h, StepRules step_rules,
                   TrialPrediction& out) {
  make_layout(t, p, out.layout);
  stage_times(out.layout, p, h, out.times);
  if (!p.facts.follows_step) {
    out.refusal = refusal(out.layout, p);
    out.memory = predict_memory(out.layout, out.times, p, h);
  } else {
    out.refusal = step_rules(t);
    out.memory = out.refusal ? MemoryPrediction{} : memory_of_step(t, p, h);
  }
  out.time = predict_time(out.layout, out.times, out.memory, p, h);
}

double Uncertainty::*memory_kind(const Layout& l) {
  return l.tp > 1 ? &Uncertainty::memory_tensor : &Uncertainty::memory;
}

double Uncertainty::*time_kind(const Layout& l) {
  constexpr double kMany = 32;
  if (l.pp <= 1 || l.nodes <= 1) return &Uncertainty::time;
  return l.nodes < kMany ? &Uncertainty::time_far : &Uncertainty::time_many;
}

}  // namespace sweep::predict
