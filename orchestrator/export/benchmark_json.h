// Results for services that watch benchmarks over time: Bencher's metric format, and the custom format of
// github-action-benchmark. Only trials that ended ok are in them: a failure has no number.
#pragma once
#include <span>
#include <string>

#include "schema/columns.h"

namespace sweep::exports {

// A row and the name under which the service follows it: the same from one export to the next.
struct NamedRow {
  std::string name;
  const ResultRow* row = nullptr;
};

// {"name": {"latency": {"value", "lower_value", "upper_value"}, "throughput": ..., "mfu": ...}}: latency in
// nanoseconds and throughput in tokens per second, as Bencher's built-in measures are; the other metrics by
// their own names and units.
std::string bencher_json(std::span<const NamedRow>);

// [{"name", "unit", "value", "range", "extra"}] of one metric: a file holds one direction. Rows without the
// metric are left out.
std::string github_benchmark_json(std::span<const NamedRow>, const Column& metric);

// Rows with their names, made unique by the trial's id where two rows have the same one; names longer than the services take
// are cut before it. The rows must outlive the answer.
std::vector<NamedRow> named_rows(const std::vector<ResultRow>&, std::span<const std::string> names);

}  // namespace sweep::exports
