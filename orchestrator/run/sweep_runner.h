// SweepRunner: the run loop behind run_sweep(), private to run/. It passes each event to the part that knows
// what to do:
//
//   Acquisition    which allocations are requested, which requests are withdrawn
//   Allocations    those that are held, from request to end
//   Dispatch       which attempts go into which inbox
//   OutboxReader   what agents wrote, into the store
//   Losses         what a lost allocation means (failure_policy.h)
//   LiveStatus     what people see
//
// It decides only when the run ends.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <optional>

#include "orchestrator/run/acquisition.h"
#include "orchestrator/run/allocations.h"
#include "orchestrator/run/dispatch.h"
#include "orchestrator/run/live_status.h"
#include "orchestrator/run/losses.h"
#include "orchestrator/run/outbox_reader.h"
#include "orchestrator/run/run_sweep.h"

namespace sweep::run {

class SweepRunner {
 public:
  SweepRunner(store::Store&, const Settings&, const MakeLauncher&, Observer&);
  Expected<RunEnd> run();

 private:
  // How the run ends, as soon as that is known. No attempt is posted from then on.
  struct Ending {
    std::optional<RunEnd> end;
    // The reason why something could not be stored or posted: nothing must be measured that cannot be kept.
    std::optional<Error> error;
    // Another process runs the sweep from now on: nothing more is requested, told or stored.
    bool left = false;
    int signals_seen = 0;
    // Running attempts are ended too.
    bool now = false;
    bool begun() const { return end || error || left; }
  };

  void on_event(const launch::Event&);
  void on_started(const launch::Started&);
  void on_outbox(const launch::Outbox&);
  void on_ended(const launch::Ended&);
  Expected<void> settle(HeldAllocation& ended, const launch::Ended&);
  void acquire();
  void fill(const std::string& allocation);
  void wait_for_signal();
  void on_signal();
  void wait_for_tick();
  void on_tick();
  void on_stop_request(bool now);
  void check_gpu_hours();
  // Ends all allocations; the first reason is kept, and what ends at once is not slowed down.
  void end_with(RunEnd, bool now);
  void fail_with(const Error&);
  bool check(const Expected<void>&);
  void leave();
  void close_after_failure();

  boost::asio::io_context io_;
  boost::asio::signal_set signals_;
  std::unique_ptr<launch::Launcher> launcher_;
  RunContext context_;
  Allocations allocations_;
  Losses losses_;
  Dispatch dispatch_;
  Acquisition acquisition_;
  OutboxReader outbox_reader_;
  LiveStatus status_;
  Ending ending_;
  i64 ticks_ = 0;
};

}  // namespace sweep::run
