// MessageSink: where a node's messages about an attempt go: to the head agent, over a connection where that
// is another node's.
#pragma once
#include "schema/agent_message.h"

namespace sweep::agent {

class MessageSink {
 public:
  virtual ~MessageSink() = default;
  virtual void send(AgentMessage message) = 0;
};

}  // namespace sweep::agent
