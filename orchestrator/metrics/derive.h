// Every derived number and its formula version, once. Works on raw samples and the model's shape only.
#pragma once
#include <span>
#include <vector>

#include "schema/metrics.h"
#include "schema/records.h"

namespace sweep::metrics {

inline constexpr i64 kFormulaVersion = 1;

// Metrics of an attempt from its ranks' records and the agent's end: reductions over ranks and steps, then
// rates, MFU, cost. Fields that cannot be computed stay absent. Warm-up steps are never averaged in.
Metrics derive(const Trial&, std::span<const RankRecord>, const AttemptEnd*);

}  // namespace sweep::metrics
