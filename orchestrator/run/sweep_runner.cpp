#include "orchestrator/run/sweep_runner.h"

#include <fmt/format.h>

#include <csignal>

#include "orchestrator/run/recovery.h"

namespace sweep::run {

namespace {
constexpr auto kTick = std::chrono::milliseconds(500);
// Ticks from one look at what the plan still needs to the next.
constexpr i64 kTicksToAcquire = 6;
// Ticks from one heartbeat to the next: store::kBeatEverySeconds.
constexpr i64 kTicksToBeat = 10;
static_assert(kTick * kTicksToBeat == std::chrono::duration<double>(store::kBeatEverySeconds));

Limit limit_of(const Settings& settings) {
  if (settings.limit_of_site) return Limit::kSite;
  return settings.usd ? Limit::kUsd : Limit::kGpuHours;
}

// A sentence in the unit in which the limit was given.
std::string limit_sentence(const Settings& settings, double used) {
  const double gpu_hours = *settings.gpu_hours;
  if (limit_of(settings) == Limit::kUsd)
    return fmt::format(
        "the limit of {} USD is used up: all runs of this sweep held {:.3g} GPU-hours, at most {:.3g} USD; "
        "`sweep run GRID --usd` raises it",
        *settings.usd, used, *settings.usd * used / gpu_hours);
  return fmt::format("the limit of {} GPU-hours is used up: all runs of this sweep held {:.3g}; {}",
                     gpu_hours, used,
                     settings.limit_of_site ? "the site profile sets it" : "--gpu-hours raises it");
}
}  // namespace

SweepRunner::SweepRunner(store::Store& store, const Settings& settings, const MakeLauncher& make,
                         Observer& observer)
    : signals_(io_, SIGINT, SIGTERM, SIGHUP),
      launcher_(make(io_, [this](const launch::Event& event) { on_event(event); })),
      context_{store, settings, observer, *launcher_},
      allocations_(context_),
      losses_(context_),
      dispatch_(context_, allocations_, losses_.hosts()),
      acquisition_(context_, allocations_, dispatch_.queue(), losses_.hosts()),
      outbox_reader_(context_, dispatch_, losses_.hosts()),
      status_(context_) {
  launcher_->use_fence([&store, sweep = settings.sweep](const std::function<Expected<void>()>& act) {
    auto done = store.while_held(sweep, act);
    if (!done && store.lease_lost(sweep)) done.error().kind = ErrorKind::kRefused;
    return done;
  });
}

Expected<RunEnd> SweepRunner::run() {
  SWEEP_TRY(allocations_.adopt_earlier());
  SWEEP_TRY(dispatch_.begin());
  SWEEP_TRY(losses_.begin());
  wait_for_signal();
  wait_for_tick();
  check_gpu_hours();
  acquire();
  status_.show();
  if (!allocations_.empty() && !ending_.left) context_.settings.clock->run(io_);
  if (!ending_.left) status_.show();
  if (ending_.error) return tl::unexpected(*ending_.error);
  if (!ending_.end || ending_.end->end != End::kStopped) return ending_.end.value_or(RunEnd{});
  // A run that was to stop may have had its last answer on the way, or all of them before.
  SWEEP_GET(const auto groups, dispatch_.queue().demand());
  return groups.empty() && allocations_.empty() ? RunEnd{} : *ending_.end;
}

void SweepRunner::on_event(const launch::Event& event) {
  if (ending_.left) return;
  if (const auto* started = std::get_if<launch::Started>(&event)) on_started(*started);
  if (const auto* outbox = std::get_if<launch::Outbox>(&event)) on_outbox(*outbox);
  if (const auto* ended = std::get_if<launch::Ended>(&event)) on_ended(*ended);
  if (const auto* notice = std::get_if<launch::Notice>(&event))
    check(context_.note(EventKind::kLauncher, notice->text));
}

void SweepRunner::on_started(const launch::Started& started) {
  HeldAllocation* held = allocations_.find(started.id);
  if (held != nullptr && check(allocations_.start(*held, started))) fill(started.id);
}

void SweepRunner::on_outbox(const launch::Outbox& outbox) {
  HeldAllocation* held = allocations_.find(outbox.id);
  // After an error its bytes stay in the outbox for close_after_failure().
  if (held == nullptr || ending_.error) return;
  const auto taken = outbox_reader_.process(*held, outbox, ending_.begun());
  if (!taken) return fail_with(taken.error());
  if (taken->results) losses_.reset();
  if (taken->finish) allocations_.finish(*held, false);
  for (const auto& host : taken->unfit_hosts) allocations_.finish_on(host);
  if (taken->wrong_node)
    end_with({End::kBroken, *taken->wrong_node + "; nothing more is started, and every trial stays pending"},
             false);
  if (taken->finished) status_.show_if_due();
  fill(outbox.id);
}

void SweepRunner::fill(const std::string& allocation) {
  HeldAllocation* held = allocations_.find(allocation);
  if (held != nullptr) check(dispatch_.fill(*held, ending_.begun()));
}

void SweepRunner::on_ended(const launch::Ended& ended) {
  if (allocations_.find(ended.id) == nullptr) return;
  HeldAllocation held = allocations_.take(ended.id);
  if (!ending_.error) check(settle(held, ended));
  if (ending_.left) return;
  if (!ending_.error) return acquire();
  if (allocations_.empty()) close_after_failure();
}

// One that was told to end and leaves no attempt behind was not lost, even if its scheduler calls it cancelled.
Expected<void> SweepRunner::settle(HeldAllocation& held, const launch::Ended& ended) {
  const bool unfinished = held.attempts.size() > 0 || held.state == AllocationState::kReturning;
  const bool gone = ended.lost || unfinished || (ended.preempted && !held.ends());
  const bool given_back = held.ends() && !gone && !held.since;
  held.apply(AllocationEvent::kEnded);
  if (unfinished) dispatch_.queue().changed();
  SWEEP_TRY(outbox_reader_.close_unfinished(held, ended, ending_.begun()));
  SWEEP_TRY(allocations_.close(held, given_back ? "given back before it started" : ended.reason));
  if (ending_.begun() || (!gone && !held.too_short_s)) return {};
  SWEEP_GET(const auto broken, losses_.lost(held, ended, allocations_.at_work()));
  if (broken) end_with({End::kBroken, *broken}, false);
  return {};
}

// Requests what is wanted; ends the run when nothing is held and nothing more can be requested.
void SweepRunner::acquire() {
  bool waits = false;
  if (!ending_.begun()) {
    const auto acquired = acquisition_.request_wanted();
    if (!acquired) return fail_with(acquired.error());
    if (allocations_.empty() && acquired->nothing_fits)
      ending_.end = RunEnd{End::kBroken, *acquired->nothing_fits};
    waits = acquired->waits && !ending_.end;
  }
  if (allocations_.empty() && !waits) io_.stop();
}

void SweepRunner::wait_for_signal() {
  signals_.async_wait([this](const boost::system::error_code& error, int) {
    if (error) return;
    on_signal();
    wait_for_signal();
  });
}

void SweepRunner::on_signal() {
  if (context_.settings.leave_on_signal) {
    ending_.end = RunEnd{
        End::kLeft, "ended by Slurm; the allocations go on, and the next start of the job takes them over"};
    return leave();
  }
  if (++ending_.signals_seen == 1) {
    context_.observer.on_note("interrupted: ending the running attempts (interrupt again to end at once)");
    return end_with({End::kInterrupted, "interrupted"}, true);
  }
  if (!ending_.end) ending_.end = RunEnd{End::kInterrupted, "interrupted"};
  // A run that cannot store results any more does not wait for them.
  if (ending_.error && ending_.signals_seen > 2) return leave();
  allocations_.kill_all();
}

void SweepRunner::wait_for_tick() {
  context_.settings.clock->after(io_, kTick, [this] {
    on_tick();
    wait_for_tick();
  });
}

void SweepRunner::on_tick() {
  if (ending_.error) return;
  const i64 sweep = context_.settings.sweep;
  if (++ticks_ % kTicksToBeat == 0 &&
      !(check(context_.store.beat(sweep)) && check(allocations_.note_overdue())))
    return;
  const auto stop = context_.store.stop_requested(sweep);
  if (!stop) return fail_with(stop.error());
  if (stop->has_value()) on_stop_request(**stop);
  check_gpu_hours();
  if (context_.settings.allocate_per_shape && ticks_ % kTicksToAcquire == 0) {
    if (!check(acquisition_.release_unwanted())) return;
    if (!check(dispatch_.fill_all(ending_.begun()))) return;
    acquire();
  }
  status_.show_if_due();
}

// A request for more than what goes on (`sweep stop`, then `sweep stop --now`) is obeyed too.
void SweepRunner::on_stop_request(bool now) {
  if (!ending_.end || (now && !ending_.now)) end_with({End::kStopped, "asked to stop by `sweep stop`"}, now);
}

void SweepRunner::check_gpu_hours() {
  const auto& limit = context_.settings.gpu_hours;
  if (!limit || ending_.end) return;
  constexpr double kSecondsPerHour = 3600;
  const double used = allocations_.gpu_seconds() / kSecondsPerHour;
  if (used < *limit) return;
  end_with({End::kStopped, limit_sentence(context_.settings, used), limit_of(context_.settings)}, false);
}

void SweepRunner::end_with(RunEnd end, bool now) {
  if (!ending_.end) ending_.end = std::move(end);
  ending_.now = ending_.now || now;
  if (allocations_.empty()) return io_.stop();
  allocations_.finish_all(ending_.now);
}

bool SweepRunner::check(const Expected<void>& answer) {
  if (!answer) fail_with(answer.error());
  return answer.has_value();
}

void SweepRunner::fail_with(const Error& error) {
  if (ending_.error) return;
  ending_.error = error;
  if (context_.store.lease_lost(context_.settings.sweep)) return leave();
  if (allocations_.empty()) return io_.stop();
  allocations_.finish_all(true);
}

// The launcher's destructor leaves alone what can outlive this process.
void SweepRunner::leave() {
  ending_.left = true;
  io_.stop();
}

// After a failure to store: the rest of the outboxes is taken in and the allocations are closed as far as
// that works. What stays open in the database is closed by the next run.
void SweepRunner::close_after_failure() {
  if (auto closed = recover(context_.store, context_.settings.sweep, context_.observer); !closed)
    context_.observer.on_note("the allocation stays open, the next run closes it: " + closed.error().message);
  io_.stop();
}

Expected<RunEnd> run_sweep(store::Store& store, const Settings& settings, const MakeLauncher& make,
                           Observer& observer) {
  return SweepRunner(store, settings, make, observer).run();
}

int exit_code_for(const store::Progress& progress) {
  if (progress.pending > 0 || progress.running > 0) return 1;
  for (const auto& [outcome, count] : progress.by_outcome)
    if (count > 0 && !is_answer(outcome)) return 1;
  return 0;
}

}  // namespace sweep::run
