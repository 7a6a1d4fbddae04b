// The metrics that follow from raw samples and the model's shape, each by one formula, and their version. What follows
// from the plan (predictions, steps_saved) is added by result_of(), orchestrator/run/in_flight.h.
#pragma once
#include <span>

#include "schema/metrics.h"
#include "schema/records.h"

namespace sweep::metrics {

inline constexpr i64 kFormulaVersion = 2;

// Metrics of an attempt from its ranks' records and the agent's end: reductions over ranks and steps, then
// rates, MFU, cost. Fields that cannot be computed stay absent. Warm-up steps are never averaged in.
// usd_per_node_hour: price of a node here; nullopt: the catalogue's public price. ranks: how many were
// started; nullopt: all of the trial's.
Metrics derive(const Trial&, std::span<const RankRecord>, const AttemptEnd*,
               std::optional<double> usd_per_node_hour = std::nullopt,
               std::optional<i64> ranks = std::nullopt);

// Computes what follows from the rate of a measurement that came without raw samples (tokens_per_s_gpu,
// else tokens_per_s, else step_ms) by the same formulas. What is stated stays; step times and mfu_reported
// are never computed.
Metrics derive_from_rate(const Trial&, const Metrics& stated);

// Why there are no times: every timed step was skipped. nullopt: some step had an update.
std::optional<std::string> never_updated(const Metrics&);

// Why rates cannot be true, with the numbers: the FLOPs of a step would exceed the peak of the catalogue.
// nullopt: they are possible.
std::optional<std::string> beyond_peak(const Trial&, const Metrics&);

}  // namespace sweep::metrics
