// Simulated outcomes: the random choices of a simulation. How long an attempt takes and how it ends depend
// only on the seed and on the order of the calls.
#pragma once
#include <map>
#include <random>
#include <span>
#include <string>

#include "orchestrator/simulate/assumptions.h"
#include "schema/attempt.h"
#include "schema/plan_entry.h"

namespace sweep::simulate {

// One attempt's, if nothing happens to its allocation before.
struct SimulatedOutcome {
  enum Kind { kOk, kOom, kCrash, kHang } kind = kOk;
  double start_s = 0;  // seconds until its first step
  double steps_s = 0;  // seconds from then to its end
};

class SimulatedOutcomes {
 public:
  // Seconds of a trial whose time nothing predicts.
  static constexpr double kUnpredictedStart = 20, kUnpredictedSteps = 60;
  SimulatedOutcomes(const Assumptions& assumed, std::span<const PlanEntry> plan, const MeasurePlan& measure);

  SimulatedOutcome of(const Attempt&);
  // Exponential, with this mean; a mean of 0 never waits, an infinite one never ends.
  double wait(double mean_s);
  i64 below(i64 count);  // 0 to count - 1

 private:
  struct Known {
    double start_s = 0, steps_s = 0;
  };
  double uniform();
  const Assumptions& assumed_;
  std::map<std::string, Known> predicted_;  // key: trial
  std::mt19937_64 random_;
};

}  // namespace sweep::simulate
