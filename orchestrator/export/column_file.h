// Columns of results for programs, each in one piece: a line of JSON, which names the columns and holds the distinct
// values of the coded ones, then the bytes of each column in that order, little-endian: four a row for a coded
// column (the place of its value), eight for a number (f64, NaN for NULL). docs/exports.md tells readers.
#pragma once
#include <iosfwd>
#include <span>
#include <string_view>

#include "base/expected.h"
#include "schema/columns.h"
#include "schema/result_columns.h"

namespace sweep::exports {

// Which of them are wanted as numbers: metrics that are numbers. The rest is coded.
ColumnSelection selection_of(std::span<const Column* const>);
// REQUIRES: the rows were read by selection_of(the same columns).
Expected<void> write_columns(std::ostream&, std::span<const Column* const>, const ResultColumns&);

}  // namespace sweep::exports
