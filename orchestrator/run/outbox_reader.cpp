#include "orchestrator/run/outbox_reader.h"

#include <fmt/format.h>

#include "orchestrator/run/failure_policy.h"
#include "orchestrator/run/recovery.h"
#include "schema/early_failure.h"

namespace sweep::run {
namespace {

// A GPU that failed is a node that is lost. Without a record of a rank and without the agent's end, nothing is known.
bool is_against_node(const FinishedAttempt& finished) {
  const Result& result = finished.result;
  if (result.outcome == Outcome::kNodeLost) return true;
  const auto& end = finished.in_flight.reports.end;
  if (result.outcome != Outcome::kCrash || (!result.phase && !end)) return false;
  return failed_early(result.phase, end ? end->evidence.ranks : std::vector<RankPosition>());
}

}  // namespace

Expected<OutboxReader::Effects> OutboxReader::process(HeldAllocation& held, const launch::Outbox& outbox,
                                                      bool run_ends) {
  held.on_contact(context_.now());
  const auto chunk = held.attempts.ingest_chunk(outbox.id, outbox.offset, outbox.bytes);
  SWEEP_TRY(context_.store.ingest(chunk.batch));
  context_.launcher.acknowledge(outbox.id, chunk.batch.new_offset);
  Effects effects;
  for (const auto& node : chunk.batch.nodes) SWEEP_TRY(on_node(held, node, run_ends, effects));
  for (const auto& node : chunk.nodes_out) SWEEP_TRY(on_node_out(held, node, run_ends, effects));
  for (const auto& [text, attempt] : chunk.notes) SWEEP_TRY(context_.note(EventKind::kAgent, text, attempt));
  const bool ends = run_ends || effects.wrong_node.has_value();
  for (const auto& each : chunk.finished) SWEEP_TRY(on_finished(held, each, ends, effects));
  for (const auto& end : chunk.batch.ends)
    if (!end.clean) SWEEP_TRY(on_unclean(held, end, effects));
  return effects;
}

// A node that is not what the trials declare ends the run before its first trial: each would end as
// unsupported, or as a result under another hardware's name. The head agent's record comes last, when the
// others have joined.
Expected<void> OutboxReader::on_node(HeldAllocation& held, const NodeRecord& node, bool run_ends,
                                     Effects& effects) {
  const Settings& settings = context_.settings;
  const auto host = held.hosts.try_emplace(node.node, node.host).first->second;
  SWEEP_TRY(on_slow(host, node));
  if (node.node == 0) held.apply(AllocationEvent::kNodesKnown);
  if (!settings.judge_node || run_ends || effects.wrong_node) return {};
  const bool by_shape = settings.allocate_per_shape;
  const auto why = settings.judge_node(node, by_shape ? held.request.hardware : std::string(),
                                       by_shape ? held.request.ranks_per_node : 0);
  if (!why) return {};
  effects.wrong_node = fmt::format("node {}: {}", host, *why);
  return context_.note(EventKind::kHardware, *effects.wrong_node);
}

// A node where attempts fail is not requested again. A lost one may be back in a moment: where the work that is left is
// worth it, the allocation ends once its running attempts have ended, and the next one asks for every host.
Expected<void> OutboxReader::on_node_out(HeldAllocation& held, const NodeOut& node, bool run_ends,
                                         Effects& effects) {
  const auto named = held.hosts.find(node.node);
  const auto host = named == held.hosts.end() ? std::string() : named->second;
  if (!held.nodes_out.insert(node.node).second) return {};
  if (!node.lost) return host.empty() ? Expected<void>() : note_quarantine(hosts_.unfit(host, node.why));
  SWEEP_TRY(context_.note(
      EventKind::kNodeLost,
      fmt::format("allocation {} lost node {} ({}), {} of its {} are left: {}", held.request.id, node.node,
                  host.empty() ? "unknown" : host, held.request.nodes - std::ssize(held.nodes_out),
                  held.request.nodes, node.why)));
  if (run_ends || held.ends() || host.empty()) return {};
  SWEEP_GET(const auto groups, dispatch_.queue().demand());
  double waiting_s = 0;
  for (const auto& group : groups) waiting_s += group.predicted_s;
  if (!worth_another_allocation(waiting_s, held.usable_nodes())) return {};
  hosts_.cool_down(host, context_.now());
  effects.finish = true;
  return {};
}

Expected<void> OutboxReader::exclude(const std::string& host, const std::string& why) {
  const auto said = hosts_.excluded(host, why);
  if (said.empty()) return {};
  SWEEP_TRY(context_.store.exclude_host(context_.settings.sweep, {context_.settings.launcher, host, why}));
  return note_quarantine(said);
}

// A host that ends trials at once is given back, and without a record of it the scheduler gives it to the next
// allocation.
Expected<void> OutboxReader::judge_host(const HeldAllocation& held, const FinishedAttempt& finished,
                                        Effects& effects) {
  if (held.hosts.size() != 1 || held.request.nodes != 1) return {};
  const auto& host = held.hosts.begin()->second;
  const Result& result = finished.result;
  if (result.outcome == Outcome::kOk) hosts_.trust().ok(host);
  if (result.outcome != Outcome::kOk && !is_always_final(result.outcome))
    hosts_.trust().failed(result.trial_id, host, is_against_node(finished));
  while (const auto bad = hosts_.trust().bad_node()) {
    effects.unfit_hosts.push_back(*bad);
    SWEEP_TRY(exclude(
        *bad,
        "several attempts in a row failed there before their first step, while another host has results"));
  }
  return {};
}

// A host that was slower than the others when its agent measured it before the first trial.
Expected<void> OutboxReader::on_slow(const std::string& host, const NodeRecord& node) {
  const auto why = slow_in_screen(node);
  if (why.empty()) return {};
  SWEEP_TRY(context_.note(EventKind::kScreen, fmt::format("node {} stands out: {}", host, why)));
  if (!context_.settings.exclude_slow_hosts) return {};
  return note_quarantine(hosts_.slow(host, why));
}

Expected<void> OutboxReader::on_finished(HeldAllocation& held, const FinishedAttempt& finished, bool run_ends,
                                         Effects& effects) {
  SWEEP_TRY(dispatch_.learn(finished));
  context_.observer.on_result(finished.in_flight.entry, finished.result);
  effects.finished = true;
  if (finished.result.outcome == Outcome::kCancelled) return on_cancelled(held, finished, run_ends, effects);
  SWEEP_TRY(judge_host(held, finished, effects));
  ++held.results;
  held.predicted_s += predicted_node_seconds(finished.in_flight.entry);
  effects.results = true;
  return {};
}

Expected<void> OutboxReader::on_cancelled(HeldAllocation& held, const FinishedAttempt& cancelled,
                                          bool run_ends, Effects& effects) {
  const auto& end = cancelled.in_flight.reports.end;
  const auto cause = end ? std::optional(end->cause) : std::nullopt;
  // Its node gets no more work; the other nodes of the allocation go on.
  if (end && end->evidence.node && held.nodes_out.contains(*end->evidence.node)) return {};
  const auto then = decide_cancelled(run_ends || effects.finish || held.ends(), cause, held.results);
  if (then == AfterCancel::kNothing) return {};
  effects.finish = true;
  if (then == AfterCancel::kFinish) return {};
  held.apply(AllocationEvent::kReturned);
  return context_.note(EventKind::kAgent,
                       fmt::format("allocation {} gets no more work: its agent cancelled attempt {} ({})",
                                   held.request.id, cancelled.in_flight.attempt.id, cancelled.result.reason),
                       cancelled.in_flight.attempt.id);
}

// A process could not be ended, or GPU memory is still in use: its node gets no more work.
Expected<void> OutboxReader::on_unclean(const HeldAllocation& held, const AttemptEnd& end, Effects& effects) {
  effects.finish = effects.finish || !held.ends();
  return note_quarantine(hosts_.unclean(held.hosts, end), end.attempt);
}

Expected<void> OutboxReader::note_quarantine(const std::vector<std::string>& sentences,
                                             std::optional<i64> attempt) {
  for (const auto& sentence : sentences) SWEEP_TRY(context_.note(EventKind::kQuarantine, sentence, attempt));
  return {};
}

Expected<void> OutboxReader::close_unfinished(HeldAllocation& held, const launch::Ended& ended,
                                              bool run_ends) {
  for (const InFlightAttempt& each : held.attempts.abandon()) {
    const auto outcome = outcome_of_unfinished(run_ends, ended.preempted, each.started);
    SWEEP_TRY(context_.store.finish_attempt(abandoned(each.attempt, outcome, ended.reason)));
    SWEEP_TRY(dispatch_.changed(each.attempt.trial_id));
  }
  return {};
}

}  // namespace sweep::run
