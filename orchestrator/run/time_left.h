// TimeLeft: how long what is left to run will take, from what is to do, how long trials took against their
// predictions, and how many nodes work at once. Pure: the one figure that `run`, `status` and watchers show.
#pragma once
#include <optional>

#include "orchestrator/store/store.h"

namespace sweep::run {

// nullopt: nothing is left, or nothing is known. Waiting in a queue is not counted, because its length is not
// known.
std::optional<double> seconds_left(const store::Workload&);

}  // namespace sweep::run
