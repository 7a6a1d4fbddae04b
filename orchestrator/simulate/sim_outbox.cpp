#include "orchestrator/simulate/sim_outbox.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "schema/codec.h"
#include "schema/spool.h"

namespace sweep::simulate {

SimOutbox::SimOutbox(std::string allocation, i64 incarnation)
    : allocation_(std::move(allocation)), incarnation_(incarnation) {}

void SimOutbox::add(std::string_view kind, const nlohmann::json& body) {
  unread_ += spool::frame(allocation_, incarnation_, ++lines_, kind, body);
}

void SimOutbox::acknowledge(std::uint64_t offset) {
  unread_.erase(0, static_cast<std::size_t>(offset - offset_));
  offset_ = offset;
}

void SimOutbox::add_start(i64 attempt) {
  add(spool::kStarted, to_json(AttemptStarted{attempt, {}, 0}));
}

void SimOutbox::add_end(const Attempt& attempt, const SimulatedOutcome& outcome, bool cancelled) {
  const SimulatedOutcome::Kind kind = outcome.kind;
  RankRecord record;
  record.attempt = attempt.id;
  record.phase = kind == SimulatedOutcome::kOk ? Phase::kDone : Phase::kStep;
  if (kind == SimulatedOutcome::kOk) {
    const Trial& t = attempt.trial;
    const i64 steps = std::max<i64>(1, attempt.measure.steps);
    // The ranks of a tensor or pipeline group of a command report the same tokens (metrics::command_tokens).
    const i64 shares = t.workload == Workload::kCommand ? t.dp * t.cp : t.world();
    const auto step_ns = static_cast<i64>(1e9 * outcome.steps_s / static_cast<double>(steps));
    record.outcome = Outcome::kOk;
    for (i64 step = 0; step < steps; ++step)
      record.samples.push_back({.step = step,
                                .step_ns = step_ns,
                                .forward_ns = step_ns,
                                .tokens = t.global_batch_size * t.seq_len / shares,
                                .loss = 1.0});
  } else if (kind == SimulatedOutcome::kOom) {
    record.outcome = Outcome::kOom, record.oom_kind = OomKind::kDevice;
  }
  if (kind != SimulatedOutcome::kOk) record.message = "simulated";
  auto body = to_json(record);
  const i64 reporting_ranks = cancelled || kind == SimulatedOutcome::kHang ? 0
                              : kind == SimulatedOutcome::kOk              ? attempt.trial.world()
                                                                           : 1;
  for (i64 rank = 0; rank < reporting_ranks; ++rank) {
    body["rank"] = rank;
    add(spool::kRankRecord, body);
  }
  AttemptEnd last;
  last.attempt = attempt.id;
  last.cause = cancelled                         ? EndCause::kCancelled
               : kind == SimulatedOutcome::kOk   ? EndCause::kDone
               : kind == SimulatedOutcome::kHang ? EndCause::kHang
                                                 : EndCause::kRankFailed;
  add(spool::kAttemptEnd, to_json(last));
}

}  // namespace sweep::simulate
