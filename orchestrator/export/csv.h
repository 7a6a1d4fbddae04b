// CSV of results (RFC 4180): every column of schema/columns.h in table order, behind `model` its dimensions as a JSON
// object, NULL as an empty field. Rows are streamed; a write that fails is reported. Doubles are the shortest form that
// reads back to the same value.
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

Expected<void> write_csv(std::ostream&, const RowSource&, const CsvOptions& = {});
Expected<void> write_csv(std::ostream&, const Table&, const CsvOptions& = {});

}  // namespace sweep::exports
