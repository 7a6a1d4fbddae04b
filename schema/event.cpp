#include "schema/event.h"

#include "schema/names.h"

namespace sweep {
namespace {

constexpr Names<EventKind, 20> kWords{{
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
    {EventKind::kOther, "other"},
}};
static_assert(kWords.size() == static_cast<std::size_t>(EventKind::kOther) + 1);

}  // namespace

std::string_view to_string(EventKind kind) {
  return name_of(kWords, kind);
}

EventKind event_kind_from(std::string_view word) {
  return value_of(kWords, word).value_or(EventKind::kOther);
}

}  // namespace sweep
