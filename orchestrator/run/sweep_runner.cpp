// The run loop's beginning, its ticks and its ends.
#include "orchestrator/run/sweep_runner.h"

#include <fmt/format.h>

#include "base/expected.h"
#include "orchestrator/run/recovery.h"
#include "orchestrator/run/run_sweep.h"
#include "orchestrator/run/status_file.h"

namespace sweep::run {

namespace {
constexpr auto kTick = std::chrono::milliseconds(500);
constexpr i64 kTicksToObtain = 6;  // the plan is asked what is still wanted at every so many ticks
constexpr i64 kTicksToBeat = 10;   // store::kBeatEverySeconds
static_assert(kTick * kTicksToBeat == std::chrono::duration<double>(store::kBeatEverySeconds));
}  // namespace

Expected<RunEnd> SweepRunner::run() {
  SWEEP_TRY(take_over());
  SWEEP_TRY(count_earlier_runs());
  wait_for_signal();
  wait_for_tick();
  check_limits();
  obtain();
  snapshot();
  if (!held_.empty() && !left_) clock_.run(io_);
  if (!left_) snapshot();
  if (error_) return tl::unexpected(*error_);
  return end_.value_or(RunEnd{});
}

Expected<void> SweepRunner::take_over() {
  auto adopted = recover(store_, settings_.sweep, observer_, {launcher_.get(), settings_.launcher});
  if (!adopted) return tl::unexpected(adopted.error());
  for (HeldAllocation& each : *adopted) {
    const auto id = each.request.id;
    held_[id] = std::move(each);
  }
  return {};
}

Expected<void> SweepRunner::count_earlier_runs() {
  const auto held = store_.gpu_seconds(settings_.sweep);
  if (!held) return tl::unexpected(held.error());
  spent_gpu_s_ = held->ended;
  return {};
}

void SweepRunner::end_with(End end, std::string why, bool now) {
  if (!end_) end_ = RunEnd{end, std::move(why)};
  if (held_.empty()) return io_.stop();
  finish_all(now);
}

// The launcher's destructor leaves alone what can outlive this process.
void SweepRunner::leave() {
  left_ = true;
  io_.stop();
}

void SweepRunner::on_signal() {
  if (settings_.leave_on_signal) {
    end_ = RunEnd{End::kLeft,
                  "ended by Slurm; the allocations go on, and the next start of the job takes them over"};
    return leave();
  }
  if (++signals_seen_ == 1) {
    observer_.on_note("interrupted: ending the running attempts (interrupt again to end at once)");
    return end_with(End::kInterrupted, "interrupted", true);
  }
  if (!end_) end_ = RunEnd{End::kInterrupted, "interrupted"};
  for (const auto& [id, holding] : held_) launcher_->kill(id);
}

void SweepRunner::wait_for_signal() {
  signals_.async_wait([this](const boost::system::error_code& error, int) {
    if (error) return;
    on_signal();
    wait_for_signal();
  });
}

void SweepRunner::wait_for_tick() {
  clock_.after(io_, kTick, [this] {
    on_tick();
    wait_for_tick();
  });
}

void SweepRunner::on_tick() {
  if (error_) return;
  if (++ticks_ % kTicksToBeat == 0 && !stored(store_.beat(settings_.sweep))) return;
  const auto stop = store_.stop_requested(settings_.sweep);
  if (!stop) return fatal(stop.error());
  if (stop->has_value() && !end_) end_with(End::kStopped, "asked to stop by `sweep stop`", **stop);
  check_limits();
  if (settings_.allocate_per_shape && ticks_ % kTicksToObtain == 0) {
    release_unwanted();
    fill();
    obtain();
  }
  snapshot_if_due();
}

void SweepRunner::check_limits() {
  if (!settings_.gpu_hours || end_) return;
  double used = spent_gpu_s_;
  for (const auto& [id, holding] : held_) used += holding.gpu_seconds(clock_.now());
  if (used / 3600 >= *settings_.gpu_hours)
    end_with(End::kStopped,
             fmt::format("the limit of {} GPU-hours is used up: all runs of this sweep held {:.3g}; "
                         "--gpu-hours raises it",
                         *settings_.gpu_hours, used / 3600),
             false);
}

// Counting and ranking cost more than landing a trial; nobody looks more often than this.
void SweepRunner::snapshot_if_due() {
  constexpr auto kPicture = kTick * 4 / 5;  // a tick that comes a little early still draws
  if (std::chrono::steady_clock::now() - drawn_ >= kPicture) snapshot();
}

void SweepRunner::snapshot() {
  drawn_ = std::chrono::steady_clock::now();
  auto shot = take_snapshot(store_, settings_.sweep, elapsed_s());
  if (!shot) return;  // a picture for people; the next tick draws it again
  observer_.on_snapshot(*shot);
  if (settings_.status_file) write_status_file(*settings_.status_file, *shot);
}

void SweepRunner::fatal(const Error& error) {
  if (error_) return;
  error_ = error;
  if (store_.lease_lost(settings_.sweep)) return leave();
  if (held_.empty()) return io_.stop();
  finish_all(true);
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
