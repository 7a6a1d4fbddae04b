#include "schema/strategy.h"

#include <algorithm>

namespace sweep {

std::optional<StrategyKind> strategy_from(std::string_view word) {
  const auto* found = std::ranges::find(kStrategies, word, &StrategyInfo::word);
  if (found == std::end(kStrategies)) return std::nullopt;
  return static_cast<StrategyKind>(found - std::begin(kStrategies));
}

std::vector<std::string> strategy_words() {
  std::vector<std::string> out;
  for (const auto& each : kStrategies) out.emplace_back(each.word);
  return out;
}

std::string strategies_of(StrategyScope scope) {
  std::string out;
  for (const auto& each : kStrategies)
    if (each.scope == scope) out.append(out.empty() ? "" : " and ").append(each.word);
  return out;
}

std::string strategy_sentences() {
  std::string out;
  for (const auto& each : kStrategies)
    out.append(out.empty() ? "" : "; ").append(each.word).append(": ").append(each.sentence);
  return out;
}

}  // namespace sweep
