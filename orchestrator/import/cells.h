// Cells: one field of text -> a number, a flag or a value of an axis, or an error.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "schema/columns.h"

namespace sweep::imports {

std::string lower_case(std::string_view);  // changes ASCII letters only
std::string_view trimmed(std::string_view);
bool says_nothing(std::string_view);  // empty, nan, null, none, n/a, -
// The same, but for a word of the axis: recompute has `none`.
bool says_nothing(const Column& axis, std::string_view);

Expected<double> read_number(std::string_view);
Expected<bool> read_flag(std::string_view);
// The number that the text says, or the text where a number would lose some of it: 007, an id of twenty digits.
nlohmann::json label_value(std::string_view);
Expected<void> read_axis(const Column& axis, double factor, std::string_view cell, Trial&);
Expected<void> read_metric(const Column& metric, double factor, std::string_view cell, Metrics&);

// Parses the column `rehearsed`. Error: the row was rehearsed, so its figures are modelled and not measured.
Expected<void> refuse_rehearsed(std::string_view);
// Parses the dimensions of a model, a JSON object. nullopt: it was imported without them.
Expected<std::optional<ModelSpec>> read_model_dimensions(std::string_view);

// Parses the outcome column. nullopt: the trial has not finished (pending, cancelled).
Expected<std::optional<Outcome>> read_outcome(std::string_view);

}  // namespace sweep::imports
