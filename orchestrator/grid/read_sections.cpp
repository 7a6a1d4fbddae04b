#include "orchestrator/grid/read_sections.h"

#include "base/expected.h"
#include "orchestrator/grid/keys.h"
#include "orchestrator/grid/read_values.h"

namespace sweep::grid {
namespace {

constexpr i64 kMaxSteps = 1'000'000, kMaxRepeats = 1000, kMaxRetries = 100;

// Sets `to` from a key that may be absent.
Status optional_int(const Document& document, const Node& map, std::string_view key, i64 min, i64 max,
                    i64& to) {
  const Node* node = map.find(key);
  if (node == nullptr) return {};
  SWEEP_GET(to, read_int(document, *node, key, min, max));
  return {};
}

}  // namespace

Status read_measure(const Document& document, Grid& grid) {
  SWEEP_TRY(optional_int(document, document.root(), "repeats", 1, kMaxRepeats, grid.measure.repeats));
  const Entry* entry = document.root().entry("measure");
  if (entry == nullptr) return {};
  const Node& map = *entry->value;
  SWEEP_TRY(need_map(document, map, entry->place, "measure"));
  SWEEP_TRY(check_keys(document, map, kMeasureKeys, "of measure"));
  if (const Node* twice = map.find("repeats");
      twice != nullptr && document.root().entry("repeats") != nullptr) {
    return document.refuse(twice->place, {ErrorKind::kConflict, "repeats"},
                           "repeats is also given at the top of the file; keep one of them");
  }
  SWEEP_TRY(optional_int(document, map, "warmup_steps", 0, kMaxSteps, grid.measure.warmup_steps));
  SWEEP_TRY(optional_int(document, map, "steps", 1, kMaxSteps, grid.measure.steps));
  if (const Node* node = map.find("early_stop")) {
    SWEEP_GET(grid.measure.early_stop, read_flag(document, *node, "early_stop"));
  }
  return optional_int(document, map, "repeats", 1, kMaxRepeats, grid.measure.repeats);
}

// A missing key and `auto` leave it to the prediction.
Status seconds_or_auto(const Document& document, const Node& map, std::string_view key,
                       std::optional<double>& out) {
  const Node* node = map.find(key);
  if (node == nullptr || (node->is_scalar() && node->text == "auto")) return {};
  const auto seconds = read_real(document, *node, key, 1e-3, 1e7);
  if (!seconds) return tl::unexpected(retold(seconds.error(), seconds.error().message + ", or auto"));
  out = *seconds;
  return {};
}

Status read_limits(const Document& document, Grid& grid) {
  const Entry* entry = document.root().entry("limits");
  if (entry == nullptr) return {};
  const Node& map = *entry->value;
  SWEEP_TRY(need_map(document, map, entry->place, "limits"));
  SWEEP_TRY(check_keys(document, map, kLimitKeys, "of limits"));
  if (const Node* node = map.find("gpu_hours")) {
    SWEEP_GET(grid.limits.gpu_hours, read_real(document, *node, "gpu_hours", 1e-6, 1e9));
  }
  if (const Node* node = map.find("usd")) {
    SWEEP_GET(const auto usd, read_real(document, *node, "usd", 1e-6, 1e12));
    grid.limits.usd = usd;
  }
  if (const Node* node = map.find("memory_margin_percent")) {
    SWEEP_GET(const auto percent, read_real(document, *node, "memory_margin_percent", 0, 1e4));
    grid.limits.memory_margin = percent / 100;
  }
  SWEEP_TRY(seconds_or_auto(document, map, "trial_seconds", grid.limits.trial_seconds));
  SWEEP_TRY(seconds_or_auto(document, map, "hang_seconds", grid.limits.hang_seconds));
  SWEEP_TRY(seconds_or_auto(document, map, "start_seconds", grid.limits.start_seconds));
  SWEEP_TRY(optional_int(document, map, "retries_crash", 0, kMaxRetries, grid.limits.retries_crash));
  return optional_int(document, map, "retries_infra", 0, kMaxRetries, grid.limits.retries_infra);
}

}  // namespace sweep::grid
