// AttemptReport: what the agent reports of this node's part of an attempt: why it ended, with evidence, the
// records of its ranks, how their processes ended, and the AttemptEnd. The first cause that is set is the
// cause.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "schema/agent_message.h"
#include "schema/records.h"
#include "worker/agent/evidence/node_watch.h"
#include "worker/agent/evidence/watchdog.h"
#include "worker/agent/net/rendezvous_server.h"
#include "worker/agent/node/attempt_files.h"
#include "worker/agent/node/rank_processes.h"

namespace sweep::agent {

// The goal of a node's messages about an attempt: the head agent, over a connection if that is another node's.
class MessageSink {
 public:
  virtual ~MessageSink() = default;
  virtual void send(AgentMessage message) = 0;
};

// The resources of an attempt on its node once it is prepared.
struct AttemptResources {
  std::optional<AttemptFiles> files;
  // Set for an attempt that spans nodes.
  std::unique_ptr<RendezvousServer> door;
  std::optional<NodeWatch::Span> span;
};

// The position of each rank: phase, step, last collective, flight recorder. REQUIRES: files and span.
AgentEvidence rank_evidence(const RankProcesses&, const AttemptResources&, const Watchdog&);
// Whether the rank ended without an ok record.
bool has_failed(const RankProcess&, const AttemptFiles&);
// Whether it ended without a record since the disk was full.
bool had_no_room(const RankProcess&, const AttemptFiles&);

class AttemptReport {
 public:
  // REQUIRES: both outlive it.
  AttemptReport(MessageSink& sink, const NodePart& part) : sink_(sink), part_(part) {}

  std::optional<EndCause> cause() const { return cause_; }
  void set_cause(EndCause, AgentEvidence evidence = {});
  // A rank ended without an ok record. Where evidence.why is said, the fault is the node's and not the trial's.
  void rank_failed(AgentEvidence evidence);
  // A cause that is set later, by settle(), once the ranks have had time to write their flight recorders.
  void intend(EndCause, std::string why, std::optional<i64> rank);
  // evidence: where the ranks are; what intend() was told is added.
  void settle(AgentEvidence evidence);
  // Why its ranks could not be started; empty: they could.
  const std::string& start_error() const { return start_error_; }
  void set_start_error(std::string why) { start_error_ = std::move(why); }
  // Records, for people, what could not be ended.
  void set_cleanup_failure(std::string what) { cleanup_failure_ = std::move(what); }
  // A start is tried anew: nothing went wrong yet.
  void start_again();
  void started(i64 unix_ns) { started_unix_ns_ = unix_ns; }
  i64 started_unix_ns() const { return started_unix_ns_; }
  // The last records of the attempt. REQUIRES: called once.
  void send(const RankProcesses&, AttemptResources&);

 private:
  void send_records(const RankProcesses&, const AttemptFiles&);
  void send_exits(const RankProcesses&, const AttemptResources&);
  std::vector<GpuError> gpu_errors(const RankProcesses&, AttemptResources&) const;

  MessageSink& sink_;
  const NodePart& part_;
  std::optional<EndCause> cause_;
  AgentEvidence evidence_;
  struct {
    EndCause cause = EndCause::kHang;
    std::string why;
    std::optional<i64> rank;
  } intended_;
  std::string start_error_, cleanup_failure_;
  i64 started_unix_ns_ = 0;
};

}  // namespace sweep::agent
