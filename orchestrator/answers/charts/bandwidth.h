// A hardware profile as `sweep calibrate` shows it: as text, and the bandwidth of collectives by message size and
// group as an SVG heatmap. Bandwidths are nccl-tests' (hardware_profile.h).
#pragma once
#include <string>

#include "bench_kernels/shape/hardware_profile.h"

namespace sweep::answers {

// "1 KiB", "16 MiB"; what is no whole number of one: "12 B".
std::string size_text(i64 bytes);
// Matrix products, copies and launches; empty: none was measured.
std::string machine_text(const shape::HardwareProfile&);
// The collectives, and the fitted costs from which predictions are computed.
std::string network_text(const shape::HardwareProfile&);
// A row for each collective and group, a column for each size, the bus bandwidth in a cell. Without
// measurements it says so.
std::string bandwidth_svg(const shape::HardwareProfile&);

}  // namespace sweep::answers
