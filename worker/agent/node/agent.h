// Agent: serves an allocation from its first node. It joins the parts (nodes, inbox, dispatcher, limits) and
// moves through the states of agent_state.h. It ends with its orchestrator, on a signal, or when it is told
// to finish. It never computes.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <string>

#include "worker/agent/node/agent_control.h"
#include "worker/agent/node/agent_limits.h"
#include "worker/agent/node/agent_state.h"
#include "worker/agent/node/allocation_nodes.h"
#include "worker/agent/node/dispatcher.h"
#include "worker/agent/node/inbox.h"
#include "worker/agent/node/mailbox.h"
#include "worker/agent/node/node_screening.h"

namespace sweep::agent {

class Agent final : private AgentControl {
 public:
  Agent(const Options& options, const SandboxInfo& inside, Mailbox mailbox);
  // Runs until the end; returns the exit code.
  int run();

 private:
  void nodes_ready() override;
  void finish() override;
  void stop(const std::string& reason, EndCause cause, bool at_once) override;
  void too_few_nodes() override;
  void leave_when_done() override;
  void all_left() override { io_.stop(); }

  void screened();
  void serve();
  void arm();
  void tick();
  void check_limits();

  const Options& options_;
  const SandboxInfo& inside_;
  boost::asio::io_context io_;
  Mailbox mailbox_;
  AgentLife life_;
  AllocationNodes nodes_;
  Dispatcher dispatcher_;
  Inbox inbox_;
  AgentLimits limits_;
  NodeScreening screening_;
  boost::asio::steady_timer timer_;
  // Leaves without waiting for a full disk.
  bool at_once_ = false;
};

}  // namespace sweep::agent
