// BuiltInRun: a sweep of trials that a command makes itself (selftest, doctor, calibrate), run through the
// ordinary run loop, agents and ranks. It knows nothing of what the ranks report.
#pragma once
#include <string>
#include <vector>

#include "orchestrator/driver/observer.h"
#include "orchestrator/driver/sweep_driver.h"
#include "schema/sweep_options.h"

namespace sweep::driver {

// The place and the settings of a self-test.
struct SelfTestRequest {
  LaunchRequest launch;
  std::string grid;  // a file whose launch section is used; empty: none
  std::string db;
};

// The place where `sweep run` would run trials with these settings.
struct BuiltInPlace {
  LaunchSettings settings;     // the grid file's launch section; of no file: an empty one
  std::string working_folder;  // working folder of the grid file's command; empty: it states none
  LaunchChoice choice;
};
Expected<BuiltInPlace> place_of(const SelfTestRequest&);

// Entries in the order of the trials, each predicted to take so many seconds.
std::vector<PlanEntry> built_in_entries(const std::vector<Trial>&, double predicted_seconds);

struct BuiltInRun {
  SweepDriver driver;
  RunReport report;
};
// Everything is run anew, whatever the database knows, and nothing is retried. The options' launcher is
// filled in. REQUIRES: options.measure.
Expected<BuiltInRun> run_built_in(const SelfTestRequest&, const std::string& sweep_name,
                                  std::span<const PlanEntry>, SweepOptions, const MakeObserver&);

// The hosts that an attempt of the trial ran on, by node, separated by commas.
Expected<std::string> hosts_of(store::Store&, i64 sweep, const std::string& trial, i64 attempt);

}  // namespace sweep::driver
