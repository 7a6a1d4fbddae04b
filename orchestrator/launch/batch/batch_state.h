// The states of a batch job, whatever the scheduler, and the events that move it from one to the next. Pure.
// The transitions are a table in batch_state.cpp; the job never raises an event that is kNever there.
//
// The usual ways; the table has all:
//
//   submitting <-> in doubt, waiting for room
//       |
//     queued <-> running -> last words -> closed
//       |           |           |
//       +-----------+-----------+-- kBye -----> leaving    -> closed
//       +-----------+-----------+-- kGivenUp -> cancelling -> closed, or leaving by kBye
//
// The run loop has a state of its own for the allocation (orchestrator/run/allocation_state.h). It is told Started when
// the agent has spoken, and Ended on the way into kLeaving or kClosed, once, and never after kAbandoned.
#pragma once
#include <optional>

namespace sweep::launch {

enum class BatchJobState {
  kSubmitting,  // the scheduler's answer to the submission is awaited
  kInDoubt,     // it may have been submitted: it is looked for by its name before anything is submitted again
  kWaitingForRoom,  // this user may have no more jobs now: it is submitted again later
  kQueued,          // the scheduler has it; it has no nodes, as far as is known
  kRunning,         // it has its nodes
  kCancelling,      // given up; its end is decided, and is told when the scheduler has released the job
  kLastWords,       // the scheduler says that it is over; its outbox may still have something
  kLeaving,         // its end was told; the scheduler may still have it, and must not start it again
  kClosed,          // nothing more to ask about
};
inline constexpr int kBatchJobStates = 9;

enum class BatchJobEvent {
  kAccepted,        // its number is known: the submission was answered, or it was found by its name
  kUnanswered,      // the submission was not answered clearly
  kNoRoom,          // the submission was refused because the user has as many jobs as allowed
  kRefused,         // the submission was refused for good
  kSubmittedAgain,  // a submission was started that was not the first
  kWithdrawn,       // it is not submitted again: cancelled, waited too long, or tried too often
  kSeenQueued,      // the scheduler says: it waits in the queue
  kSeenRunning,     // the scheduler says: it has its nodes
  kSeenOver,        // the scheduler says: it has ended
  kDenied,          // the scheduler said twice in a row that it knows no such job
  kLastWordsOver,   // a shared file system had its time to show the outbox, or nothing is expected there
  kGivenUp,         // decided here: it cannot start, started a second time, or its folder is gone
  kBye,             // its agent said that it ends
  kStepOver,        // the step of an existing job, our child, has ended
  kAbandoned,       // its launcher goes; the job lives on
};
inline constexpr int kBatchJobEvents = 15;

// The state after the event. nullopt: the pair is illegal.
std::optional<BatchJobState> next_state(BatchJobState, BatchJobEvent);

// Whether its end was told.
constexpr bool has_ended(BatchJobState state) {
  return state == BatchJobState::kLeaving || state == BatchJobState::kClosed;
}

}  // namespace sweep::launch
