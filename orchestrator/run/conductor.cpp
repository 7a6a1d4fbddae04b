#include "orchestrator/run/conductor.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>

#include "orchestrator/plan/planner.h"
#include "orchestrator/run/flights.h"
#include "orchestrator/run/recovery.h"
#include "orchestrator/run/status_file.h"

namespace sweep::run {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kTick = std::chrono::milliseconds(500);

class Conductor {
 public:
  Conductor(store::Store& store, const Settings& settings, const MakeLauncher& make, Observer& observer)
      : store_(store),
        settings_(settings),
        observer_(observer),
        signals_(io_, SIGINT, SIGTERM, SIGHUP),
        timer_(io_),
        launcher_(make(io_, [this](const launch::Event& event) { on_event(event); })) {}

  Expected<RunEnd> run();

 private:
  void next_allocation();
  void fill();
  bool post_one();
  void on_event(const launch::Event&);
  void on_outbox(const launch::Outbox&);
  void on_ended(const launch::Ended&);
  void land(const Landing&);
  void on_signal();
  void on_tick();
  void wait_for_signal();
  void wait_for_tick();
  void check_limits();
  void end_with(End, std::string why, bool now);
  void snapshot();
  void fatal(const Error&);
  void close_after_failure();
  double elapsed_s() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }
  // Stores' void answers: an error ends the run, since what cannot be stored must not be measured.
  bool stored(const Expected<void>& answer) {
    if (!answer) fatal(answer.error());
    return answer.has_value();
  }

  store::Store& store_;
  const Settings& settings_;
  Observer& observer_;
  boost::asio::io_context io_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<launch::Launcher> launcher_;
  Flights flights_;
  std::string allocation_;  // empty: none
  bool started_ = false, finishing_ = false;
  int signals_seen_ = 0;
  int lost_in_a_row_ = 0;
  i64 landed_ = 0, landed_in_allocation_ = 0;
  Clock::time_point began_ = Clock::now();
  std::optional<RunEnd> end_;
  std::optional<Error> error_;
};

Expected<RunEnd> Conductor::run() {
  if (auto recovered = recover(store_, settings_.sweep, observer_); !recovered)
    return tl::unexpected(recovered.error());
  wait_for_signal();
  wait_for_tick();
  next_allocation();
  snapshot();
  if (!allocation_.empty()) io_.run();
  snapshot();
  if (error_) return tl::unexpected(*error_);
  return end_.value_or(RunEnd{});
}

void Conductor::next_allocation() {
  if (end_ || error_) return io_.stop();
  const auto waiting = store_.pending(settings_.sweep, 1);
  if (!waiting) return fatal(waiting.error());
  if (waiting->empty()) return io_.stop();
  auto row = store_.create_allocation(settings_.sweep, settings_.launcher, settings_.spool_root);
  if (!row) return fatal(row.error());
  launch::AllocationRequest request{row->id, row->spool, row->incarnation, 1, settings_.slots, row->offset};
  allocation_ = row->id;
  started_ = finishing_ = false;
  landed_in_allocation_ = 0;
  std::error_code ec;
  std::filesystem::create_directories(row->spool, ec);
  Expected<void> asked;
  if (ec)
    asked = fail(fmt::format("{}: the spool folder cannot be made: {}", row->spool, ec.message()));
  else
    asked = launcher_->request(request);
  if (!asked) {
    stored(store_.end_allocation(allocation_, asked.error().message));
    allocation_.clear();
    fatal(asked.error());
  }
}

void Conductor::fill() {
  while (started_ && !finishing_ && !end_ && !error_ &&
         flights_.size() < static_cast<std::size_t>(settings_.slots + settings_.ahead))
    if (!post_one()) break;
  if (flights_.size() == 0 && started_ && !finishing_ && !allocation_.empty()) {
    finishing_ = true;
    if (auto told = launcher_->finish(allocation_, end_.has_value() || error_); !told)
      launcher_->kill(allocation_);
  }
}

// Commits the next attempt, then appends it to the inbox. False: nothing to post.
bool Conductor::post_one() {
  const auto waiting = store_.pending(settings_.sweep, static_cast<i64>(flights_.size()) + 1);
  if (!waiting) return fatal(waiting.error()), false;
  for (const auto& candidate : *waiting) {
    if (flights_.contains_trial(candidate.entry.id)) continue;
    Attempt wanted;
    wanted.trial_id = candidate.entry.id;
    wanted.trial = candidate.entry.trial;
    wanted.measure = settings_.measure;
    wanted.deadlines = plan::deadlines_for(candidate.entry.predicted, wanted.trial, wanted.measure);
    if (settings_.trial_seconds) wanted.deadlines.total_s = *settings_.trial_seconds;
    wanted.start = settings_.start;
    auto attempt = store_.begin_attempt(settings_.sweep, allocation_, wanted);
    if (!attempt) return fatal(attempt.error()), false;
    flights_.add(*attempt, candidate.entry);
    if (auto posted = launcher_->post_attempt(allocation_, *attempt); !posted)
      return fatal(posted.error()), false;
    return true;
  }
  return false;
}

void Conductor::on_event(const launch::Event& event) {
  if (const auto* started = std::get_if<launch::Started>(&event)) {
    started_ = true;
    stored(store_.allocation_started(started->id, started->where, started->pid));
    fill();
  }
  if (const auto* outbox = std::get_if<launch::Outbox>(&event)) on_outbox(*outbox);
  if (const auto* ended = std::get_if<launch::Ended>(&event)) on_ended(*ended);
}

void Conductor::on_outbox(const launch::Outbox& outbox) {
  if (error_) return;  // its bytes stay in the outbox for close_after_failure()
  auto absorbed = flights_.absorb(outbox.id, outbox.offset, outbox.bytes);
  if (!stored(store_.ingest(absorbed.batch))) return;
  launcher_->acknowledge(outbox.id, absorbed.batch.new_offset);
  for (const auto& note : absorbed.notes) {
    observer_.on_note(note);
    stored(store_.add_event(settings_.sweep, "agent", note));
  }
  for (const auto& landing : absorbed.landed) land(landing);
  if (absorbed.tainted && !finishing_) {
    finishing_ = true;
    if (!launcher_->finish(allocation_, false)) launcher_->kill(allocation_);
  }
  if (!absorbed.landed.empty()) snapshot();
  fill();
}

void Conductor::land(const Landing& landing) {
  ++landed_;
  ++landed_in_allocation_;
  lost_in_a_row_ = 0;
  observer_.on_result(landing.flight.entry, landing.result);
}

// After a failure to store: what the outbox still holds is taken in and the allocation closed as far as it goes; what
// does not go stays open in the database, and the next run closes it.
void Conductor::close_after_failure() {
  flights_.abandon();
  allocation_.clear();
  if (auto closed = recover(store_, settings_.sweep, observer_); !closed)
    observer_.on_note("the allocation stays open, the next run closes it: " + closed.error().message);
  io_.stop();
}

void Conductor::on_ended(const launch::Ended& ended) {
  if (error_) return close_after_failure();
  const bool unfinished = flights_.size() > 0;
  for (const Flight& flight : flights_.abandon()) {
    const Outcome outcome = end_ ? Outcome::kCancelled : Outcome::kNodeLost;
    stored(store_.finish_attempt(abandoned(flight.attempt, outcome, ended.reason)));
  }
  stored(store_.end_allocation(ended.id, ended.reason));
  allocation_.clear();
  started_ = false;
  if (!end_ && (ended.lost || unfinished)) {
    observer_.on_note(fmt::format("allocation {} was lost: {}", ended.id, ended.reason));
    stored(store_.add_event(settings_.sweep, "allocation_lost", ended.reason));
    if (landed_in_allocation_ == 0) ++lost_in_a_row_;
  }
  if (lost_in_a_row_ >= settings_.lost_in_a_row && !end_)
    end_ = RunEnd{End::kBroken,
                  fmt::format("{} allocations in a row were lost without one result; the last one: {}. "
                              "The trials stay pending; `sweep doctor` checks this machine",
                              lost_in_a_row_, ended.reason)};
  next_allocation();
}

void Conductor::end_with(End end, std::string why, bool now) {
  if (!end_) end_ = RunEnd{end, std::move(why)};
  if (allocation_.empty()) return io_.stop();
  finishing_ = true;
  if (auto told = launcher_->finish(allocation_, now); !told) launcher_->kill(allocation_);
}

void Conductor::on_signal() {
  if (++signals_seen_ == 1) {
    observer_.on_note("interrupted: ending the running attempts (interrupt again to end at once)");
    return end_with(End::kInterrupted, "interrupted", true);
  }
  if (!end_) end_ = RunEnd{End::kInterrupted, "interrupted"};
  if (!allocation_.empty()) launcher_->kill(allocation_);
}

void Conductor::wait_for_signal() {
  signals_.async_wait([this](const boost::system::error_code& error, int) {
    if (error) return;
    on_signal();
    wait_for_signal();
  });
}

void Conductor::wait_for_tick() {
  timer_.expires_after(kTick);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    on_tick();
    wait_for_tick();
  });
}

void Conductor::on_tick() {
  if (error_) return;
  if (!stored(store_.beat(settings_.sweep))) return;
  const auto stop = store_.stop_requested(settings_.sweep);
  if (!stop) return fatal(stop.error());
  if (stop->has_value() && !end_) end_with(End::kStopped, "asked to stop by `sweep stop`", **stop);
  check_limits();
  snapshot();
}

void Conductor::check_limits() {
  if (!settings_.gpu_hours || end_) return;
  const double used = elapsed_s() / 3600.0 * static_cast<double>(settings_.slots);
  if (used >= *settings_.gpu_hours)
    end_with(End::kStopped, fmt::format("the limit of {} GPU-hours is used up", *settings_.gpu_hours), false);
}

void Conductor::snapshot() {
  const double elapsed = elapsed_s();
  std::optional<double> rate;
  if (landed_ > 0 && elapsed > 0) rate = static_cast<double>(landed_) / elapsed;
  auto shot = take_snapshot(store_, settings_.sweep, elapsed, rate);
  if (!shot) return;  // a picture for people; the next tick draws it again
  observer_.on_snapshot(*shot);
  if (settings_.status_file) write_status_file(*settings_.status_file, *shot);
}

void Conductor::fatal(const Error& error) {
  if (error_) return;
  error_ = error;
  if (allocation_.empty()) return io_.stop();
  finishing_ = true;
  if (auto told = launcher_->finish(allocation_, true); !told) launcher_->kill(allocation_);
}

}  // namespace

Expected<RunEnd> conduct(store::Store& store, const Settings& settings, const MakeLauncher& make,
                         Observer& observer) {
  return Conductor(store, settings, make, observer).run();
}

int exit_code_for(const store::Progress& progress) {
  if (progress.pending > 0 || progress.running > 0) return 1;
  for (const auto& [outcome, count] : progress.by_outcome)
    if (count > 0 && !is_answer(outcome)) return 1;
  return 0;
}

}  // namespace sweep::run
