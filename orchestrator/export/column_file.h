// Columns of results for programs, each in one piece: a line of JSON, which names the columns and holds the distinct
// values of the coded ones, then the bytes of each column in that order, little-endian: four a row for a coded
// column (the place of its value), eight for a number (f64, NaN for NULL). docs/exports.md tells readers.
#pragma once
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "schema/columns.h"
#include "schema/result_columns.h"

namespace sweep::exports {

// One column of the file. It has either codes or numbers, which are those of the results or its own.
struct FileColumn {
  std::string name, type, unit;
  const CodedColumn* coded = nullptr;
  const std::vector<double>* numbers = nullptr;
  std::unique_ptr<const CodedColumn> own = nullptr;
};

// Reads those metrics that are numbers as numbers. The other columns of the table are coded.
ColumnSelection selection_of(std::span<const Column* const>);
// REQUIRES: the rows were read by a selection_of() that had the column; they outlive the result.
FileColumn file_column(const Column&, const ResultColumns&);
// An axis of the grid's own, which the column `labels` holds. Its type is that of all its values: i64, f64 or text.
FileColumn file_column(std::string name, std::string unit, CodedColumn);

Expected<void> write_columns(std::ostream&, std::span<const FileColumn>, std::size_t rows);

}  // namespace sweep::exports
