// Confirmation: the best configurations of a sweep measured again, longer, interleaved, in several
// allocations. The results go into a sweep of their own.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/statistics/confirm.h"
#include "orchestrator/driver/sweep_driver.h"
#include "schema/sweep_options.h"

namespace sweep::driver {

struct ConfirmRequest {
  std::string metric = {};
  i64 allocations = 3;  // allocations in which each configuration is measured
  i64 repeats = 3;
  i64 steps = 0;  // timed steps of a repeat; 0: three times the sweep's own
  LaunchRequest launch;
};

struct ConfirmReport {
  std::vector<answers::Remeasured> measured;
  std::optional<run::RunEnd> ended_early;  // the same command goes on from there
};

// The options for measuring the best of a sweep with these options again: all that is named is measured, to the
// last step, and a bound on an attempt grows with its steps.
SweepOptions confirming_options(SweepOptions of, const ConfirmRequest&);

// The sweep that this one confirms, by its options; a sweep that confirms none is returned as it is.
Expected<store::SweepRow> confirmed_sweep(store::Store&, store::SweepRow);

// Chooses the sweep `<name>-confirm` in the driver and measures `best` there until each has so many
// allocations. `say` gets a line for each allocation. Error: another process runs it, or a sweep of that name
// has another purpose.
Expected<ConfirmReport> confirm_best(SweepDriver&, const store::SweepRow& of,
                                     const std::vector<ResultRow>& best, const ConfirmRequest&,
                                     const MakeObserver&, const Say& say);

// The ok attempts of each row of `best`, in that order, in sweep `confirming` that were measured by this
// plan.
Expected<std::vector<answers::Remeasured>> remeasured(store::Store&, i64 confirming,
                                                      std::span<const ResultRow> best, const MeasurePlan&,
                                                      const std::string& metric);

}  // namespace sweep::driver
