// The call of an agent, with what every launcher takes from the request.
#pragma once
#include "orchestrator/launch/launcher.h"
#include "schema/agent_call.h"

namespace sweep::launch {

// Spool, allocation, incarnation and slots are set; the launcher adds the rest.
inline AgentCall call_for(const AllocationRequest& wanted) {
  AgentCall out;
  out.spool = wanted.spool;
  out.allocation = wanted.id;
  out.incarnation = wanted.incarnation;
  out.slots = wanted.slots;
  return out;
}

}  // namespace sweep::launch
