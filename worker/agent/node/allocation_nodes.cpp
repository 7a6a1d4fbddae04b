#include "worker/agent/node/allocation_nodes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "base/time.h"
#include "schema/codec.h"
#include "schema/spool.h"
#include "worker/agent/evidence/node_probe.h"
#include "worker/agent/process/process.h"
#include "worker/agent/process/srun_step.h"

namespace sweep::agent {
namespace {

// Seconds until every node agent has joined.
constexpr double kJoinLimit = 120;
// Seconds that a node agent takes to end its ranks by itself, after its lease.
constexpr double kRanksEndWithin = 2;
constexpr auto kForNodesToLeave = std::chrono::seconds(3);
// srun waits until Slurm knows of every task's end.
constexpr auto kForStepToEnd = std::chrono::seconds(10);

}  // namespace

AllocationNodes::AllocationNodes(boost::asio::io_context& io, const Options& options,
                                 const SandboxInfo& inside, RecordSink& outbox, AgentControl& control)
    : options_(options),
      inside_(inside),
      outbox_(outbox),
      control_(control),
      runner_(io, options, inside, *this),
      timer_(io) {
  if (options.nodes > 1) server_ = std::make_unique<HeadServer>(io, options.nodes, options.lease_s, *this);
  for (i64 node = 0; node < options.nodes; ++node) nodes_[node];
}

Expected<void> AllocationNodes::open(NodeEvents& events) {
  events_ = &events;
  join_until_s_ = steady_s() + kJoinLimit;
  nodes_[0].record = probe_node(runner_.nvml());
  runner_.begin();
  JoinLine where_to_join;
  if (server_) {
    SWEEP_GET(const auto here, choose_endpoint(options_.interface));
    runner_.set_endpoint(here);
    spdlog::info("waiting for {} node agents on {} ({})", options_.nodes - 1, here.address, here.interface);
    SWEEP_TRY(server_->listen(here));
    where_to_join = {here.address, server_->port(), server_->secret().hex()};
  }
  tell_ready(where_to_join);
  return options_.peers == Peers::kSlurm ? start_peers(where_to_join) : Expected<void>();
}

void AllocationNodes::tell_ready(const JoinLine& where_to_join) {
  AgentReady line = ready_line(inside_);
  if (options_.peers == Peers::kLauncher) static_cast<JoinLine&>(line) = where_to_join;
  tell_launcher(options_.ready_fd, line);
}

Expected<void> AllocationNodes::start_peers(const JoinLine& where_to_join) {
  SWEEP_GET(const auto pid, start_srun_step(options_, where_to_join));
  runner_.spare(pid, [this] {
    srun_ended_ = true;
    if (phase_ == Phase::kLeaving && others_are_gone()) return control_.all_left();
    check_joined();
  });
  return {};
}

void AllocationNodes::node_joined(i64 node, NodeHello hello) {
  if (hello.record) outbox_.send(spool::kNode, to_json(*hello.record));
  nodes_.at(node).record = std::move(hello.record);
  spdlog::info("{} has joined", name(node));
  check_joined();
}

void AllocationNodes::check_joined() {
  if (phase_ != Phase::kJoining) return;
  if (server_ && !server_->all_joined()) {
    if (!srun_ended_ && steady_s() < join_until_s_) return;
    const auto why =
        srun_ended_
            ? std::string("srun, which starts the other nodes' agents, has ended; its output is above")
            : fmt::format("not within {} s", kJoinLimit);
    for (auto& [node, state] : nodes_) {
      if (node == 0 || server_->joined(node)) continue;
      state.absent = true;
      spdlog::warn("node {} has not joined and gets no work: {}", node, why);
      events_->node_unusable(node);
    }
  }
  phase_ = Phase::kJoined;
  if (server_) server_->stop_listening();
  control_.nodes_ready();
}

std::string AllocationNodes::absent() const {
  std::string out;
  for (const auto& [node, state] : nodes_)
    if (state.absent) out += fmt::format("{}node {}", out.empty() ? "" : ", ", node);
  return out.empty() ? out : fmt::format(" (never joined, see slurm.log: {})", out);
}

std::map<i64, NodeRecord> AllocationNodes::records() const {
  std::map<i64, NodeRecord> out;
  for (const auto& [node, state] : nodes_)
    if (state.record) out[node] = *state.record;
  return out;
}

void AllocationNodes::set_facts(i64 node, NodeFacts facts) {
  if (auto& record = nodes_.at(node).record) record->facts = std::move(facts);
}

void AllocationNodes::look() {
  runner_.reap();
  const double now = steady_s();
  for (auto& [node, state] : nodes_)
    if (state.dead_at_s && *state.dead_at_s <= now) {
      state.dead_at_s.reset();
      events_->node_dead(node);
    }
}

void AllocationNodes::node_lost(i64 node, const std::string& why) {
  if (phase_ == Phase::kLeaving) {
    if (others_are_gone()) control_.all_left();
    return;
  }
  spdlog::warn("{} is lost: {}", name(node), why);
  // It may be out of reach and alive: its ranks end when its own lease is over.
  nodes_.at(node).dead_at_s = steady_s() + options_.lease_s + kRanksEndWithin;
  events_->node_lost(node, why);
}

void AllocationNodes::node_said(i64 node, const AgentMessage& message) {
  if (!std::holds_alternative<Leave>(message)) return events_->said(node, message);
  events_->node_unusable(node);  // it ends what it runs and reports that before it goes
}

void AllocationNodes::attempt_finished(i64) {
  control_.leave_when_done();
}

void AllocationNodes::stop_requested(const std::string& reason, bool at_once) {
  control_.stop(reason, EndCause::kAgentStopping, at_once);
}

bool AllocationNodes::others_are_gone() const {
  return !server_ || (!server_->any_connected() && (options_.peers != Peers::kSlurm || srun_ended_));
}

// A message to a lost node is dropped.
void AllocationNodes::send(i64 node, const AgentMessage& message) {
  if (node == 0) return runner_.obey(message);
  server_->send(node, message);
}

void AllocationNodes::leave() {
  phase_ = Phase::kLeaving;
  runner_.leave();
  for (i64 node = 1; node < options_.nodes; ++node) server_->send(node, Leave{});
  if (others_are_gone()) return control_.all_left();
  timer_.expires_after(options_.peers == Peers::kSlurm ? kForStepToEnd : kForNodesToLeave);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) control_.all_left();
  });
}

std::string AllocationNodes::name(i64 node) const {
  const auto& record = nodes_.at(node).record;
  return record ? fmt::format("node {} ({})", node, record->host) : fmt::format("node {}", node);
}

}  // namespace sweep::agent
