// The one rule of every answer that ranks: which results may be best, and which of two is better.
#pragma once
#include <array>
#include <span>

#include "schema/columns.h"
#include "schema/result_columns.h"

namespace sweep {

// It ended ok and was not stopped early: the figures of a trial that was stopped are of fewer steps.
bool may_be_best(State, Outcome, const Metrics&);
bool may_be_best(const ResultRow&);
// The same of each row of columns, which hold those that it looks at.
std::vector<bool> may_be_best(const ResultColumns&);
inline const ColumnSelection kMayBeBestColumns = {{"state", "outcome"}, {"steps_saved"}};
// A result with this value comes before the other one. Of equal values, the smaller trial id comes first.
bool ranks_before(Better, double value, std::string_view id, double other, std::string_view other_id);
// Whether a result with this value goes before another one: first the one that may be best, then as ranks_before says.
bool goes_before(Better, const ResultRow&, double value, const ResultRow& other, double of_other);
// Both results are of one attempt: one sweep took it over from the other (--reuse), and has made none of its own.
bool is_one_attempt(const ResultRow&, const ResultRow&);

// The metric that results are ranked by where nobody names one: tokens_per_s_gpu; its useful part once a result has padding,
// which makes a step fast and teaches nothing; step_ms where they tell step times alone (a command that reports no tokens).
// The columns hold those that it looks at and names.
std::string usual_metric(std::span<const ResultRow>);
std::string usual_metric(std::span<const std::span<const ResultRow>> sweeps);  // sweeps that are compared
std::string usual_metric(const ResultColumns&);
inline constexpr std::array kUsualMetricColumns = {"tokens_per_s_gpu", "useful_tokens_per_s_gpu",
                                                   "useful_fraction", "step_ms"};
// Whether some of its tokens are padding: then what counts useful tokens is another number than what counts all.
bool has_padding(const Metrics&);
// The share of its tokens that are of documents; 1 of a program that does not tell its padding.
double useful_share_of(const Metrics&);
// Tokens of documents per second and rank; all tokens of a program that does not tell its padding. nullopt: not measured.
std::optional<double> useful_rate(const Metrics&);

// The keys of the metrics that have a better and a worse, separated by commas.
std::string ranked_metrics();

}  // namespace sweep
