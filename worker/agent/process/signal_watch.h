// SignalWatch: tells its listener of signals to the agent and of its orchestrator's end. REQUIRES: used on
// the event loop only.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <string>

namespace sweep::agent {

class SignalListener {
 public:
  virtual ~SignalListener() = default;
  // SIGCHLD: some children have ended.
  virtual void reap() = 0;
  // SIGTERM, SIGINT, or the orchestrator's end. at_once: the orchestrator is gone, or this is the second
  // signal.
  virtual void stop_requested(const std::string& reason, bool at_once) = 0;
};

class SignalWatch {
 public:
  // parent_pidfd: of the orchestrator; -1: it is not watched.
  SignalWatch(boost::asio::io_context& io, int parent_pidfd, SignalListener& listener);
  // The signals are blocked before (enter_sandbox()), so that none is lost.
  void begin();

 private:
  void watch_signals();

  SignalListener& listener_;
  boost::asio::signal_set signals_;
  const int parent_pidfd_;
  boost::asio::posix::stream_descriptor parent_;
  bool signalled_ = false;
};

}  // namespace sweep::agent
