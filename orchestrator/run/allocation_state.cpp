#include "orchestrator/run/allocation_state.h"

#include <array>

namespace sweep::run {
namespace {

constexpr std::array<std::string_view, kAllocationStates> kStateNames{
    "requested", "checked", "checking", "serving", "finishing", "returning", "ended"};
constexpr std::array<std::string_view, kAllocationEvents> kEventNames{"started", "nodes_known", "finish",
                                                                      "returned", "ended"};

}  // namespace

AllocationState next(AllocationState state, AllocationEvent event) {
  using enum AllocationState;
  if (state == kEnded || event == AllocationEvent::kEnded) return kEnded;
  if (state == kFinishing || state == kReturning) return state;
  switch (event) {
    case AllocationEvent::kStarted:
      if (state == kRequested) return kChecking;
      return state == kChecked ? kServing : state;
    case AllocationEvent::kNodesKnown:
      if (state == kRequested) return kChecked;
      return state == kChecking ? kServing : state;
    case AllocationEvent::kFinish:
      return kFinishing;
    case AllocationEvent::kReturned:
      return kReturning;
    case AllocationEvent::kEnded:
      return kEnded;
  }
  return state;
}

std::string_view name_of(AllocationState state) {
  return kStateNames[static_cast<std::size_t>(state)];
}

std::string_view name_of(AllocationEvent event) {
  return kEventNames[static_cast<std::size_t>(event)];
}

}  // namespace sweep::run
