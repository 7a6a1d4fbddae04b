#include "orchestrator/predict/memory.h"

#include <fmt/format.h>

#include "base/text.h"

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

}  // namespace sweep::predict
