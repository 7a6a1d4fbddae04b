// Dispatcher: starts the attempts that wait on nodes that are free, in order, and answers for those that it
// cannot start. REQUIRES: used on the event loop only.
#pragma once
#include <boost/asio/io_context.hpp>
#include <string>

#include "worker/agent/node/agent_control.h"
#include "worker/agent/node/agent_state.h"
#include "worker/agent/node/allocation_nodes.h"
#include "worker/agent/node/mailbox.h"
#include "worker/agent/node/placement.h"
#include "worker/agent/node/running_attempts.h"
#include "worker/agent/node/time_limit.h"

namespace sweep::agent {

class Dispatcher final : public NodeEvents {
 public:
  Dispatcher(boost::asio::io_context& io, const Options& options, const AgentLife& life, Mailbox& mailbox,
             AttemptNodes& nodes, AgentControl& control);

  // It waits from here on, or is answered at once where no agent could ever run it.
  void push(Attempt attempt);
  // Starts what fits, while the agent takes work and its outbox is not behind.
  void start_waiting();
  void drop_waiting(EndCause cause);

  Placement& placement() { return placement_; }
  const Placement& placement() const { return placement_; }
  RunningAttempts& running() { return running_; }
  bool idle() const { return running_.empty() && placement_.empty(); }
  // The allocation's time is over.
  bool out_of_time() const;
  // A node had leftovers that could not be ended.
  bool node_unclean() const { return node_unclean_; }

  void said(i64 node, const AgentMessage& message) override { running_.said(node, message); }
  void node_unusable(i64 node) override;
  void node_lost(i64 node, const std::string& why) override;
  void node_dead(i64 node) override { running_.node_dead(node); }

 private:
  void send_not_started(i64 attempt, EndCause cause, const std::string& why);
  void send_cancelled(i64 attempt, EndCause cause);
  void cancel_late();
  void finished(DistributedAttempt& attempt);
  // The node cannot work.
  void leave_out(i64 node, const std::string& why);
  // The node gets no more work; the orchestrator is told. lost: its agent is gone.
  void give_up(i64 node, const std::string& why, bool lost);
  void leave_if_stuck();

  boost::asio::io_context& io_;
  const AgentLife& life_;
  Mailbox& mailbox_;
  AttemptNodes& nodes_;
  AgentControl& control_;
  const i64 node_count_;
  Placement placement_;
  TimeLimit time_;
  RunningAttempts running_;
  bool node_unclean_ = false;
};

}  // namespace sweep::agent
