#include "orchestrator/run/outbox_reader.h"

#include <fmt/format.h>

#include "orchestrator/run/failure_policy.h"
#include "orchestrator/run/recovery.h"

namespace sweep::run {

Expected<OutboxReader::Effects> OutboxReader::process(HeldAllocation& held, const launch::Outbox& outbox,
                                                      bool run_ends) {
  const auto chunk = held.attempts.ingest_chunk(outbox.id, outbox.offset, outbox.bytes);
  SWEEP_TRY(context_.store.ingest(chunk.batch));
  context_.launcher.acknowledge(outbox.id, chunk.batch.new_offset);
  Effects effects;
  for (const auto& node : chunk.batch.nodes) SWEEP_TRY(on_node(held, node, run_ends, effects));
  for (const auto& [text, attempt] : chunk.notes) SWEEP_TRY(context_.note("agent", text, attempt));
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
  return context_.note("hardware", *effects.wrong_node);
}

// A host that was slower than the others when its agent measured it before the first trial.
Expected<void> OutboxReader::on_slow(const std::string& host, const NodeRecord& node) {
  const auto why = slow_in_screen(node);
  if (why.empty()) return {};
  SWEEP_TRY(context_.note("screen", fmt::format("node {} stands out: {}", host, why)));
  if (!context_.settings.exclude_slow_hosts) return {};
  return note_quarantine(hosts_.slow(host, why));
}

Expected<void> OutboxReader::on_finished(HeldAllocation& held, const FinishedAttempt& finished, bool run_ends,
                                         Effects& effects) {
  SWEEP_TRY(dispatch_.learn(finished));
  context_.observer.on_result(finished.in_flight.entry, finished.result);
  effects.finished = true;
  if (finished.result.outcome == Outcome::kCancelled) return on_cancelled(held, finished, run_ends, effects);
  ++held.results;
  held.predicted_s += predicted_node_seconds(finished.in_flight.entry);
  effects.results = true;
  return {};
}

Expected<void> OutboxReader::on_cancelled(HeldAllocation& held, const FinishedAttempt& cancelled,
                                          bool run_ends, Effects& effects) {
  const auto& end = cancelled.in_flight.reports.end;
  const auto cause = end ? std::optional(end->cause) : std::nullopt;
  const auto then = decide_cancelled(run_ends || effects.finish || held.ends(), cause, held.results);
  if (then == AfterCancel::kNothing) return {};
  effects.finish = true;
  if (then == AfterCancel::kFinish) return {};
  held.apply(AllocationEvent::kReturned);
  return context_.note("agent",
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
  for (const auto& sentence : sentences) SWEEP_TRY(context_.note("quarantine", sentence, attempt));
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
