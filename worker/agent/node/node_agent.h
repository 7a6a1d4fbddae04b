// NodeAgent: an agent that serves one node of an allocation for its head agent. Orders and reports use one
// connection. When the head agent is gone, or silent for the lease time, it ends its ranks and itself. It has
// no mailbox.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <string>

#include "worker/agent/net/head_client.h"
#include "worker/agent/node/node_runner.h"

namespace sweep::agent {

class NodeAgent final : private NodeRunnerListener {
 public:
  NodeAgent(const Options& options, const SandboxInfo& inside);
  // Runs until the end; returns the exit code.
  int run(const Join& join);

 private:
  void runner_said(AgentMessage message) override { link_->send(to_frame(message)); }
  void attempt_finished(i64) override { leave_when_done(); }
  void stop_requested(const std::string& reason, bool at_once) override {
    stop(reason, EndCause::kAgentStopping, at_once);
  }
  void obey(const AgentMessage& message);
  void arm();
  void stop(const std::string& reason, EndCause cause, bool at_once);
  void leave_when_done();

  const Options& options_;
  const SandboxInfo& inside_;
  boost::asio::io_context io_;
  NodeRunner runner_;
  std::shared_ptr<PeerConnection> link_;
  boost::asio::steady_timer timer_;
  std::string leaving_;
  int code_ = 0, ticks_unwritten_ = 0;
};

}  // namespace sweep::agent
