// Schedule: what each rank of a pipeline does in one step, in order: forward and backward of its chunks'
// micro- batches, and the messages between them. Pure arithmetic: it is executed elsewhere, as it is.
//
// A pipeline of p ranks with v chunks a rank has p x v virtual stages; chunk c of rank r is stage c x p + r.
// Schedules: gpipe, all forward then all backward (Huang et al. 2019, GPipe); 1f1b (Narayanan et al. 2019,
// PipeDream-Flush); interleaved, 1f1b over v chunks (Narayanan et al. 2021, arXiv 2104.04473, section 2.2);
// zero_bubble, ZB-H1: backward in an input and a weight part (Qi et al. 2024, arXiv 2401.10241, section 3).
//
// Messages are put in one order over the whole pipeline, that of a run with forward 1 and backward 2. Each rank
// posts those with one peer in that order; with several chunks, where the pipeline is a ring, those with all its
// peers. So they never wait for each other in a circle, even where all messages of a rank share one queue and a
// send waits for its receive: NCCL runs the sends and receives of a communicator one after another on its stream
// (tests/support/schedule_check.h simulates that).
#pragma once
#include <optional>
#include <vector>

#include "schema/trial.h"

namespace sweep::shape {

// kBackward computes the gradient of the input (and, unless the schedule splits it, those of the weights,
// which are kBackwardWeight then). A send posts the result of the chunk's forward (backward) to the next
// (previous) stage; a receive posts the buffer for the input of the chunk's forward (backward). None of the
// four waits: a forward or backward waits for its own receive; a send's buffer is free when the rank's next
// send to the same peer is posted, or at the end.
enum class Act {
  kForward,
  kBackward,
  kBackwardWeight,
  kSendForward,
  kRecvForward,
  kSendBackward,
  kRecvBackward
};

struct Action {
  Act act = Act::kForward;
  i64 chunk = 0, micro = 0;
  bool operator==(const Action&) const = default;
};
constexpr bool computes(Act act) {
  return act == Act::kForward || act == Act::kBackward || act == Act::kBackwardWeight;
}
constexpr bool sends(Act act) {
  return act == Act::kSendForward || act == Act::kSendBackward;
}

// Weight gradients are actions of their own.
constexpr bool splits_backward(Schedule kind) {
  return kind == Schedule::kZeroBubble;
}

struct Pipeline {
  Schedule kind = Schedule::k1f1b;
  i64 ranks = 1, micros = 1, chunks = 1;
  i64 stages() const { return ranks * chunks; }
  i64 stage(i64 rank, i64 chunk) const { return chunk * ranks + rank; }
  i64 rank_of(i64 stage) const { return stage % ranks; }
  static Pipeline of(const Trial&);
};

using ActionList = std::vector<Action>;
// The computations of one rank, in order.
ActionList computations(const Pipeline&, i64 rank);
// The schedule of every rank. REQUIRES: chunks 1 unless interleaved on several ranks, and then micros % ranks
// == 0.
std::vector<ActionList> make_schedule(const Pipeline&);

// The other end of a message that a rank posts, as a rank of the pipeline.
i64 peer_of(const Pipeline&, i64 rank, const Action&);
// The same number at both ends of a message, different between all messages of a step.
i64 message_number(const Pipeline&, i64 rank, const Action&);

// The number of micro-batches that show the same peak of memory on every rank as `micros`: warm-up and a few
// turns of the steady state. It is at most `micros`.
i64 micros_with_same_peak(const Pipeline&);

// Three numbers of micro-batches, evenly apart, each enough for the steady state; the last one shows the peak. What a step
// costs is a straight line through them.
struct ShortSteps {
  i64 few = 0, more = 0, most = 0;
};
// nullopt: the pipeline's own number is not so large that they are less work.
std::optional<ShortSteps> short_steps(const Pipeline&);

}  // namespace sweep::shape
