// Events of a sweep: what happened to it beside its results, each with a kind, a sentence and a time.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "schema/trial.h"

namespace sweep {

enum class EventKind {
  kAgent,               // an agent says something of its node or of an attempt
  kAllocationLost,      // an allocation ended before its time
  kAllocationReleased,  // an allocation is given back before it starts
  kAllocationSilent,    // attempts must have ended by their deadlines, and no agent says so
  kHardware,            // a node is other hardware than its trials name
  kImported,            // results of a file were stored
  kLauncher,            // a launcher says something of its system
  kMeasureChanged,      // another measuring plan from here on
  kMerged,              // results of another database were stored
  kNodeLost,            // a node is lost, and the others of its allocation go on
  kPending,             // why an allocation waits
  kQuarantine,          // a host gets no work, for a while or for good
  kReadmitted,          // an excluded host gets work again
  kRequestedAgain,      // a lost node is requested once more
  kReuse,               // answers of earlier sweeps were taken over
  kScreen,              // a node is slower than the others
  kStrategy,            // what a strategy leaves out, or why it ends
  kStrayRecords,        // records that belong to no rank were left out
  kSuggested,           // axes got the values of an earlier result
  kOther,               // a kind that only a newer version knows
};

// The word under which a kind is stored, and back.
std::string_view to_string(EventKind);
EventKind event_kind_from(std::string_view word);

struct SweepEvent {
  std::string time;  // UTC, ISO 8601
  EventKind kind = EventKind::kOther;
  std::string word{};  // the kind as it is stored: kOther keeps that of the newer version
  std::string text{};
  std::optional<i64> attempt{};  // the one that it is about; nullopt: the sweep as a whole
};

}  // namespace sweep
