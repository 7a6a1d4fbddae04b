#include "orchestrator/predict/memory.h"

#include <fmt/format.h>

#include "base/text.h"
#include "orchestrator/predict/memory_model.h"

namespace sweep::predict {

double element_bytes(Precision precision) {
  if (precision == Precision::kFp32) return 4;
  return 2;
}

MemoryEstimate estimate_memory(const Trial& t, shape::Ranks ranks) {
  MemoryEstimate out{shape::step_memory(t, shape::kernel_path(t), ranks), 0};
  for (std::size_t rank = 1; rank < out.of_ranks.size(); ++rank)
    if (out.of_ranks[rank].total() > out.total()) out.fullest = rank;
  return out;
}

std::optional<double> memory_budget(const Trial& t, const shape::Hardware& h) {
  constexpr double kUsable = 0.95;
  if (t.memory_cap_bytes) return real(*t.memory_cap_bytes);
  if (h.memory_bytes) return kUsable * real(*h.memory_bytes);
  return std::nullopt;
}

std::string memory_sentence(const MemoryEstimate& m, double budget) {
  std::string parts;
  for (std::size_t i = 0; i < shape::kMemoryParts; ++i)
    if (m.parts().of[i] > 0)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", shape::kMemoryPartNames[i],
                           human_bytes(m.parts().of[i]));
  return fmt::format("needs {} per rank ({}), budget {}", human_bytes(m.total()), parts, human_bytes(budget));
}

namespace {

class StepMemory final : public MemoryModel {
 public:
  StepMemory() : MemoryModel("step", kStep) {}

  bool of_own_step() const override { return true; }
  std::optional<Refusal> refusal(const Trial& t, const Layout&, const TrainerProfile&,
                                 StepRules rules) const override {
    return rules(t);
  }

  MemoryPrediction bytes(const Case& c) const override {
    if (c.refused) return {};
    const MemoryEstimate step = estimate_memory(c.trial);
    using Part = shape::MemoryPart;
    const shape::PartBytes& bytes = step.parts();
    MemoryPrediction out;
    MemoryParts& p = out.parts;
    p.weights = bytes[Part::kWeights], p.gradients = bytes[Part::kGradients];
    p.optimizer = bytes[Part::kOptimizer], p.activations = bytes[Part::kActivations];
    p.logits = bytes[Part::kLogits], p.gather_buffers = bytes[Part::kBuffers];
    p.base = bytes[Part::kTemporary] + bytes[Part::kLibrary];
    out.reserved = out.wanted = out.need = step.total();
    out.fullest_stage = static_cast<i64>(step.fullest);
    if (c.hardware.memory_bytes) out.limit = c.profile.facts.need_share * real(*c.hardware.memory_bytes);
    return out;
  }
};

}  // namespace

const MemoryModel& step_memory_model() {
  static const StepMemory model;
  return model;
}

}  // namespace sweep::predict
