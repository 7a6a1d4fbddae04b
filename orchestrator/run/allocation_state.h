// AllocationState: where an allocation is in the eyes of the run loop, and which event moves it on. Pure.
#pragma once
#include <string_view>

namespace sweep::run {

// clang-format off
//
//   state      event:  started   nodes_known  finish     returned   ended
//   ----------------------------------------------------------------------
//   requested          checking  checked      finishing  returning  ended
//   checked            serving   .            finishing  returning  ended
//   checking           .         serving      finishing  returning  ended
//   serving            .         .            finishing  returning  ended
//   finishing          .         .            .          .          ended
//   returning          .         .            .          .          ended
//   ended              .         .            .          .          .
//
//   ".": the event changes nothing.
// clang-format on
enum class AllocationState {
  // Its launcher was asked for it.
  kRequested,
  // It has not started, and nothing of its nodes has to be known first.
  kChecked,
  // Its agents run; the records of its nodes are awaited before its first trial.
  kChecking,
  // It takes trials.
  kServing,
  // It takes no more trials and ends when those that run have ended.
  kFinishing,
  // Like finishing; its agent cancelled trials that the run loop did not cancel.
  kReturning,
  // It holds no node.
  kEnded,
};
inline constexpr int kAllocationStates = 7;

enum class AllocationEvent { kStarted, kNodesKnown, kFinish, kReturned, kEnded };
inline constexpr int kAllocationEvents = 5;

AllocationState next(AllocationState, AllocationEvent);

std::string_view name_of(AllocationState);
std::string_view name_of(AllocationEvent);

}  // namespace sweep::run
