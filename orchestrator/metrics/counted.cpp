#include "orchestrator/metrics/counted.h"

#include <nlohmann/json.hpp>

#include "schema/codec.h"

namespace sweep::metrics {
namespace {

// A count; absent where it is missing, no integer, or below 0.
std::optional<i64> count_in(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer() || found->get<i64>() < 0) return std::nullopt;
  return found->get<i64>();
}

const nlohmann::json* object_in(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? &*found : nullptr;
}

}  // namespace

std::optional<CountedStep> counted_step(const RankRecord& record) {
  if (!record.phantom) return std::nullopt;
  const auto used = parse_json(record.effective);
  const auto* phantom = used && used->is_object() ? object_in(*used, "phantom") : nullptr;
  const auto* step = phantom != nullptr ? object_in(*phantom, "step") : nullptr;
  if (step == nullptr) return std::nullopt;
  const auto launches = count_in(*step, "launches"), syncs = count_in(*step, "host_syncs"),
             host = count_in(*step, "host_work_ns"), device = count_in(*step, "device_ns"),
             busy = count_in(*step, "busy_ns");
  if (!launches || !syncs || !host || !device || !busy) return std::nullopt;
  return CountedStep{*launches, *syncs, *host, *device, *busy, count_in(*phantom, "peak_pinned_bytes")};
}

}  // namespace sweep::metrics
