// What the agents of a simulated allocation do: attempts in the order they were posted, and what is said of them.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "orchestrator/simulate/sim_launcher.h"
#include "schema/codec.h"
#include "schema/spool.h"

namespace sweep::simulate {

Expected<i64> SimLauncher::post_attempt(const launch::AllocationId& id, const Attempt& attempt) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return fail(fmt::format("allocation {} of the simulation has ended", id));
  Job& job = found->second;
  job.waiting.push_back(attempt);
  start_attempts(job);
  return ++job.posted;
}

void SimLauncher::start_attempts(Job& job) {
  bool any = false;
  const auto id = job.request.id;
  while (job.ready && !job.waiting.empty() &&
         job.waiting.front().trial.nodes <= job.request.nodes - job.busy) {
    Running next{std::move(job.waiting.front()), {}, clock_.seconds()};
    job.waiting.pop_front();
    next.outcome = outcomes_.of(next.attempt);
    const i64 attempt = next.attempt.id;
    job.busy += next.attempt.trial.nodes;
    say(job, spool::kStarted, {{"attempt", attempt}, {"pids", nlohmann::json::array()}, {"unix_ns", 0}});
    later(next.outcome.start_s + next.outcome.steps_s, id,
          [this, attempt](Job& mine) { attempt_over(mine, attempt, false); });
    job.running.emplace(attempt, std::move(next));
    any = true;
  }
  if (any) later(0, id, [this](Job& mine) { deliver(mine); });
}

void SimLauncher::attempt_over(Job& job, i64 attempt, bool cancelled) {
  auto found = job.running.extract(attempt);
  if (!found) return;  // it was cancelled before
  const Running& over = found.mapped();
  const auto nodes = static_cast<double>(over.attempt.trial.nodes);
  const double took = clock_.seconds() - over.since_s;
  const bool answered = !cancelled && (over.outcome.kind == SimulatedOutcome::kOk ||
                                       over.outcome.kind == SimulatedOutcome::kOom);
  job.busy -= over.attempt.trial.nodes;
  ++account_.attempts;
  if (answered) {
    job.time.start_up += nodes * over.outcome.start_s;
    job.time.trials += nodes * (took - over.outcome.start_s);
  } else {
    job.time.lost += nodes * took;
  }
  write_records(job, over, cancelled);
  start_attempts(job);
  deliver(job);
  later(0, job.request.id, [this](Job& mine) { end_when_empty(mine); });
}

void SimLauncher::say(Job& job, std::string_view kind, const nlohmann::json& body) {
  job.unread += spool::frame(job.request.id, job.request.incarnation, ++job.lines, kind, body);
}

// Every rank that measured writes a record; of a failure its first rank writes one. The agent writes the end.
void SimLauncher::write_records(Job& job, const Running& over, bool cancelled) {
  const Attempt& attempt = over.attempt;
  const SimulatedOutcome::Kind kind = over.outcome.kind;
  RankRecord record;
  record.attempt = attempt.id;
  record.phase = kind == SimulatedOutcome::kOk ? Phase::kDone : Phase::kStep;
  if (kind == SimulatedOutcome::kOk) {
    const i64 world = attempt.trial.world(), steps = std::max<i64>(1, attempt.measure.steps);
    const auto step_ns = static_cast<i64>(1e9 * over.outcome.steps_s / static_cast<double>(steps));
    record.outcome = Outcome::kOk;
    for (i64 step = 0; step < steps; ++step)
      record.samples.push_back({0, step, false, step_ns, step_ns, 0, 0, std::nullopt,
                                attempt.trial.global_batch_size * attempt.trial.seq_len / world, 1.0, 0});
  } else if (kind == SimulatedOutcome::kOom) {
    record.outcome = Outcome::kOom, record.oom_kind = OomKind::kDevice;
  }
  if (kind != SimulatedOutcome::kOk) record.message = "simulated";
  auto body = to_json(record);
  const i64 speaking = cancelled || kind == SimulatedOutcome::kHang ? 0
                       : kind == SimulatedOutcome::kOk              ? attempt.trial.world()
                                                                    : 1;
  for (i64 rank = 0; rank < speaking; ++rank) {
    body["rank"] = rank;
    say(job, spool::kRankRecord, body);
  }
  AttemptEnd last;
  last.attempt = attempt.id;
  last.cause = cancelled                         ? EndCause::kCancelled
               : kind == SimulatedOutcome::kOk   ? EndCause::kDone
               : kind == SimulatedOutcome::kHang ? EndCause::kHang
                                                 : EndCause::kRankFailed;
  say(job, spool::kAttemptEnd, to_json(last));
}

void SimLauncher::deliver(Job& job) {
  if (!job.unread.empty()) sink_(launch::Outbox{job.request.id, job.sent, job.unread});
}

}  // namespace sweep::simulate
