// NodeRunner: what an agent of either kind does on its own node: it keeps the zygote and the node's watch, runs parts
// of attempts, takes the ends of children and hears signals. It says what happens through `say` and knows neither
// mailbox nor network. REQUIRES: used on the event loop only.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "worker/agent/net/rendezvous.h"
#include "worker/agent/node/attempt_run.h"

namespace sweep::agent {

class NodeRunner {
 public:
  struct Events {
    std::function<void(Frame)> say;             // {"kind", "body"}, as an agent tells its head
    std::function<void(i64 attempt)> finished;  // its closing word was said; the node is free again
    std::function<void(const std::string& reason, bool again)>
        stop;  // SIGTERM, SIGINT, the orchestrator's end
  };
  NodeRunner(boost::asio::io_context& io, const Options& options, const SandboxInfo& inside, Events events);
  ~NodeRunner();

  void begin();             // signals, the orchestrator, a warm zygote
  void obey(const Frame&);  // start_part, end_part, peer_ended, store (node_part.h)
  void end_all(const std::string& cause, bool at_once);
  bool idle() const { return running_.empty(); }
  void reap();
  void leave();  // no more ranks: the zygote goes
  void set_endpoint(const Endpoint& here) { context_.here = here; }
  Nvml* nvml() const { return node_.nvml(); }
  // A child of the agent's own, ended when it leaves and no attempt's business.
  void spare(pid_t pid, std::function<void()> ended) { spared_[pid] = std::move(ended); }

 private:
  void watch_signals();
  void watch_parent();
  void start(const nlohmann::json& body);
  void say(std::string_view kind, nlohmann::json body, std::string blob = {});

  boost::asio::io_context& io_;
  const Options& options_;
  const SandboxInfo& inside_;
  Events events_;
  NodeWatch node_;
  Zygote zygote_;
  AttemptContext context_;
  RendezvousFolder rendezvous_;
  std::map<i64, std::unique_ptr<AttemptRun>> running_;
  std::map<pid_t, int> unclaimed_;  // ends of children nobody knows yet, while an attempt starts
  std::map<pid_t, std::function<void()>> spared_;  // and who wants to hear of its end
  boost::asio::signal_set signals_;
  boost::asio::posix::stream_descriptor parent_;
  bool signals_armed_ = false, stopping_ = false;
};

}  // namespace sweep::agent
