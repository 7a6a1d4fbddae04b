#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/expected.h"
#include "orchestrator/grid/keys.h"
#include "orchestrator/grid/read_sections.h"
#include "orchestrator/grid/read_values.h"

namespace sweep::grid {
namespace {

constexpr i64 kMostTrials = 1'000'000, kMostAtOnce = 10'000;

Status read_kind(const Document& document, const Node& node, Strategy& to) {
  SWEEP_GET(const auto word, read_word(document, node, "strategy"));
  const auto kind = strategy_from(word);
  if (!kind)
    return document.refuse(node.place, {ErrorKind::kInvalidValue, word}, "strategy is '{}'; it is one of {}",
                           word, fmt::join(strategy_words(), ", "));
  to.kind = *kind;
  return {};
}

Status read_count(const Document& document, const Node& map, std::string_view key, i64 most, i64& to) {
  const Node* node = map.find(key);
  if (node == nullptr) return {};
  SWEEP_GET(to, read_int(document, *node, key, 1, most));
  return {};
}

Expected<std::optional<bool>> optional_flag(const Document& document, const Node& map, std::string_view key) {
  const Node* node = map.find(key);
  if (node == nullptr) return std::optional<bool>();
  SWEEP_GET(const auto flag, read_flag(document, *node, key));
  return std::optional(flag);
}

}  // namespace

// strategy: search, or {kind: search, max_trials: 10, least_gain: 0.02, at_once: 2}
Status read_strategy(const Document& document, Grid& grid) {
  const Entry* entry = document.root().entry("strategy");
  if (entry == nullptr) return {};
  Strategy out;
  const Node& node = *entry->value;
  if (node.is_scalar()) {
    SWEEP_TRY(read_kind(document, node, out));
    grid.strategy = out;
    return {};
  }
  SWEEP_TRY(need_map(document, node, entry->place, "strategy"));
  SWEEP_TRY(check_keys(document, node, kStrategyKeys, "of strategy"));
  const Node* kind = node.find("kind");
  if (kind == nullptr)
    return document.refuse(entry->place, {ErrorKind::kMissing, "kind"},
                           "strategy has no kind; write {kind: search, ...}");
  SWEEP_TRY(read_kind(document, *kind, out));
  SWEEP_TRY(read_count(document, node, "max_trials", kMostTrials, out.max_trials));
  if (const Node* most = node.find("max_trials");
      most != nullptr && info_of(out.kind).scope != StrategyScope::kQuestion)
    return document.refuse(most->place, {ErrorKind::kConflict, "max_trials"},
                           "max_trials bounds {}; {} has no such bound, so leave it out",
                           strategies_of(StrategyScope::kQuestion), to_string(out.kind));
  SWEEP_TRY(read_count(document, node, "at_once", kMostAtOnce, out.at_once));
  if (const Node* gain = node.find("least_gain")) {
    SWEEP_GET(out.least_gain, read_real(document, *gain, "least_gain", 0, 1));
  }
  SWEEP_GET(const auto history, optional_flag(document, node, "history"));
  out.history = history;
  SWEEP_GET(out.skip_recompute, optional_flag(document, node, "skip_recompute"));
  grid.strategy = out;
  return {};
}

}  // namespace sweep::grid
