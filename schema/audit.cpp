#include "schema/audit.h"

#include "base/text.h"
#include "schema/strategy.h"

namespace sweep {

bool is_fit_rule(std::string_view rule) {
  return rule == kMemoryRule || rule == kHistoryRule;
}

bool is_rank_rule(std::string_view rule) {
  const auto kind = strategy_from(rule);
  const auto scope = kind ? info_of(*kind).scope : StrategyScope::kEveryTrial;
  return rule == kRecomputeRule || scope == StrategyScope::kLayout || scope == StrategyScope::kQuestion;
}

// FNV-1a and a finalizer (MurmurHash3's): ids are hashes themselves, and neighbouring grids share them.
bool is_in_audit(std::string_view trial_id, double share) {
  std::uint64_t hash = fnv1a(trial_id);
  hash ^= hash >> 33, hash *= 0xff51afd7ed558ccd, hash ^= hash >> 33;
  constexpr double kAll = 18446744073709551616.0;  // 2^64
  return static_cast<double>(hash) < share * kAll;
}

}  // namespace sweep
