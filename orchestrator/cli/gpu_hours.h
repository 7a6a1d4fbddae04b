// GPU-hours: the confirmation that an expensive plan needs, and what a sweep has held so far. The run loop
// enforces the limits.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "orchestrator/answers/progress.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/driver/launchers.h"
#include "orchestrator/search/candidate.h"

namespace sweep::cli {

// Trials that take more than the launcher's confirm_gpu_hours need `yes`, or the answer y on a terminal; not if `bound`
// ends the run before.
Expected<void> confirmed(Io&, const search::Most&, const driver::LaunchChoice&, std::optional<double> bound,
                         bool yes);

// The GPU-hours that all runs of the sweep have held.
Expected<answers::GpuHours> held_hours(store::Store&, const store::SweepRow&, std::optional<double> limit);

// The same as text, of the sweep of this name in this database; empty where there is none.
std::string held_hours_in(const std::string& db, const std::string& sweep, std::optional<double> limit);

// Says how a sweep whose limit is used up can go on: by a command with a larger limit. `words_of` gives a sweep's name as
// words of a command, with the database.
std::string past_limit(run::Limit, store::Store&, const store::SweepRow&,
                       const std::function<std::string(const std::string&)>& words_of);

}  // namespace sweep::cli
