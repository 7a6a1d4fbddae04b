#include "orchestrator/run/dispatch.h"

#include <algorithm>

#include "orchestrator/plan/planner.h"
#include "orchestrator/plan/rehearsal.h"
#include "orchestrator/run/acquisition.h"
#include "schema/command_spec.h"

namespace sweep::run {

Fill choose_fill(i64 queued, i64 width, i64 ahead, bool only_allocation) {
  if (queued < width) return Fill::kYes;
  if (queued >= width + ahead) return Fill::kNo;
  return only_allocation ? Fill::kYes : Fill::kItsShare;
}

bool within_share(i64 queued, i64 width, i64 work, i64 all_width) {
  return queued < width * work / all_width;
}

Expected<Attempt> attempt_for(const PlanEntry& entry, const Settings& settings, double slowdown) {
  Attempt attempt;
  attempt.trial_id = entry.id;
  attempt.trial = entry.trial;
  attempt.measure = settings.measure;
  attempt.deadlines = plan::deadlines_for(entry.predicted, attempt.trial, attempt.measure);
  if (settings.hang_seconds)
    attempt.deadlines.startup_s = attempt.deadlines.first_step_s = attempt.deadlines.step_s =
        attempt.deadlines.around_s = *settings.hang_seconds;
  if (settings.start_seconds) {
    Deadlines& d = attempt.deadlines;
    d.total_s += std::max(0.0, 2 * *settings.start_seconds - d.startup_s - d.first_step_s);
    d.startup_s = d.first_step_s = *settings.start_seconds;
  }
  if (settings.trial_seconds) attempt.deadlines.total_s = *settings.trial_seconds;
  attempt.start = settings.start;
  attempt.checkpoint_folder = settings.checkpoint_folder;
  if (attempt.runs_command()) SWEEP_TRY(command_from(attempt.trial.program));
  if (settings.rehearse_most) {
    SWEEP_GET(attempt.rehearsed_ranks, plan::rehearsed_ranks(entry.trial, *settings.rehearse_most));
  }
  if (entry.predicted.seconds) attempt.predicted_s = *entry.predicted.seconds * slowdown;
  const auto price = settings.usd_per_node_hour.find(attempt.trial.hardware);
  if (price != settings.usd_per_node_hour.end()) attempt.usd_per_node_hour = price->second;
  return attempt;
}

Expected<void> Dispatch::learn(const FinishedAttempt& finished) {
  const Result& result = finished.result;
  leaders_.add(finished.in_flight.attempt.trial, result.outcome, result.metrics);
  queue_.ended(result.outcome);
  return changed(result.trial_id);
}

Expected<void> Dispatch::changed(const std::string& trial_id) {
  SWEEP_GET(const auto ruled_out, guide_.finished(trial_id));
  queue_.withdraw(ruled_out);
  return {};
}

Expected<void> Dispatch::fill_all(bool run_ends) {
  for (const auto& id : allocations_.ids())
    if (HeldAllocation* held = allocations_.find(id)) SWEEP_TRY(fill(*held, run_ends));
  return {};
}

Expected<void> Dispatch::fill(HeldAllocation& held, bool run_ends) {
  const bool takes_trials = held.state == AllocationState::kServing;
  while (takes_trials && !run_ends) {
    SWEEP_GET(const auto more, wants_more(held));
    if (!more) break;
    SWEEP_GET(const auto posted, post_next(held));
    if (!posted) break;
  }
  if (held.attempts.size() == 0 && (takes_trials || (run_ends && held.at_work())))
    return finish_idle(held, run_ends);
  return {};
}

Expected<void> Dispatch::finish_idle(HeldAllocation& held, bool run_ends) {
  if (!run_ends && held.until && held.posted == 0 && !held.adopted) {
    const auto waiting = queue_.next(fit_of(held, context_.settings), 1,
                                     [&](const PlanEntry& entry) { return !goes_elsewhere(held, entry); });
    if (!waiting) return tl::unexpected(waiting.error());
    if (*waiting) held.too_short_s = held.seconds_left(context_.now(), 0);
  }
  if (!run_ends) SWEEP_TRY(rest_host(held));
  allocations_.finish(held, run_ends);
  return {};
}

// A host for which nothing waits but trials that failed there is not requested again at once.
Expected<void> Dispatch::rest_host(const HeldAllocation& held) {
  const auto failed = queue_.next(fit_of(held, context_.settings), 1,
                                  [&](const PlanEntry& entry) { return goes_elsewhere(held, entry); });
  if (!failed) return tl::unexpected(failed.error());
  if (!*failed) return {};
  hosts_.cool_down(held.hosts.begin()->second, context_.now());
  for (const auto& text : hosts_.lost(held.hosts, "the trials that wait failed there", context_.now()))
    SWEEP_TRY(context_.note(EventKind::kQuarantine, text));
  return {};
}

Expected<bool> Dispatch::wants_more(const HeldAllocation& held) {
  const i64 queued = held.attempts.nodes();
  // An attempt that waits in an inbox has the bound of an earlier best, and can no longer be ruled out.
  const Settings& settings = context_.settings;
  const bool learns = settings.measure.early_stop || settings.strategy.is_grid_with_history();
  const i64 ahead = learns ? 0 : held.ahead(context_.now(), settings.ahead);
  const auto chosen = choose_fill(queued, held.width(), ahead, allocations_.all().size() == 1);
  if (chosen != Fill::kItsShare) return chosen == Fill::kYes;
  SWEEP_GET(const auto waiting, queue_.waiting_nodes(held.request.hardware));
  i64 work = waiting, width = 0;
  for (const auto& [id, each] : allocations_.all()) {
    if (each.ends() || each.request.hardware != held.request.hardware) continue;
    work += each.attempts.nodes();
    width += each.width();
  }
  return within_share(queued, held.width(), work, width);
}

bool Dispatch::goes_elsewhere(const HeldAllocation& held, const PlanEntry& entry) const {
  return hosts_.failed_on(held.hosts, entry.id) &&
         std::ranges::any_of(allocations_.all(), [&](const auto& each) {
           const HeldAllocation& other = each.second;
           return &other != &held && other.at_work() && other.request.hardware == held.request.hardware &&
                  other.request.nodes >= entry.trial.nodes;
         });
}

// False: no waiting trial fits the allocation and the time that it has left.
Expected<bool> Dispatch::post_next(HeldAllocation& held) {
  // Trials that may be passed over because they do not fit the time that is left, or go elsewhere.
  constexpr i64 kLookAhead = 16;
  const auto now = context_.now();
  const double slowdown = allocations_.slowdown();
  const auto next = queue_.next(fit_of(held, context_.settings), kLookAhead, [&](const PlanEntry& entry) {
    return held.has_time_for(entry, now, slowdown) && !goes_elsewhere(held, entry);
  });
  if (!next) return tl::unexpected(next.error());
  if (!*next) return false;
  SWEEP_TRY(post(held, **next, slowdown));
  return true;
}

Expected<void> Dispatch::post(HeldAllocation& held, const PlanEntry& entry, double slowdown) {
  SWEEP_GET(auto wanted, attempt_for(entry, context_.settings, slowdown));
  SWEEP_GET(wanted.stop_above_ms, leaders_.bound_for(entry.trial));
  SWEEP_GET(auto attempt, context_.store.begin_attempt(context_.settings.sweep, held.request.id, wanted));
  queue_.handed_out(entry);
  guide_.started(entry.id);
  if (held.attempts.size() == 0) held.on_contact(context_.now());
  held.attempts.add(attempt, entry);
  ++held.posted;
  const auto posted = context_.launcher.post_attempt(held.request.id, attempt);
  if (!posted) return tl::unexpected(posted.error());
  return {};
}

}  // namespace sweep::run
