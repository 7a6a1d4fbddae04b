// MemoryModel: what a rank of a trainer takes. A profile names its model and gives the model's numbers.
#pragma once
#include <optional>
#include <string>
#include <string_view>

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
  MemoryParts parts;    // parts of the stage whose memory the program reports
  double reserved = 0;  // bytes that it reports, at most the device's
  double wanted = 0;    // bytes that the fullest rank would reserve on an unlimited device
  double need = 0;      // bytes that the fullest rank cannot do without
  double limit = 0;     // need above this does not run; 0: the device's memory is not known
  i64 fullest_stage = 0;
  bool fits() const { return limit <= 0 || need <= limit; }
};

// Why the trainer cannot run it, whatever the memory.
struct Refusal {
  std::string rule, reason;
};
// Finds what makes a trial impossible for our own step; the plan has these rules (plan/rules.h).
using StepRules = std::optional<Refusal> (*)(const Trial&);

// GPU and host seconds of one stage for one micro-batch, forward and backward.
struct StageTime {
  double gpu = 0, host = 0, both = 0;  // both: the host and the GPU wait
};
struct StageTimes {
  double layer_gpu = 0, layer_host = 0;
  std::vector<StageTime> of;
};

// A trial under a profile, on hardware.
struct Case {
  const Trial& trial;
  const Layout& layout;
  const StageTimes& times;
  const TrainerProfile& profile;
  const shape::Hardware& hardware;
  bool refused = false;  // the model's refusal() says so
};

class MemoryModel {
 public:
  explicit MemoryModel(const char* word, Reader reader) : word(word), reader(reader) {}
  virtual ~MemoryModel() = default;
  virtual std::optional<Refusal> refusal(const Trial&, const Layout&, const TrainerProfile&, StepRules) const;
  // Predicts the bytes of a trial, also of a refused one; only our own step counts nothing then.
  virtual MemoryPrediction bytes(const Case&) const = 0;
  // The error of a profile that says how far such a layout's bytes spread.
  double Uncertainty::*spread(const Layout&) const;
  // True for the step that sweep runs itself: the plan's rules hold for it, and each axis of the grid changes it.
  virtual bool of_own_step() const { return false; }
  virtual bool knows_adapters() const { return true; }
  // Whether the trainer's fp8 is of products alone, and leaves the states of mixed precision.
  virtual bool fp8_keeps_states(const ProfileFacts&) const { return false; }

  const std::string_view word;  // its name in a profile
  const Reader reader;          // which of a profile's numbers it reads
};

// The rules that a profile may name: "empty_stage", "heads", "kv_heads", "vocabulary", "micro_batches".
const std::vector<std::string>& rule_words();

// Each in a file of its own.
const MemoryModel& nanotron_memory();
const MemoryModel& eager_memory();
const MemoryModel& step_memory_model();
// Null: no model has this name.
const MemoryModel* memory_model(std::string_view word);

// Shared by the models that go stage by stage.
//
// Bytes of a layer per token: in flight; the same where it is computed again.
struct PerToken {
  double activations = 0, kept = 0;
};
// `joint`: bytes of the tensor that q, k and v are copied from, where it is kept.
PerToken saved_bytes(const Layout&, const ProfileFacts&, double joint);
// Tensors of intermediate_size that a layer saves per token.
double wide_tensors(const Layout&, const ProfileFacts&);
// Bytes per parameter on one rank, of the types that the profile states.
shape::StateBytes trainer_states(const Layout&, const ProfileFacts&);
// The lasting states, activations in flight and the loss's logits. `states`: bytes per parameter on one rank;
// `ranks`: the number of ranks that share the logits.
MemoryParts states_and_activations(const Case&, const StageWork&, const shape::StateBytes& states,
                                   const PerToken&, double ranks);
// Counts the next stage of `out`; `reports`: the program reports this stage's memory if it is the fullest so far.
void count_stage(MemoryPrediction& out, i64 stage, const MemoryParts&, double need, bool reports);
// Sets the limit of the device, when every stage is counted.
void set_limit(MemoryPrediction& out, const Case&);

}  // namespace sweep::predict
