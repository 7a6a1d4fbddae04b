// SweepRunner: the run loop behind run_sweep(), private to run/. sweep_runner.cpp holds start, ticks and end;
// sweep_runner_work.cpp requests allocations, dispatches attempts and ingests results; sweep_runner_hosts.cpp decides what
// to request where hosts are given by name (ssh).
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <map>

#include "orchestrator/run/held_allocation.h"
#include "orchestrator/run/pending_queue.h"
#include "orchestrator/run/quarantine.h"
#include "orchestrator/run/run_sweep.h"

namespace sweep::run {

class SweepRunner {
 public:
  SweepRunner(store::Store& store, const Settings& settings, const MakeLauncher& make, Observer& observer)
      : store_(store),
        settings_(settings),
        observer_(observer),
        signals_(io_, SIGINT, SIGTERM, SIGHUP),
        clock_(*settings.clock),
        backlog_(store, settings.sweep),
        launcher_(make(io_, [this](const launch::Event& event) { on_event(event); })) {
    launcher_->use_fence([&store, sweep = settings.sweep](const std::function<Expected<void>()>& act) {
      return store.while_held(sweep, act);
    });
  }

  Expected<RunEnd> run();

 private:
  Expected<void> take_over();
  Expected<void> count_earlier_runs();
  void obtain();
  Expected<std::vector<store::Demand>> demand();
  std::vector<Capacity> capacities(Clock::Point now) const;
  void ask_for(const std::vector<store::Demand>&);
  std::vector<std::string> cooling_hosts() const;
  void out_for_now(const Hosts&, const std::string& reason);
  void let_back();
  std::vector<std::string> avoided() const;
  std::optional<launch::Room> room_for(const store::Demand&) const;
  std::optional<std::string> beyond_hosts(const std::vector<store::Demand>&);
  void request(const Wanted&);
  void fill();
  void fill(HeldAllocation&);
  Expected<bool> wants_more(const HeldAllocation&);
  double pace() const;
  void release_unwanted();
  bool post_one(HeldAllocation&);
  std::optional<store::Fit> fit_of(const HeldAllocation&) const;
  Expected<void> post(HeldAllocation&, const PlanEntry&);
  void finish(HeldAllocation&, bool now);
  void on_event(const launch::Event&);
  void on_started(const launch::Started&);
  void on_outbox(const launch::Outbox&);
  void on_ended(const launch::Ended&);
  void on_lost(const HeldAllocation&, const launch::Ended&);
  bool close_allocation(const HeldAllocation&, const std::string& reason);
  void seen_slow(const std::string& host, const NodeRecord&);
  void on_node(HeldAllocation&, const NodeRecord&);
  void unclean(HeldAllocation&, const InFlightAttempts::IngestedChunk&);
  void note(const std::string& kind, const std::string& text);
  void land(HeldAllocation&, const FinishedAttempt&);
  void given_back(HeldAllocation&, const FinishedAttempt&);
  void on_signal();
  void on_tick();
  void wait_for_signal();
  void wait_for_tick();
  void check_limits();
  void end_with(End, std::string why, bool now);
  void finish_all(bool now);
  void snapshot();
  void snapshot_if_due();
  bool room_for_more() const;
  i64 nodes_held() const;
  void fatal(const Error&);
  void leave();
  void close_after_failure();
  double elapsed_s() const { return std::chrono::duration<double>(clock_.now() - began_).count(); }
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
  Clock& clock_;
  PendingQueue backlog_;
  std::unique_ptr<launch::Launcher> launcher_;
  std::map<std::string, HeldAllocation> held_;  // by allocation
  Quarantine quarantine_;
  std::map<std::string, Clock::Point> cooling_hosts_;      // hosts, until when
  std::map<std::string, Clock::Point> quarantined_until_;  // those in quarantine that will be asked for again
  std::string left_out_;                                   // trials that no host is left for, as last said
  double spent_gpu_s_ = 0;  // of allocations that have ended, earlier runs' too
  SlowdownEstimate past_;   // theirs
  int signals_seen_ = 0;
  bool left_ = false;  // the allocations are somebody else's now: nothing more is asked, told or stored
  int consecutive_losses_ = 0, consecutive_preemptions_ = 0;
  i64 ticks_ = 0;
  Clock::Point began_ = clock_.now();
  std::chrono::steady_clock::time_point drawn_;  // the last snapshot, on the clock of who looks at it
  std::optional<RunEnd> end_;
  std::optional<Error> error_;
};

}  // namespace sweep::run
