// The measurements of a confirming sweep, by allocation and by repeat.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/statistics/confirm.h"
#include "orchestrator/store/store.h"

namespace sweep::driver {

// The ok attempts of each row of `best`, in that order, in sweep `confirming` that were measured by this
// plan.
Expected<std::vector<answers::Remeasured>> remeasured(store::Store&, i64 confirming,
                                                      std::span<const ResultRow> best, const MeasurePlan&,
                                                      const std::string& metric);

}  // namespace sweep::driver
