// CalibrationRequest: what the ranks of one calibration attempt measure. It travels in the axis `program` of
// a trial whose workload is `calibrate`. What they found travels back as JSON (CalibrationFindings) in the
// record's `effective`.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "base/integers.h"

namespace sweep {

struct CalibrationRequest {
  // Each rank by itself: matrix products, memory, launches.
  bool machine = false;
  // The collectives of a group: "tp", neighbours in rank order; "dp", one rank of each node. Empty: none.
  std::string group;
  std::vector<std::string> precisions;  // precisions of matrix products
  i64 smallest_bytes = 1024, largest_bytes = i64{16} << 20;
  double item_s = 0.05;  // about how long one measurement may take
  bool operator==(const CalibrationRequest&) const = default;
};

// One matrix product m x k by k x n.
struct MatmulTiming {
  std::string precision;
  i64 m = 0, n = 0, k = 0;
  double seconds = 0;
  bool operator==(const MatmulTiming&) const = default;
};
// A copy: `bytes` counts what is read and what is written.
struct CopyTiming {
  i64 bytes = 0;
  double seconds = 0;
  bool operator==(const CopyTiming&) const = default;
};
struct GroupTiming {
  std::string kind;  // all_reduce, all_gather, reduce_scatter, all_to_all, send
  i64 bytes = 0;
  double seconds = 0;
  i64 wrong = 0;  // elements
  bool operator==(const GroupTiming&) const = default;
};
struct CalibrationFindings {
  std::vector<MatmulTiming> matmul;
  std::vector<CopyTiming> copies;
  double launch_s = 0;  // host time of one small operation; 0: not measured
  std::vector<GroupTiming> collectives;
  bool operator==(const CalibrationFindings&) const = default;
};

std::string to_text(const CalibrationRequest&);
Expected<CalibrationRequest> calibration_request_from(std::string_view text);
std::string to_text(const CalibrationFindings&);
// Reads what a rank sent, which is untrusted. Numbers that are not finite or negative are refused.
Expected<CalibrationFindings> calibration_findings_from(std::string_view text);

}  // namespace sweep
