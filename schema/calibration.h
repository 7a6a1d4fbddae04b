// Reads and checks a CalibrationRequest (messages.def), which travels in the axis `program` of a trial whose workload
// is `calibrate`. What its ranks found travels back as CalibrationFindings in the record's `effective`.
#pragma once
#include <string_view>

#include "base/expected.h"
#include "schema/records.h"

namespace sweep {

Expected<CalibrationRequest> calibration_request_from(std::string_view text);
// Measurements that cannot be are an error: a rank sent them, or a file holds them.
Expected<void> check(const CalibrationFindings&);

}  // namespace sweep
