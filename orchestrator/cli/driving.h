// Driving: one run of what is pending in a sweep, for commands that run more than once.
#pragma once
#include <string>

#include "orchestrator/cli/launchers.h"

namespace sweep::cli {

// Runs what is pending in allocations of its own, until nothing is, by the launcher the sweep has kept unless the
// request names another. REQUIRES the lease, which stays with the caller.
Expected<run::RunEnd> run_pending(Io&, store::Store&, const std::string& db, const store::SweepRow&,
                                  const LaunchRequest&, bool quiet);

}  // namespace sweep::cli
