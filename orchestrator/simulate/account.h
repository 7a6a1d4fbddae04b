// Account: where the node time of a simulation went. It owns sums of node-seconds and counts; it draws
// nothing and decides nothing.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/simulate/assumptions.h"
#include "schema/outcome.h"

namespace sweep::simulate {

// Node-seconds. All of them: the nodes that may be held, times the makespan.
struct NodeTime {
  double trials = 0;    // attempts that gave an answer, without their start
  double start_up = 0;  // agents and ranks getting ready
  double lost = 0;      // attempts without an answer: broken nodes, preemption, crashes, hangs
  double idle = 0;      // held without an attempt
  double held() const { return trials + start_up + lost + idle; }
};

struct Account {
  NodeTime time;
  i64 attempts = 0, allocations = 0, nodes_broken = 0, allocations_broken = 0, preempted = 0, out_of_time = 0;
  double waited_s = 0;  // sum over all allocations, from request to start
};

// The result of a simulation.
struct Forecast {
  Assumptions assumed;
  Account account;
  std::string end;  // why it ended before everything was answered; empty: it did not
  i64 trials = 0, pending = 0;
  // Trials to run whose time nothing predicts: SimulatedOutcomes takes a length for them.
  i64 unpredicted = 0;
  std::vector<std::pair<Outcome, i64>> outcomes;
  double makespan_s = 0;
  double wall_s = 0;  // time that the simulation itself took

  bool every_trial_has_an_answer() const;
  double available() const { return static_cast<double>(assumed.nodes) * makespan_s; }
  double efficiency() const {
    return account.time.held() > 0 ? account.time.trials / account.time.held() : 0;
  }
};

std::string to_text(const Forecast&);
std::string to_json(const Forecast&);  // one line

}  // namespace sweep::simulate
