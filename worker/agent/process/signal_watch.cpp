#include "worker/agent/process/signal_watch.h"

#include <signal.h>

#include <utility>

namespace sweep::agent {

SignalWatch::SignalWatch(boost::asio::io_context& io, int parent_pidfd, SignalListener& listener)
    : listener_(listener), signals_(io), parent_pidfd_(parent_pidfd), parent_(io) {}

void SignalWatch::begin() {
  sigset_t ours;
  sigemptyset(&ours);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) {
    signals_.add(signal);
    sigaddset(&ours, signal);
  }
  ::sigprocmask(SIG_UNBLOCK, &ours, nullptr);
  watch_signals();
  if (parent_pidfd_ < 0) return;
  parent_.assign(parent_pidfd_);
  parent_.async_wait(parent_.wait_read, [this](const boost::system::error_code& error) {
    if (!error) listener_.stop_requested("orchestrator gone", true);
  });
}

void SignalWatch::watch_signals() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    if (signal == SIGCHLD)
      listener_.reap();
    else
      listener_.stop_requested("signal", std::exchange(signalled_, true));
    watch_signals();
  });
}

}  // namespace sweep::agent
