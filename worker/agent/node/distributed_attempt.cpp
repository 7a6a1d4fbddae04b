#include "worker/agent/node/distributed_attempt.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/time.h"
#include "schema/codec.h"
#include "schema/early_failure.h"
#include "schema/spool.h"
#include "worker/agent/node/merged_end.h"

namespace sweep::agent {
namespace {

// A crash while the rank's program came up.
bool crashed_early(const RankRecord& record) {
  return record.outcome == Outcome::kCrash && sweep::failed_early(record.phase, {});
}

// A client of the store: a rank's connection on one node.
constexpr i64 kClientsPerNode = i64{1} << 32;

}  // namespace

DistributedAttempt::DistributedAttempt(AttemptNodes& nodes, RecordSink& sink, Placement::Placed placed,
                                       std::function<void(DistributedAttempt&)> finished)
    : nodes_(nodes),
      sink_(sink),
      placed_(std::move(placed)),
      finished_(std::move(finished)),
      store_([this](i64 client, Frame answer) {
        nodes_.send(client / kClientsPerNode,
                    StoreMessage{{id(), client % kClientsPerNode}, std::move(answer)});
      }) {
  const i64 each = placed_.attempt.processes() / static_cast<i64>(placed_.nodes.size());
  i64 first = 0;
  for (std::size_t i = 0; i < placed_.nodes.size(); ++i) {
    PartState& part = parts_[placed_.nodes[i]];
    part.first_rank = first;
    part.ranks = each;
    part.slots = placed_.slots[i];
    first += each;
  }
}

void DistributedAttempt::start() {
  for (const auto& [node, part] : parts_)
    nodes_.send(node, NodePart{{placed_.attempt, part.first_rank, part.ranks, part.slots, placed_.beside},
                               parts_.size() == 1});
}

bool DistributedAttempt::runs(const PartState& part, i64 rank) const {
  if (placed_.attempt.is_rehearsal()) return placed_.attempt.starts(rank);  // it has one part
  return rank >= part.first_rank && rank < part.first_rank + part.ranks;
}

bool DistributedAttempt::meet(DistributedAttempt& other) {
  const auto shared = [&](const auto& part) { return other.parts_.contains(part.first); };
  const bool met = !concluded_ && !other.concluded_ && std::any_of(parts_.begin(), parts_.end(), shared);
  if (met) ++neighbours_, ++other.neighbours_;
  return met;
}

void DistributedAttempt::receive(i64 node, const AgentMessage& message) {
  const auto part = parts_.find(node);
  if (part == parts_.end() || part->second.ended || concluded_) return;
  if (const auto* store = std::get_if<StoreMessage>(&message)) on_message(node, *store);
  if (const auto* started = std::get_if<AttemptStarted>(&message)) on_message(node, *started);
  if (const auto* end = std::get_if<AttemptEnd>(&message)) on_message(node, *end);
  if (const auto* said = std::get_if<PartTrouble>(&message)) trouble(said->cause, node);
  if (const auto* record = std::get_if<RankRecord>(&message)) {
    if (record->outcome != Outcome::kOk) ++(crashed_early(*record) ? early_failures_ : late_failures_);
    pass_on(node, spool::kRankRecord, *record);
  }
  if (const auto* exit = std::get_if<RankExit>(&message)) pass_on(node, spool::kRankExit, *exit);
}

template <class Record>
void DistributedAttempt::pass_on(i64 node, std::string_view kind, Record record) {
  if (!runs(parts_.at(node), record.rank)) return;
  if (record.ended_unix_ns > 0) record.ended_unix_ns -= nodes_.clock_offset_ns(node);
  sink_.send(kind, to_json(record));
}

void DistributedAttempt::on_message(i64 node, const StoreMessage& message) {
  if (message.client < kClientsPerNode)
    store_.request(node * kClientsPerNode + message.client, message.frame);
}

void DistributedAttempt::on_message(i64 node, const AttemptStarted& started) {
  PartState& part = parts_[node];
  part.started = true;
  part.pids = started.pids;
  part.started_unix_ns = started.unix_ns - nodes_.clock_offset_ns(node);
  if (!std::all_of(parts_.begin(), parts_.end(), [](const auto& p) { return p.second.started; })) return;
  std::vector<i64> pids;
  i64 first = part.started_unix_ns;
  for (const auto& [each, state] : parts_) {
    pids.insert(pids.end(), state.pids.begin(), state.pids.end());
    first = std::min(first, state.started_unix_ns);
  }
  sink_.send(spool::kStarted, to_json(AttemptStarted{id(), std::move(pids), first}));
  if (parts_.size() == 1) return;
  for (const auto& [each, state] : parts_) nodes_.send(each, AllStarted{id()});
}

void DistributedAttempt::on_message(i64 node, AttemptEnd end) {
  PartState& part = parts_[node];
  part.end = std::move(end);
  for (GpuError& error : part.end.gpu_errors) error.host = nodes_.name(node);
  for (NodeLoad& load : part.end.load.nodes) load.host = nodes_.name(node);
  for (i64* stamp : {&part.end.started_unix_ns, &part.end.ended_unix_ns})
    if (*stamp > 0) *stamp -= nodes_.clock_offset_ns(node);
  if (part.started_unix_ns > 0) part.end.started_unix_ns = part.started_unix_ns;
  part.ended = true;
  if (!part.end.clean) {
    unclean_.push_back(node);
    part.end.cleanup_failure = fmt::format("{}: {}", nodes_.name(node), part.end.cleanup_failure);
  }
  if (part.end.cause != EndCause::kDone) trouble(part.end.cause, node);
  if (unfit_node() == node) part.end.evidence.node = node;
  conclude();
}

void DistributedAttempt::trouble(EndCause cause, i64 from_node) {
  if (cause_) return;  // the first one is the cause
  cause_ = cause;
  cause_node_ = from_node;
  for (const auto& [node, part] : parts_)
    if (node != from_node && !part.ended) nodes_.send(node, PeerEnded{id(), cause});
}

void DistributedAttempt::node_lost(i64 node, const std::string& why) {
  const auto part = parts_.find(node);
  if (part == parts_.end() || part->second.ended) return;
  part->second.end.cause = EndCause::kNodeLost;
  if (!ended_by_itself() || cause_ == EndCause::kNodeLost) return;
  AgentEvidence& evidence = part->second.end.evidence;
  evidence.why = fmt::format("{} was lost: {}", nodes_.name(node), why);
  evidence.rank = part->second.first_rank, evidence.node = node;
  if (!cause_) return trouble(EndCause::kNodeLost, node);
  cause_ = EndCause::kNodeLost;  // the hang or the broken connection that others told of followed from it
  cause_node_ = node;
}

void DistributedAttempt::part_is_dead(i64 node) {
  const auto part = parts_.find(node);
  if (part == parts_.end() || part->second.ended) return;
  part->second.ended = true;
  part->second.end.cause = EndCause::kNodeLost;
  conclude();
}

void DistributedAttempt::end(EndCause cause, bool at_once) {
  if (!cause_) cause_ = cause;
  for (const auto& [node, part] : parts_)
    if (!part.ended) nodes_.send(node, EndPart{id(), cause, at_once});
}

// The agent saw in which phase a rank was that left no record.
bool DistributedAttempt::failed_early() const {
  if (cause_ == EndCause::kStartFailed) return true;
  if (cause_ != EndCause::kRankFailed || late_failures_ > 0) return false;
  return early_failures_ > 0 || sweep::failed_early({}, parts_.at(cause_node_).end.evidence.ranks);
}

void DistributedAttempt::tell(NodeTrust<i64>& trust) const {
  if (!cause_)
    for (const i64 node : placed_.nodes) trust.ok(node);
  const bool its_own = cause_ == EndCause::kRankFailed || cause_ == EndCause::kStartFailed ||
                       cause_ == EndCause::kHang || cause_ == EndCause::kTimeout;
  if (its_own && cause_node_ >= 0) trust.failed(placed_.attempt.trial_id, cause_node_, failed_early());
}

// One end of the parts' several ones.
AttemptEnd DistributedAttempt::merged() {
  std::vector<PartEnd> parts;
  for (const i64 node : placed_.nodes) {
    const PartState& part = parts_[node];
    parts.push_back({&part.end, part.ranks, parts_.size() == 1 || node == cause_node_});
  }
  return merged_end(parts);
}

void DistributedAttempt::conclude() {
  const auto all = [&](auto&& holds) {
    return std::all_of(parts_.begin(), parts_.end(), [&](const auto& part) { return holds(part.second); });
  };
  if (concluded_ || !all([](const PartState& part) { return part.ended; })) return;
  concluded_ = true;
  AttemptEnd out = merged();
  out.attempt = id();
  out.neighbours = neighbours_;
  out.unclean_nodes = unclean_;
  out.cause = all([](const PartState& part) { return part.end.cause == EndCause::kDone; })
                  ? EndCause::kDone
                  : cause_.value_or(EndCause::kNodeLost);
  if (out.ended_unix_ns <= 0) out.ended_unix_ns = unix_ns_now();
  finished_(*this);
  sink_.send(spool::kAttemptEnd, to_json(out));
}

}  // namespace sweep::agent
