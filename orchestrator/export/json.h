// JSON of results: an array, or one object per line (JSON Lines), with every column of schema/columns.h; null
// for not measured, true and false for flags, labels and the model's dimensions as objects. Streamed; a
// failed write is reported.
#pragma once
#include <iosfwd>

#include "base/expected.h"
#include "orchestrator/export/csv.h"

namespace sweep::exports {

Expected<void> write_json(std::ostream&, const RowSource&);
Expected<void> write_json_lines(std::ostream&, const RowSource&);
// An array of objects, one per row of the table; of columns with the same name the last one counts.
Expected<void> write_json(std::ostream&, const Table&);

}  // namespace sweep::exports
