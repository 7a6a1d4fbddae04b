// Prediction of memory and time for one layout under a trainer profile. Pure; about a microsecond each.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/predict/layout.h"

namespace sweep::predict {

// Bytes of one rank of a stage, by what holds them.
struct MemoryParts {
  double base = 0, weights = 0, gradients = 0, optimizer = 0, gradient_copies = 0, activations = 0,
         fragmentation = 0, logits = 0;
  double gather_buffers = 0;  // gathered sequences and weights
  double held = 0;            // freed by the program, not yet by the communication stream
  double live() const { return weights + gradients + optimizer + activations + logits; }
  double reserved() const { return live() + base + gradient_copies + fragmentation + gather_buffers + held; }
};

struct MemoryPrediction {
  MemoryParts parts;    // of the stage whose memory the program reports
  double reserved = 0;  // what it reports, at most what the device has
  double wanted = 0;    // what the fullest rank would reserve on a device without end
  double need = 0;      // what the fullest rank cannot do without
  double limit = 0;     // need above this does not run; 0: the device's memory is not known
  i64 fullest_stage = 0;
};

struct TimePrediction {
  double step_s = 0;
  double compute_s = 0, pipeline_s = 0, data_parallel_s = 0, optimizer_s = 0, slow_messages_s = 0,
         retry_s = 0;
  double tokens_per_s_gpu = 0;
};

// GPU and host seconds of one stage for one micro-batch, forward and backward.
struct StageTime {
  double gpu = 0, host = 0;
};
struct StageTimes {
  double layer_gpu = 0, layer_host = 0;
  std::vector<StageTime> of;
};
void stage_times(const Layout&, const TrainerProfile&, const shape::Hardware&, StageTimes& out);

MemoryPrediction predict_memory(const Layout&, const StageTimes&, const TrainerProfile&,
                                const shape::Hardware&);
TimePrediction predict_time(const Layout&, const StageTimes&, const MemoryPrediction&, const TrainerProfile&,
                            const shape::Hardware&);

// How probable it is that pipeline messages are slow: seen on this cluster, its cause is unknown.
double slow_share(const Layout&);
// Whether each layer's collectives are slow to start without a pipeline, as they are with one over several
// nodes: seen on this cluster, its cause is unknown.
bool slow_collectives(const Layout&);

// Why the trainer cannot run it, whatever the memory.
struct Refusal {
  std::string rule, reason;
};
std::optional<Refusal> refusal(const Layout&, const TrainerProfile&);

// What makes a trial impossible for our own step; the plan has these rules (plan/rules.h).
using StepRules = std::optional<Refusal> (*)(const Trial&);

// All of it for one trial; under a profile that follows the step, its rules and its allocations. Reuses the
// memory of `out`.
struct TrialPrediction {
  Layout layout;
  StageTimes times;
  std::optional<Refusal> refusal;
  MemoryPrediction memory;
  TimePrediction time;
};
void predict_trial(const Trial&, const TrainerProfile&, const shape::Hardware&, StepRules,
                   TrialPrediction& out);
// Which of the profile's errors holds for such a layout.
double Uncertainty::*memory_kind(const Layout&);
double Uncertainty::*time_kind(const Layout&);

}  // namespace sweep::predict
