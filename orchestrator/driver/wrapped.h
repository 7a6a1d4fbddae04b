// One run of a command as a trial: a sweep of its own with a single trial in it, run on this machine.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/driver/launchers.h"
#include "orchestrator/driver/observer.h"
#include "orchestrator/run/run_sweep.h"
#include "schema/records.h"

namespace sweep::driver {

struct WrapRequest {
  std::vector<std::string> words;  // the command; no shell reads them
  std::string name;                // the sweep's name; empty: made from the command
  std::string db = "sweep.db", hardware = "cpu";
  i64 processes = 1;  // more than one: started by the agent, with the variables that torchrun sets
  std::optional<double> hang_seconds, start_seconds, trial_seconds;
  LaunchRequest launch;
};

struct WrapReport {
  std::string sweep, trial;
  run::RunEnd end;
  // The result of this run; none: it was interrupted before it had one.
  std::optional<Result> result;
  std::filesystem::path log;  // log of rank 0
};

// Error: no such program or hardware, more processes than this machine has slots for, a database that cannot
// be written.
Expected<WrapReport> run_wrapped(const WrapRequest&, const MakeObserver&);

}  // namespace sweep::driver
