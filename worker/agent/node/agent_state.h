// AgentState: what the agent of an allocation is doing, and which event moves it on. AgentLife keeps the
// state of one agent, and why it leaves. Pure.
#pragma once
#include <string>

namespace sweep::agent {

// clang-format off
//
//   state      event:  screen     serve    finish     leave    bye_sent  close
//   ---------------------------------------------------------------------------
//   joining            screening  serving  .          leaving  .         .
//   screening          .          serving  .          leaving  .         .
//   serving            .          .        finishing  leaving  .         .
//   finishing          .          .        .          leaving  .         .
//   leaving            .          .        .          .        flushing  .
//   flushing           .          .        .          .        .         left
//   left               .          .        .          .        .         .
//
//   ".": the event changes nothing.
// clang-format on
enum class AgentState {
  // The agents of the other nodes are awaited; an agent of one node passes through at once.
  kJoining,
  // The nodes are measured before the first attempt.
  kScreening,
  // Attempts are read, started and ended.
  kServing,
  // Like serving, until no attempt waits.
  kFinishing,
  // Nothing is started any more; what runs is awaited.
  kLeaving,
  // The last line was sent; the disk has to take it.
  kFlushing,
  // The node agents are told to leave.
  kLeft,
};

enum class AgentEvent { kScreen, kServe, kFinish, kLeave, kByeSent, kClose };

AgentState next(AgentState state, AgentEvent event);

class AgentLife {
 public:
  AgentState state() const { return state_; }
  bool is(AgentState state) const { return state_ == state; }
  bool takes_work() const { return is(AgentState::kServing) || is(AgentState::kFinishing); }
  // Nothing is started from here on.
  bool leaves() const { return state_ >= AgentState::kLeaving; }
  // Whether the event changed the state.
  bool apply(AgentEvent event);
  // The first reason stands.
  void leave(const std::string& reason);
  // Why it leaves. REQUIRES: leaves().
  const std::string& reason() const { return reason_; }

 private:
  AgentState state_ = AgentState::kJoining;
  std::string reason_;
};

}  // namespace sweep::agent
