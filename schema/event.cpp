#include "schema/event.h"

#include <array>
#include <utility>

namespace sweep {
namespace {

constexpr std::array<std::pair<EventKind, std::string_view>, 19> kWords{{
    {EventKind::kAgent, "agent"},
    {EventKind::kAllocationLost, "allocation_lost"},
    {EventKind::kAllocationReleased, "allocation_released"},
    {EventKind::kAllocationSilent, "allocation_silent"},
    {EventKind::kHardware, "hardware"},
    {EventKind::kImported, "imported"},
    {EventKind::kLauncher, "launcher"},
    {EventKind::kMeasureChanged, "measure_changed"},
    {EventKind::kMerged, "merged"},
    {EventKind::kNodeLost, "node_lost"},
    {EventKind::kPending, "pending"},
    {EventKind::kQuarantine, "quarantine"},
    {EventKind::kReadmitted, "readmitted"},
    {EventKind::kRequestedAgain, "requested_again"},
    {EventKind::kReuse, "reuse"},
    {EventKind::kScreen, "screen"},
    {EventKind::kStrategy, "strategy"},
    {EventKind::kStrayRecords, "stray_records"},
    {EventKind::kSuggested, "suggested"},
}};
static_assert(kWords.size() == static_cast<std::size_t>(EventKind::kOther));

}  // namespace

std::string_view to_string(EventKind kind) {
  for (const auto& [each, word] : kWords)
    if (each == kind) return word;
  return "other";
}

EventKind event_kind_from(std::string_view word) {
  for (const auto& [kind, each] : kWords)
    if (each == word) return kind;
  return EventKind::kOther;
}

}  // namespace sweep
