// Captures CUDA graphs, by LibTorch's own class, whose allocator keeps a graph's memory (cuda_plugin.h).
#pragma once
#include "bench_kernels/comm/cuda_plugin.h"

namespace sweep::cuda {

comm::CudaGraphPool graph_pool();
std::unique_ptr<comm::CudaGraph> capture(const comm::CudaGraphPool&, const std::function<void()>& work);

}  // namespace sweep::cuda
