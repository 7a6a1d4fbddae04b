// AllocationNodes: the nodes of an allocation as its agent sees them: it starts the other nodes' agents where
// that is its task, waits until they have joined, passes on what nodes say, and notices when one is lost.
// REQUIRES: used on the event loop only, and open() before anything else.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "worker/agent/net/head_server.h"
#include "worker/agent/node/agent_control.h"
#include "worker/agent/node/distributed_attempt.h"
#include "worker/agent/node/node_runner.h"

namespace sweep::agent {

// Receives what happens on nodes, for the class that places attempts on them.
class NodeEvents {
 public:
  virtual ~NodeEvents() = default;
  virtual void said(i64 node, const AgentMessage& message) = 0;
  // It takes no more work; what it runs goes on.
  virtual void node_unusable(i64 node) = 0;
  // Its agent is gone or out of reach.
  virtual void node_lost(i64 node, const std::string& why) = 0;
  // The ranks of a lost node have ended: the lease of its agent is over.
  virtual void node_dead(i64 node) = 0;
};

class AllocationNodes final : public AttemptNodes, public HeadServerListener, private NodeRunnerListener {
 public:
  AllocationNodes(boost::asio::io_context& io, const Options& options, const SandboxInfo& inside,
                  RecordSink& outbox, AgentControl& control);

  // Probes this node, listens for the others, tells the launcher that the agent is ready, and starts the
  // others.
  Expected<void> open(NodeEvents& events);
  // While nodes join: whether that is over.
  void check_joined();
  // Ends of children, and lost nodes whose lease is over.
  void look();
  // Every node is told to leave; AgentControl::all_left() follows.
  void leave();
  NodeRunner& runner() { return runner_; }
  // The records of nodes that have joined.
  std::map<i64, NodeRecord> records() const;
  // REQUIRES: the node has a record.
  void set_facts(i64 node, NodeFacts facts);
  // Names the nodes that never joined, for the reason that the agent gives when it leaves; empty: all joined.
  std::string absent() const;

  void send(i64 node, const AgentMessage& message) override;
  i64 clock_offset_ns(i64 node) const override { return node == 0 ? 0 : server_->clock_offset_ns(node); }
  std::string name(i64 node) const override;

 private:
  enum class Phase { kJoining, kJoined, kLeaving };
  struct Node {
    // nullopt: it has not joined, or sent none.
    std::optional<NodeRecord> record;
    bool absent = false;
    // The time until which the ranks of a lost node may run.
    std::optional<double> dead_at_s;
  };
  void node_joined(i64 node, NodeHello hello) override;
  void node_said(i64 node, const AgentMessage& message) override;
  void node_lost(i64 node, const std::string& why) override;
  void runner_said(AgentMessage message) override { events_->said(0, message); }
  void attempt_finished(i64 attempt) override;
  void stop_requested(const std::string& reason, bool at_once) override;
  Expected<void> start_peers(const JoinLine& where_to_join);
  void tell_ready(const JoinLine& where_to_join);
  // A job whose srun is ended before its step keeps its other nodes for seconds, so srun is waited for.
  bool others_are_gone() const;

  const Options& options_;
  const SandboxInfo& inside_;
  RecordSink& outbox_;
  AgentControl& control_;
  NodeEvents* events_ = nullptr;
  NodeRunner runner_;
  // Null: the allocation has one node.
  std::unique_ptr<HeadServer> server_;
  std::map<i64, Node> nodes_;
  Phase phase_ = Phase::kJoining;
  double join_until_s_ = 0;
  // srun starts the other nodes' agents; it ends with the last of them.
  bool srun_ended_ = false;
  boost::asio::steady_timer timer_;
};

}  // namespace sweep::agent
