// HeadServer: the head agent's side of the connections to its node agents. It listens on an ephemeral port of
// the stated address, accepts a caller that proves the secret and names a node that is expected and has not
// joined yet, and refuses every other: a wrong proof, an oversized or meaningless frame, a connection that
// sends nothing in time. A refusal is logged once for each address and cause, and affects no other
// connection. REQUIRES: used on the event loop only.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "runtime/accept_callers.h"
#include "runtime/coroutine.h"
#include "worker/agent/net/interface.h"
#include "worker/agent/net/peer_connection.h"
#include "worker/agent/net/secret.h"

namespace sweep::agent {

// The reports of a HeadServer about the node agents.
class HeadServerListener {
 public:
  virtual ~HeadServerListener() = default;
  virtual void node_joined(i64 node, NodeHello hello) = 0;
  virtual void node_said(i64 node, const AgentMessage& message) = 0;
  // Is called at most once for a node; it does not come back.
  virtual void node_lost(i64 node, const std::string& why) = 0;
};

class HeadServer {
 public:
  // nodes: of the allocation, the head's own (0) included.
  HeadServer(boost::asio::io_context& io, i64 nodes, double lease_s, HeadServerListener& listener);
  ~HeadServer();

  Expected<void> listen(const Endpoint&);
  int port() const { return port_; }
  const Secret& secret() const { return secret_; }
  bool all_joined() const { return static_cast<i64>(seen_.size()) == nodes_ - 1; }
  void stop_listening();

  bool any_connected() const { return !links_.empty(); }
  bool joined(i64 node) const { return seen_.contains(node); }
  void send(i64 node, const AgentMessage&);
  i64 clock_offset_ns(i64 node) const;
  void close_all();

 private:
  // A connection that has not proven the secret yet.
  struct Caller;
  awaitable<void> meet(std::shared_ptr<Caller>);
  void expect(const std::shared_ptr<Caller>&);
  void judge(const std::shared_ptr<Caller>&, const Frame&);
  void refuse(const std::shared_ptr<Caller>&, const std::string& why);
  void let_in(const std::shared_ptr<Caller>&, i64 node, const Frame& answer, NodeHello hello);

  boost::asio::io_context& io_;
  const i64 nodes_;
  const double lease_s_;
  HeadServerListener& listener_;
  const Secret secret_ = Secret::random();
  boost::asio::ip::tcp::acceptor acceptor_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  int port_ = 0;
  // Oldest first.
  std::list<std::shared_ptr<Caller>> callers_;
  // "address: cause", logged already.
  std::set<std::string> refused_;
  std::map<i64, std::shared_ptr<PeerConnection>> links_;
  // Nodes that have joined at some time; a lost one does not come back.
  std::set<i64> seen_;
};

}  // namespace sweep::agent
