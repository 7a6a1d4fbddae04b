#include "orchestrator/answers/tables/stacks.h"

#include <nlohmann/json.hpp>

namespace sweep::answers {

std::optional<RankStacks> deciding_stacks(const nlohmann::json& evidence) {
  if (!evidence.is_object()) return std::nullopt;
  const auto decides = evidence.find("cause_rank");
  std::optional<RankStacks> out;
  for (const nlohmann::json* of : {&evidence, evidence.contains("hang") ? &evidence["hang"] : nullptr}) {
    if (of == nullptr || !of->is_object() || !of->contains("ranks") || !(*of)["ranks"].is_array()) continue;
    for (const auto& rank : (*of)["ranks"]) {
      if (!rank.is_object() || !rank.contains("rank") || !rank["rank"].is_number_integer()) continue;
      const auto text = rank.find("stacks");
      if (text == rank.end() || !text->is_string()) continue;
      const bool decided = decides != evidence.end() && rank["rank"] == *decides;
      if (!out || decided) out = RankStacks{rank["rank"].dump(), text->get<std::string>()};
      if (decided) return out;
    }
  }
  return out;
}

}  // namespace sweep::answers
