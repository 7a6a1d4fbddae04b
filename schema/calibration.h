// CalibrationRequest: what the ranks of one calibration attempt measure. It travels in the axis `program` of
// a trial whose workload is `calibrate`. What they found travels back as CalibrationFindings in the
// record's `effective`.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "base/integers.h"
#include "schema/records.h"

namespace sweep {

struct CalibrationRequest {
  // Each rank by itself: matrix products, memory, launches.
  bool machine = false;
  // Further kernels, for a kernel table: batched products, attention, and products of more shapes.
  bool kernels = false;
  // The collectives of a group: "tp", neighbours in rank order; "dp", one rank of each node. Empty: none.
  std::string group;
  std::vector<std::string> precisions;  // precisions of matrix products
  i64 smallest_bytes = 1024, largest_bytes = i64{16} << 20;
  double item_s = 0.05;  // about how long one measurement may take
  bool operator==(const CalibrationRequest&) const = default;
};

std::string to_text(const CalibrationRequest&);
Expected<CalibrationRequest> calibration_request_from(std::string_view text);
// Measurements that cannot be are an error: a rank sent them, or a file holds them.
Expected<void> check(const CalibrationFindings&);

}  // namespace sweep
