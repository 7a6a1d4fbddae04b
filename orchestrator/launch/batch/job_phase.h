// The phase of a batch job, and why it ended: every scheduler maps its states to these.
#pragma once

namespace sweep::launch {

enum class Phase {
  kPending,    // waits in the queue, again perhaps
  kRunning,    // has its nodes: its agent may write at any time
  kSuspended,  // has its nodes, but its processes are stopped
  kEnding,     // its end has begun
  kEnded,
  kUnknown,  // a state that this version does not know: nothing is concluded from it
};
enum class Blame {
  kNone,      // it ended as it should
  kExternal,  // preempted, cancelled, out of time: its trials use up no retry
  kMachine,   // nodes failed, memory ran out, its script failed
};

}  // namespace sweep::launch
