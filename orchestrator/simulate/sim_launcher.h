// SimLauncher: a Launcher whose cluster, agents and ranks are simulated. It owns the nodes, the queue and the
// allocations of the simulation and writes the outbox lines that real agents would; nothing leaves the
// process. REQUIRES: a run loop on the same SimClock.
#pragma once
#include <deque>
#include <map>

#include "orchestrator/launch/launcher.h"
#include "orchestrator/simulate/account.h"
#include "orchestrator/simulate/sim_clock.h"
#include "orchestrator/simulate/sim_outbox.h"
#include "orchestrator/simulate/simulated_outcomes.h"

namespace sweep::simulate {

class SimLauncher final : public launch::Launcher {
 public:
  SimLauncher(SimClock&, const Assumptions&, SimulatedOutcomes&, Account&, Sink);

  Expected<void> request(const launch::AllocationRequest&) override;
  // With a queue, nodes that are free here are those of others: only without one is the cluster idle.
  i64 idle_nodes(const std::string&) const override {
    return assumed_.queue_s > 0 ? 0 : free_ - eligible_nodes();
  }
  Expected<i64> post_attempt(const launch::AllocationId&, const Attempt&) override;
  Expected<void> finish(const launch::AllocationId&, bool now) override;
  void kill(const launch::AllocationId&) override;
  void acknowledge(const launch::AllocationId&, std::uint64_t offset) override;

 private:
  struct Running {
    Attempt attempt;
    SimulatedOutcome outcome;
    double since_s = 0;
  };
  struct Job {
    launch::AllocationRequest request;
    bool eligible = false, started = false, ready = false, finishing = false;
    double asked_s = 0, since_s = 0;
    i64 busy = 0;  // nodes
    i64 posted = 0;
    SimOutbox outbox;
    std::deque<Attempt> waiting;
    std::map<i64, Running> running;
    NodeTime time;
  };
  using Jobs = std::map<launch::AllocationId, Job>;

  // An event of an allocation that may have ended before it comes.
  void later(double seconds, const launch::AllocationId&, std::function<void(Job&)>);
  void start_eligible();
  i64 eligible_nodes() const;  // asked for and not begun
  void start(Job&);
  void ready(Job&);
  void start_attempts(Job&);
  void attempt_over(Job&, i64 attempt, bool cancelled);
  void deliver(Job&);
  void end_when_empty(Job&);
  void end(Job&, const std::string& reason, bool lost, bool preempted);
  void settle(const Job&);
  void break_nodes();
  void break_one();

  SimClock& clock_;
  const Assumptions& assumed_;
  SimulatedOutcomes& outcomes_;
  Account& account_;
  Sink sink_;
  Jobs jobs_;
  i64 free_ = 0;
};

}  // namespace sweep::simulate
