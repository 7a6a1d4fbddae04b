// GPU-hours: the yes that a plan of many of them wants, and what a sweep has held so far. It bounds nothing itself: the
// run loop does.
#pragma once
#include <optional>
#include <string>

#include "orchestrator/cli/launchers.h"
#include "orchestrator/cli/planning.h"

namespace sweep::cli {

// The smaller one of those that are set.
std::optional<double> smaller_limit(std::optional<double> one, std::optional<double> other);

// Above what the site or the grid wants confirmed, a yes is needed: `yes`, or one typed on a terminal. What `bound` ends
// before counts no further.
Expected<void> confirmed(Io&, const Planned&, const LaunchChoice&, std::optional<double> bound, bool yes);

// "0.5 of 2 GPU-hours held, all runs together"; empty: nothing was held yet.
Expected<std::string> held_hours(store::Store&, const store::SweepRow&, std::optional<double> limit);

// The same of the sweep of this name in this database; empty where there is none.
std::string held_hours_in(const std::string& db, const std::string& sweep, std::optional<double> limit);

}  // namespace sweep::cli
