// AgentControl: what the parts of an agent ask of it. The Agent implements it.
#pragma once
#include <string>

#include "schema/outcome.h"

namespace sweep::agent {

class AgentControl {
 public:
  virtual ~AgentControl() = default;
  // Every node agent has joined, or the time for joining is over.
  virtual void nodes_ready() = 0;
  // The orchestrator sends nothing more: leave when no attempt waits.
  virtual void finish() = 0;
  // End everything and leave. reason: for people. at_once: without grace periods, and without waiting for the
  // disk.
  virtual void stop(const std::string& reason, EndCause cause, bool at_once) = 0;
  // The next attempt needs more nodes than can be used.
  virtual void too_few_nodes() = 0;
  // Something ended: leave if that was the last.
  virtual void leave_when_done() = 0;
  // After leaving: no other node agent is connected, or their time is over.
  virtual void all_left() = 0;
};

}  // namespace sweep::agent
