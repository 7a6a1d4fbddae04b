// NodeLink: how the agent of an allocation reaches one of its nodes: its own, or one with a node agent.
#pragma once
#include <memory>

#include "worker/agent/net/head_server.h"
#include "worker/agent/node/node_runner.h"

namespace sweep::agent {

class NodeLink {
 public:
  virtual ~NodeLink() = default;
  // A message to a lost node is dropped.
  virtual void send(const AgentMessage& message) = 0;
  // The node's UTC clock minus this one's.
  virtual i64 clock_offset_ns() const = 0;
  // No more work: its ranks have ended.
  virtual void leave() = 0;
};

// The runner or server must outlive the link.
std::unique_ptr<NodeLink> local_node(NodeRunner& runner);
std::unique_ptr<NodeLink> remote_node(HeadServer& server, i64 node);

}  // namespace sweep::agent
