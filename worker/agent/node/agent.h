// Agent: the nanny of an allocation, and of its own node. It reads the inbox, places attempts on free nodes, has
// them run by its own crew and by the node agents, and writes what happened to the outbox; it ends with its
// orchestrator, on a signal, or when it is told to finish. It never computes.
#pragma once
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <string>

#include "worker/agent/net/head_server.h"
#include "worker/agent/node/distributed_attempt.h"
#include "worker/agent/node/mailbox.h"
#include "worker/agent/node/node_runner.h"
#include "worker/agent/node/placement.h"
#include "worker/agent/node/screening.h"
#include "worker/agent/node/time_limit.h"

namespace sweep::agent {

class Agent {
 public:
  Agent(const Options& options, const SandboxInfo& inside, Mailbox mailbox);
  int run();  // until the end; the exit code

 private:
  // An allocation of several nodes (nodes.cpp).
  Expected<void> open_hub();
  Expected<void> start_peers();
  void say_ready();
  void node_joined(i64 node, const nlohmann::json& hello);
  void node_lost(i64 node, const std::string& why);
  void node_said(i64 node, const Frame& frame);
  void tell(i64 node, const Frame& frame);
  void check_joined();
  void serve();
  // The look at the nodes (screen_nodes.cpp); serves afterwards, whatever came of it.
  void screen_nodes();
  void screened(const std::vector<i64>& nodes);
  void take_out(i64 node, const NodeScreen& screen);
  std::string name_of(i64 node) const;

  void hello();
  void watch_inbox();
  void arm();
  void tick();
  void read_inbox();
  void obey(const spool::Line& line);
  void enqueue(const spool::Line& line);
  void never_started(i64 attempt, const std::string& cause, const std::string& why);
  void give_back(i64 attempt, const std::string& cause);
  void cancel(i64 id, const std::string& cause);
  void finish(bool now);
  void start_next();
  void hear(i64 node, const Frame& frame);
  void finished(DistributedAttempt& spread);
  void leave_if_stuck();
  void drop_queue(const std::string& cause);
  void stop(const std::string& reason, const std::string& cause, bool at_once);
  void watch_contact();
  void watch_idleness();
  void watch_time();
  void give_back_late();
  void watch_mailbox();
  void leave_when_done();
  bool others_are_gone() const;

  const Options& options_;
  const SandboxInfo& inside_;
  boost::asio::io_context io_;
  Mailbox mailbox_;
  Placement placement_;
  TimeLimit time_;
  NodeRunner crew_;
  DistributedContext spread_lent_;
  std::map<i64, std::unique_ptr<DistributedAttempt>> running_;
  std::map<i64, double> started_s_;  // of those
  boost::asio::steady_timer timer_;
  boost::asio::posix::stream_descriptor inotify_;
  std::array<char, 4096> events_{};
  std::unique_ptr<HeadServer> hub_;  // null: one node
  std::string address_;              // where it listens
  std::map<i64, std::string> hosts_;
  std::map<i64, NodeRecord> records_;      // of nodes that have joined
  std::map<i64, RankRecord> screen_said_;  // by rank
  std::unique_ptr<DistributedContext> screen_lent_;
  std::map<i64, double> dead_at_s_;  // lost nodes whose ranks may run until then
  std::string leaving_;              // why no more attempts are started; empty: they are
  std::string absent_;               // nodes that never joined, for the farewell
  bool srun_ended_ = false;          // that started the other nodes' agents
  bool skip_fsync_ = false;          // leave without waiting for the disk
  bool serving_ = false, screening_ = false, tainted_ = false, finishing_ = false, bye_sent_ = false,
       left_ = false;
  int ticks_unwritten_ = 0, ticks_unread_ = 0;
  double began_s_ = 0, contact_s_ = 0, busy_s_ = 0;
  std::filesystem::file_time_type contact_file_{};
};

// One line of JSON for whoever started this agent and waits for it; fd -1: nobody does. Closes fd.
void tell_launcher(int fd, const nlohmann::json& line);

}  // namespace sweep::agent
