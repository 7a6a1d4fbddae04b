// SimAgent: stands for the agents of a simulated allocation. It runs attempts in the order in which they were
// posted.
#include <fmt/format.h>

#include <algorithm>

#include "base/fail.h"
#include "orchestrator/simulate/sim_launcher.h"

namespace sweep::simulate {

Expected<i64> SimLauncher::post_attempt(const launch::AllocationId& id, const Attempt& attempt) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return fail("allocation {} of the simulation has ended", id);
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
    job.outbox.add_start(attempt);
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
    job.time.trials += nodes * std::max(0.0, took - over.outcome.start_s);  // clocks round
  } else {
    job.time.lost += nodes * took;
  }
  job.outbox.add_end(over.attempt, over.outcome, cancelled);
  start_attempts(job);
  deliver(job);
  later(0, job.request.id, [this](Job& mine) { end_when_empty(mine); });
}

void SimLauncher::deliver(Job& job) {
  if (!job.outbox.unread().empty())
    sink_(launch::Outbox{job.request.id, job.outbox.offset(), job.outbox.unread()});
}

}  // namespace sweep::simulate
