// CSV of results (RFC 4180): every column of schema/columns.h in table order, NULL as an empty field. Rows
// are streamed; a write that fails is reported. Doubles are the shortest form that reads back to the same
// value.
#pragma once
#include <functional>
#include <iosfwd>
#include <span>

#include "base/expected.h"
#include "schema/result_row.h"

namespace sweep::exports {

// Hands out rows one at a time; nullptr: no more. The row need only live until the next call.
using RowSource = std::function<const ResultRow*()>;
RowSource rows_of(std::span<const ResultRow>);

// Text cells that a spreadsheet would run as a formula (first character = + - @ tab or return, and not a
// number) get a leading apostrophe; `raw_text` leaves them as they are, for programs that read the file.
struct CsvOptions {
  bool raw_text = false;
};

Expected<void> write_csv(std::ostream&, const RowSource&, const CsvOptions& = {});
Expected<void> write_csv(std::ostream&, const Table&, const CsvOptions& = {});

}  // namespace sweep::exports
