#include "worker/agent/node/node_link.h"

namespace sweep::agent {
namespace {

class LocalNode final : public NodeLink {
 public:
  explicit LocalNode(NodeRunner& runner) : runner_(runner) {}
  void send(const AgentMessage& message) override { runner_.obey(message); }
  i64 clock_offset_ns() const override { return 0; }
  void leave() override { runner_.leave(); }

 private:
  NodeRunner& runner_;
};

class RemoteNode final : public NodeLink {
 public:
  RemoteNode(HeadServer& server, i64 node) : server_(server), node_(node) {}
  void send(const AgentMessage& message) override { server_.send(node_, message); }
  i64 clock_offset_ns() const override { return server_.clock_offset_ns(node_); }
  void leave() override { send(Leave{}); }

 private:
  HeadServer& server_;
  const i64 node_;
};

}  // namespace

std::unique_ptr<NodeLink> local_node(NodeRunner& runner) {
  return std::make_unique<LocalNode>(runner);
}

std::unique_ptr<NodeLink> remote_node(HeadServer& server, i64 node) {
  return std::make_unique<RemoteNode>(server, node);
}

}  // namespace sweep::agent
