// Which results may be best and which of two is better: the one rule of every answer that ranks.
#pragma once
#include "schema/columns.h"

namespace sweep {

// It ended ok and was not stopped early: the figures of a trial that was stopped are of fewer steps.
bool may_be_best(const ResultRow&);
// A result with this value comes before the other one. Of equal values, the smaller trial id comes first.
bool ranks_before(Better, double value, std::string_view id, double other, std::string_view other_id);
// Whether a result with this value goes before another one: first the one that may be best, then as ranks_before says.
bool goes_before(Better, const ResultRow&, double value, const ResultRow& other, double of_other);
// Both results are of one attempt: one sweep took it over from the other (--reuse), and has made none of its own.
bool is_one_attempt(const ResultRow&, const ResultRow&);
// The keys of the metrics that have a better and a worse, separated by commas.
std::string ranked_metrics();

}  // namespace sweep
