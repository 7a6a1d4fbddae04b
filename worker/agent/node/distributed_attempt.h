// DistributedAttempt: one attempt as the head agent sees it: the parts that its nodes run. It passes records
// and exits on, tells the other parts when one has failed, and merges the ends of all parts into one
// AttemptEnd. It knows no socket and no process. REQUIRES: `finished` is called once, from the event loop, before the
// AttemptEnd is sent; the DistributedAttempt must not be destroyed inside that call.
#pragma once
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "schema/agent_message.h"
#include "worker/agent/net/rendezvous_store.h"
#include "worker/agent/node/placement.h"
#include "worker/agent/node/record_sink.h"

namespace sweep::agent {

// The nodes of the allocation, as far as an attempt needs them.
class AttemptNodes {
 public:
  virtual ~AttemptNodes() = default;
  // Sends to a node, this one included.
  virtual void send(i64 node, const AgentMessage& message) = 0;
  // The node's UTC clock minus this one's.
  virtual i64 clock_offset_ns(i64 node) const = 0;
  // The node's name for people.
  virtual std::string name(i64 node) const = 0;
};

class DistributedAttempt {
 public:
  DistributedAttempt(AttemptNodes& nodes, RecordSink& sink, Placement::Placed placed,
                     std::function<void(DistributedAttempt&)> finished);

  void start();
  void receive(i64 node, const AgentMessage&);
  // The node's agent is gone or out of reach. Its ranks are taken for ended once part_is_dead() is called
  // too.
  void node_lost(i64 node, const std::string& why);
  void part_is_dead(i64 node);
  void end(EndCause cause, bool at_once);
  // Each counts the other if they share a node and neither has ended. Whether they do.
  bool meet(DistributedAttempt& other);

  const Placement::Placed& placed() const { return placed_; }
  i64 id() const { return placed_.attempt.id; }
  bool ended_by_itself() const {
    return cause_ != EndCause::kCancelled && cause_ != EndCause::kAgentStopping;
  }
  // The node that ended its part since it cannot work, as with a full disk; nullopt: none did.
  std::optional<i64> unfit_node() const {
    return cause_ == EndCause::kAgentStopping && cause_node_ >= 0 ? std::optional(cause_node_) : std::nullopt;
  }
  // Why it cannot. REQUIRES: unfit_node().
  const std::string& why_unfit() const { return parts_.at(cause_node_).end.evidence.why; }
  const std::vector<i64>& unclean_nodes() const { return unclean_; }
  // Tells `NodeTrust` what the attempt's end says of its nodes. REQUIRES: it has ended.
  void tell(NodeTrust<i64>&) const;

 private:
  struct PartState {
    i64 first_rank = 0, ranks = 0;
    std::vector<i64> slots;
    bool started = false, ended = false;
    std::vector<i64> pids;
    i64 started_unix_ns = 0;
    AttemptEnd end;
  };
  bool runs(const PartState&, i64 rank) const;
  void on_message(i64 node, const AttemptStarted&);
  void on_message(i64 node, AttemptEnd);
  void on_message(i64 node, const StoreMessage&);
  // A record of one of its ranks is passed on by the head's clock: the earliest end is the cause.
  template <class Record>
  void pass_on(i64 node, std::string_view kind, Record record);
  void trouble(EndCause cause, i64 from_node);
  bool failed_early() const;
  void conclude();
  AttemptEnd merged();

  AttemptNodes& nodes_;
  RecordSink& sink_;
  const Placement::Placed placed_;
  std::function<void(DistributedAttempt&)> finished_;
  std::map<i64, PartState> parts_;
  RendezvousStore store_;
  // nullopt: nothing went wrong yet.
  std::optional<EndCause> cause_;
  // The node whose part failed first; -1: none, the end was ordered.
  i64 cause_node_ = -1;
  std::vector<i64> unclean_;
  // Failures that ranks recorded: before their first step, and others.
  i64 early_failures_ = 0, late_failures_ = 0;
  i64 neighbours_ = 0;
  bool concluded_ = false;
};

}  // namespace sweep::agent
