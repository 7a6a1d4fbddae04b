// Calibration: the trials by which `sweep calibrate` measures machines and networks, their run through the
// ordinary loop, and the hardware profile from what the ranks report. One attempt measures each rank by
// itself; one more measures each size of group and backend, so that a collective that hangs or fails costs
// only its own attempt.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bench_kernels/shape/hardware_profile.h"
#include "orchestrator/driver/built_in_run.h"
#include "schema/records.h"

namespace sweep::driver {

// The place, and what is measured.
struct CalibrationSetup {
  std::string hardware = "cpu";
  i64 nodes = 1, ranks_per_node = 2, threads = 1;
  std::vector<CommBackend> backends{CommBackend::kAuto};
  bool machine = true, collectives = true, kernels = false;
  std::vector<std::string> precisions{"fp32", "bf16"};
  i64 smallest_bytes = 1024, largest_bytes = i64{16} << 20;
  double item_s = 0.05;
};

// Sizes of the groups of neighbours: powers of two that divide a node's ranks or are whole nodes, and all
// ranks.
std::vector<i64> group_sizes(const CalibrationSetup&);
std::vector<Trial> calibration_trials(const CalibrationSetup&);
// "machine", or "4 ranks on 2 nodes, gloo".
std::string calibration_title(const Trial&);

// Adds what the ranks of one attempt report. Of a measurement that several ranks made the slowest counts.
// Error: a rank reports what cannot be.
Expected<void> add_findings(shape::HardwareProfile&, const Trial&, const std::vector<RankRecord>&);

struct CalibrationReport {
  shape::HardwareProfile profile;     // a fitted profile without a name
  std::vector<std::string> failures;  // a sentence for each attempt without a good end
  std::string why;                    // reason why the run ended early
};
// hang_seconds: nullopt: as long as any trial.
Expected<CalibrationReport> run_calibration(const SelfTestRequest&, const CalibrationSetup&,
                                            std::optional<double> hang_seconds, const MakeObserver&);

// The profiles of the database, those that can be read. A database that is not there has none.
Expected<std::vector<shape::HardwareProfile>> stored_profiles(const std::filesystem::path& db);
// The database in which `sweep calibrate` keeps them by default.
std::filesystem::path calibration_db();

}  // namespace sweep::driver
