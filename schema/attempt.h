// Attempt: one try at running a trial, as it travels in an inbox line. It carries all that agent and ranks
// need.
#pragma once
#include <optional>
#include <string>

#include "schema/trial.h"

namespace sweep {

struct MeasurePlan {
  i64 warmup_steps = 3;
  i64 steps = 10;
  i64 repeats = 1;
  bool operator==(const MeasurePlan&) const = default;
};

// Seconds without progress after which the agent calls a phase hung; `total` bounds the whole attempt
// (timeout).
struct Deadlines {
  double startup_s = 120;
  double first_step_s = 120;
  double step_s = 60;
  double total_s = 3600;
  double grace_s = 3;  // between SIGTERM and SIGKILL
  bool operator==(const Deadlines&) const = default;
};

struct Attempt {
  i64 id = 0;  // attempt id of the database
  std::string trial_id;
  Trial trial;
  MeasurePlan measure;
  Deadlines deadlines;
  i64 log_limit_bytes = 16 << 20;  // per rank
  std::string start = "zygote";    // zygote | exec
  std::optional<double>
      usd_per_node_hour{};              // what the site says a node costs; absent: the catalogue's price
  std::optional<double> predicted_s{};  // seconds the whole attempt is expected to take, at the pace so far
  bool operator==(const Attempt&) const = default;
};

}  // namespace sweep
