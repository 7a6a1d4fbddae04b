// Metrics of what surrounds the steps, over all ranks; and the rate and cost of a run that has it every so many steps.
#pragma once
#include <span>

#include "schema/metrics.h"
#include "schema/records.h"
#include "schema/trial.h"

namespace sweep::metrics {

// REQUIRES: the step's rates are there.
void add_around(Metrics&, const Trial&, std::span<const RankRecord>);

}  // namespace sweep::metrics
