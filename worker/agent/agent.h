// Agent: the nanny of one node. It reads the inbox, queues attempts by slots, runs them, and writes what
// happened to the outbox; it ends with its orchestrator, on a signal, or when it is told to finish. It never
// computes.
#pragma once
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "worker/agent/attempt_run.h"
#include "worker/agent/mailbox.h"
#include "worker/agent/queue.h"

namespace sweep::agent {

class Agent {
 public:
  Agent(const Options& options, const Inside& inside, Mailbox mailbox);
  ~Agent();
  int run();  // until the end; the exit code

 private:
  void hello();
  void watch_signals();
  void watch_inbox();
  void watch_parent();
  void arm();
  void tick();
  void read_inbox();
  void obey(const spool::Line& line);
  void enqueue(const spool::Line& line);
  void cancel(i64 id, const std::string& cause);
  void finish(bool now);
  void start_next();
  void finished(AttemptRun& run);
  void drop_queue(const std::string& cause);
  void reap();
  void stop(const std::string& reason, const std::string& cause, bool at_once);
  void leave_when_idle();
  void leave_when_done();

  const Options& options_;
  const Inside& inside_;
  boost::asio::io_context io_;
  Mailbox mailbox_;
  Queue queue_;
  NodeWatch node_;
  Zygote zygote_;
  Lent lent_;
  std::map<i64, std::unique_ptr<AttemptRun>> running_;
  std::map<pid_t, int> unclaimed_;  // ends of children nobody knows yet, while an attempt starts
  boost::asio::signal_set signals_;
  boost::asio::steady_timer timer_;
  boost::asio::posix::stream_descriptor parent_, inotify_;
  std::array<char, 4096> events_{};
  std::string leaving_;  // why no more attempts are started; empty: they are
  bool hurry_ = false;   // leave without waiting for the disk
  bool tainted_ = false, finishing_ = false, bye_sent_ = false, left_ = false, signals_armed_ = false;
  int ticks_unwritten_ = 0;
  std::chrono::steady_clock::time_point busy_ = std::chrono::steady_clock::now();  // last work or word
};

}  // namespace sweep::agent
