// NodeRunner: what an agent of either kind does on its own node: it keeps the zygote and the node's watch,
// runs parts of attempts, reaps children and handles signals. It reports to a listener and knows neither
// mailbox nor network. REQUIRES: used on the event loop only.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "worker/agent/net/rendezvous.h"
#include "worker/agent/node/attempt_run.h"
#include "worker/agent/process/signal_watch.h"

namespace sweep::agent {

class NodeRunnerListener {
 public:
  virtual ~NodeRunnerListener() = default;
  // A message for the head agent.
  virtual void runner_said(AgentMessage message) = 0;
  // The end of its part was reported; the node is free again.
  virtual void attempt_finished(i64 attempt) = 0;
  // The same as SignalListener's.
  virtual void stop_requested(const std::string& reason, bool at_once) = 0;
};

class NodeRunner final : private AttemptHost, private SignalListener {
 public:
  NodeRunner(boost::asio::io_context& io, const Options& options, const SandboxInfo& inside,
             NodeRunnerListener& listener);
  ~NodeRunner() override;

  // Watches signals and the orchestrator, and starts a zygote.
  void begin();
  // A message of the head agent.
  void obey(const AgentMessage&);
  void end_all(EndCause cause, bool at_once);
  bool idle() const { return running_.empty(); }
  void reap() override;
  // No more ranks: the zygote ends.
  void leave();
  void set_endpoint(const Endpoint& here) { context_.here = here; }
  Nvml* nvml() const { return node_.nvml(); }
  // A child that belongs to no attempt; it is killed when the runner is destroyed.
  void spare(pid_t pid, std::function<void()> ended) { spared_[pid] = std::move(ended); }

 private:
  void stop_requested(const std::string& reason, bool at_once) override {
    listener_.stop_requested(reason, at_once);
  }
  void start(const NodePart& part);
  void send(AgentMessage message) override { listener_.runner_said(std::move(message)); }
  bool alone() const override { return running_.size() <= 1; }
  bool spared(pid_t pid) const override { return spared_.contains(pid); }
  std::optional<int> claim(pid_t pid) override;

  boost::asio::io_context& io_;
  const Options& options_;
  NodeRunnerListener& listener_;
  NodeWatch node_;
  Zygote zygote_;
  AttemptContext context_;
  RendezvousFolder rendezvous_;
  std::map<i64, std::unique_ptr<AttemptRun>> running_;
  // While an attempt starts: ends of children whose pid is not known to it yet.
  std::map<pid_t, int> unclaimed_;
  // Children that belong to no attempt, and what to do when one ends.
  std::map<pid_t, std::function<void()>> spared_;
  SignalWatch signals_;
};

}  // namespace sweep::agent
