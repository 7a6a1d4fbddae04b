// Calls of the GPU plug-in's table that have a source of their own (cuda_plugin.h).
#pragma once
#include "bench_kernels/comm/cuda_plugin.h"
#include "bench_kernels/kernels/device_ops.h"

namespace sweep::cuda {

// Captures CUDA graphs, by LibTorch's own class, whose allocator keeps a graph's memory (cuda_plugin.h).
comm::CudaGraphPool graph_pool();
std::unique_ptr<comm::CudaGraph> capture(const comm::CudaGraphPool&, const std::function<void()>& work);

// Launches the fused kernels (bench_kernels/kernels/device) by the driver's API on LibTorch's current stream.
// A kernel is compiled when it is first launched, for the type and form of that launch. Throws c10::Error.
void launch(const kernels::device::Launch&);

}  // namespace sweep::cuda
