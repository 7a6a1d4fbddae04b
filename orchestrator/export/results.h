// Results as CSV and as JSON: every column of schema/columns.h. Rows are streamed; a write that fails is reported.
#pragma once
#include <functional>
#include <iosfwd>
#include <span>
#include <string_view>

#include "base/expected.h"
#include "schema/result_row.h"

namespace sweep::exports {

// Hands out rows one at a time; nullptr: no more. The row need only live until the next call.
using RowSource = std::function<const ResultRow*()>;
RowSource rows_of(std::span<const ResultRow>);

struct CsvOptions {
  // Text that a spreadsheet would run as a formula stays as it is, for programs that read the file; else it
  // is guarded (base/formula_guard.h).
  bool raw_text = false;
  std::string_view line_end = "\r\n";  // RFC 4180's; the filters of Unix expect "\n"
};

// RFC 4180, in table order: behind `model` its dimensions as a JSON object, NULL as an empty field. Doubles are the
// shortest form that reads back to the same value.
Expected<void> write_csv(std::ostream&, const RowSource&, const CsvOptions& = {});
Expected<void> write_csv(std::ostream&, const Table&, const CsvOptions& = {});

// An array, or one object per line (JSON Lines): null for not measured, true and false for flags, labels and the model's
// dimensions as objects.
Expected<void> write_json(std::ostream&, const RowSource&);
Expected<void> write_json_lines(std::ostream&, const RowSource&);
// An array of objects, one per row of the table; of columns with the same name the last one counts.
Expected<void> write_json(std::ostream&, const Table&);

}  // namespace sweep::exports
