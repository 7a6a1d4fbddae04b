// The bandwidth of collectives by message size and group as text and as an SVG heatmap: what `sweep
// calibrate` shows of a network. Bandwidths are nccl-tests' (hardware_profile.h).
#pragma once
#include <string>

#include "bench_kernels/shape/hardware_profile.h"

namespace sweep::answers {

// "1 KiB", "16 MiB"; what is no whole number of one: "12 B".
std::string size_text(i64 bytes);
std::string bandwidth_table(const shape::HardwareProfile&);
// A row for each collective and group, a column for each size, the bus bandwidth in a cell. Without
// measurements it says so.
std::string bandwidth_svg(const shape::HardwareProfile&);

}  // namespace sweep::answers
