// Launches the fused kernels (bench_kernels/kernels/device) by the driver's API on LibTorch's current stream.
#pragma once
#include "bench_kernels/kernels/device_ops.h"

namespace sweep::cuda {

// A kernel is compiled when it is first launched, for the type and form of that launch. Throws c10::Error.
void launch(const kernels::device::Launch&);

}  // namespace sweep::cuda
