// Driving: one run of what is pending in a sweep, for commands that run more than once.
#pragma once
#include <string>

#include "orchestrator/cli/command.h"
#include "orchestrator/run/conductor.h"

namespace sweep::cli {

struct DriveOptions {
  std::string agent, rank;  // programs; empty: beside sweep
  i64 slots = 0;            // 0: what the sweep keeps, else what this machine has
  bool quiet = false;
};

// Runs what is pending in allocations of its own, until nothing is. REQUIRES the lease, which stays with the caller.
Expected<run::RunEnd> drive_once(Io&, store::Store&, const std::string& db, const store::SweepRow&,
                                 const DriveOptions&);

}  // namespace sweep::cli
