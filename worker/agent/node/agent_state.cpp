#include "worker/agent/node/agent_state.h"

#include <utility>

namespace sweep::agent {

AgentState next(AgentState state, AgentEvent event) {
  switch (event) {
    case AgentEvent::kScreen:
      return state == AgentState::kJoining ? AgentState::kScreening : state;
    case AgentEvent::kServe:
      return state < AgentState::kServing ? AgentState::kServing : state;
    case AgentEvent::kFinish:
      return state == AgentState::kServing ? AgentState::kFinishing : state;
    case AgentEvent::kLeave:
      return state < AgentState::kLeaving ? AgentState::kLeaving : state;
    case AgentEvent::kByeSent:
      return state == AgentState::kLeaving ? AgentState::kFlushing : state;
    case AgentEvent::kClose:
      return state == AgentState::kFlushing ? AgentState::kLeft : state;
  }
  return state;
}

bool AgentLife::apply(AgentEvent event) {
  const AgentState before = std::exchange(state_, next(state_, event));
  return before != state_;
}

void AgentLife::leave(const std::string& reason) {
  if (apply(AgentEvent::kLeave)) reason_ = reason;
}

}  // namespace sweep::agent
