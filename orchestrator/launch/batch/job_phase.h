// Where a batch job is, and who is to blame for its end: the words of every scheduler are mapped to these.
#pragma once

namespace sweep::launch {

enum class Phase {
  kPending,    // waits in the queue, again perhaps
  kRunning,    // has its nodes, suspended ones too: its agent may speak at any time
  kSuspended,  // has its nodes, but its processes stand still
  kEnding,     // its end has begun
  kEnded,
  kUnknown,  // a state that this version has never heard of: nothing is concluded from it
};
enum class Blame {
  kNone,     // it ended as it should
  kNobody,   // preempted, cancelled, out of time: its trials burn no retry
  kMachine,  // nodes failed, memory ran out, its script failed
};

}  // namespace sweep::launch
