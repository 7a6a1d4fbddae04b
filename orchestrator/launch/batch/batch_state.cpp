#include "orchestrator/launch/batch/batch_state.h"

#include <array>

namespace sweep::launch {
namespace {

using State = BatchJobState;
using Cell = std::optional<BatchJobState>;
using Row = std::array<Cell, kBatchJobStates>;

constexpr Cell kNever{}, kSubm{State::kSubmitting}, kDoub{State::kInDoubt}, kRoom{State::kWaitingForRoom},
    kQueu{State::kQueued}, kRunn{State::kRunning}, kCanc{State::kCancelling}, kLast{State::kLastWords},
    kLeav{State::kLeaving}, kClos{State::kClosed};

// clang-format off
// The transitions by event (rows, as in BatchJobEvent) and state (columns, as in BatchJobState).
constexpr std::array<Row, kBatchJobEvents> kTable{{
//   Submitting InDoubt WaitRoom  Queued  Running Cancell. LastWords Leaving Closed
    {kQueu,    kQueu,  kNever,   kNever, kNever, kCanc,   kNever,   kLeav,  kClos},   // kAccepted
    {kDoub,    kNever, kNever,   kNever, kNever, kNever,  kNever,   kNever, kClos},   // kUnanswered
    {kRoom,    kNever, kNever,   kNever, kNever, kNever,  kNever,   kNever, kClos},   // kNoRoom
    {kClos,    kNever, kNever,   kNever, kNever, kNever,  kNever,   kNever, kClos},   // kRefused
    {kNever,   kSubm,  kSubm,    kNever, kNever, kNever,  kNever,   kNever, kNever},  // kSubmittedAgain
    {kNever,   kClos,  kClos,    kNever, kNever, kNever,  kNever,   kNever, kNever},  // kWithdrawn
    {kNever,   kNever, kNever,   kQueu,  kQueu,  kCanc,   kQueu,    kLeav,  kNever},  // kSeenQueued
    {kNever,   kNever, kNever,   kRunn,  kRunn,  kCanc,   kRunn,    kLeav,  kNever},  // kSeenRunning
    {kNever,   kNever, kNever,   kLast,  kLast,  kClos,   kLast,    kClos,  kNever},  // kSeenOver
    {kNever,   kNever, kNever,   kClos,  kClos,  kClos,   kClos,    kClos,  kNever},  // kDenied
    {kNever,   kNever, kNever,   kNever, kNever, kNever,  kClos,    kNever, kNever},  // kLastWordsOver
    {kNever,   kCanc,  kClos,    kCanc,  kCanc,  kNever,  kCanc,    kNever, kNever},  // kGivenUp
    {kNever,   kLeav,  kClos,    kLeav,  kLeav,  kLeav,   kLeav,    kNever, kNever},  // kBye
    {kNever,   kNever, kNever,   kClos,  kClos,  kClos,   kClos,    kClos,  kClos},   // kStepOver
    {kClos,    kClos,  kClos,    kClos,  kClos,  kClos,   kClos,    kClos,  kClos},   // kAbandoned
}};
// clang-format on

}  // namespace

std::optional<BatchJobState> next_state(BatchJobState state, BatchJobEvent event) {
  return kTable[static_cast<std::size_t>(event)][static_cast<std::size_t>(state)];
}

}  // namespace sweep::launch
