// GPU-hours of a sweep: what its runs have held so far, and what a run with a limit needs. The run loop enforces the limits.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "orchestrator/answers/progress.h"
#include "orchestrator/run/run_sweep.h"
#include "orchestrator/search/candidate.h"

namespace sweep::driver {

// Why a person must confirm what is predicted: it takes more GPU-hours than the launcher's limit, confirm_gpu_hours (0: it has
// none). nullopt: nobody is asked, since it takes less or `bound` ends the run before.
std::optional<std::string> why_confirm(const search::Most&, double limit, std::optional<double> bound);

// The GPU-hours that all runs of the sweep have held.
Expected<answers::GpuHours> held_gpu_hours(store::Store&, const store::SweepRow&,
                                           std::optional<double> limit);

// Says how a sweep whose limit is used up can go on: by a command with a larger limit. `words_of` gives a sweep's name as
// words of a command, with the database.
std::string past_limit(run::Limit, store::Store&, const store::SweepRow&,
                       const std::function<std::string(const std::string&)>& words_of);

}  // namespace sweep::driver
