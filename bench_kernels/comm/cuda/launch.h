// Launches the fused kernels (bench_kernels/kernels/device) by the driver's API on LibTorch's current stream.
#pragma once
#include "bench_kernels/kernels/device_ops.h"

namespace sweep::cuda {

// The kernels of a type are compiled when the first of them is launched. Throws c10::Error.
void launch(const kernels::device::Launch&);

}  // namespace sweep::cuda
