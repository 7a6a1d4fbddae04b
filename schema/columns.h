// Column: one column of the public row. The table below is the one order and the one spelling that tables,
// CSV, JSON and the documentation follow: who it is, the axes, how it ended, the metrics.
#pragma once
#include <span>
#include <string_view>

#include "schema/result_row.h"

namespace sweep {

enum class Role { kIdentity, kAxis, kMetric };
// The values of a metric that are better; kNone: neither, so nothing ranks by it.
enum class Better { kNone, kHigher, kLower };

struct Column {
  std::string_view key, type, unit, sentence;
  Role role;
  Value (*get)(
      const ResultRow&);  // NULL (monostate) for not measured and for non-finite numbers; a flag is 0 or 1
  Value default_value;    // an axis's frozen default; else NULL
  Better better = Better::kNone;  // direction of a metric
  std::string_view title = {};    // name on pages; empty: its key
};

std::span<const Column> columns();
// nullptr: no such column.
const Column* find_column(std::string_view key);

// Nanoseconds since 1970 as ISO 8601 in UTC with milliseconds: 2026-01-31T12:00:00.000Z.
std::string utc_time(i64 unix_ns);

}  // namespace sweep
