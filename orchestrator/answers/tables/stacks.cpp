#include "orchestrator/answers/tables/stacks.h"

namespace sweep::answers {

std::optional<RankStacks> deciding_stacks(const Evidence& evidence) {
  std::optional<RankStacks> out;
  const std::vector<RankPosition> none;
  for (const auto* ranks : {&evidence.ranks, evidence.hang ? &evidence.hang->ranks : &none})
    for (const RankPosition& rank : *ranks) {
      if (rank.stacks.empty()) continue;
      const bool decided = rank.rank == evidence.cause_rank;
      if (!out || decided) out = RankStacks{rank.rank, rank.stacks};
      if (decided) return out;
    }
  return out;
}

}  // namespace sweep::answers
