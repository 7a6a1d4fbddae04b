// Kernel tables: measured kernel times as CSV (operator, shape, type, gpu, us), by which phantom GPUs take as long
// as kernels were measured to take (docs/calibrate.md).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "bench_kernels/shape/hardware_profile.h"

namespace sweep::shape {

// The table of everything that the profile holds: products, copies (operator `memory`, bytes read and written)
// and further kernels. Of equal rows the last counts.
std::string kernel_table(const HardwareProfile&);

// The rows of that hardware, and those of no named one. Error with the line: a column is missing, or a cell
// cannot be; no row is of that hardware.
Expected<std::vector<KernelTiming>> read_kernel_table(std::string_view csv, std::string_view hardware);

// Adds rows; one of the same operator, shape and type is replaced.
void add_kernels(std::vector<KernelTiming>& to, const std::vector<KernelTiming>& rows);

}  // namespace sweep::shape
