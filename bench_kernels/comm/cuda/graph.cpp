#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include "bench_kernels/comm/cuda/calls.h"

namespace sweep::cuda {
namespace {

void order(const at::cuda::CUDAStream& first, const at::cuda::CUDAStream& then) {
  at::cuda::CUDAEvent event;
  event.record(first);
  event.block(then);
}

class Captured final : public comm::CudaGraph {
 public:
  // Captures on a stream of its own: the default stream cannot be captured. All graphs share it, since the allocator keeps
  // blocks by stream. Other threads, such as NCCL's watchdog, may go on asking the driver.
  Captured(const comm::CudaGraphPool& pool, const std::function<void()>& work) {
    static const auto own = c10::cuda::getStreamFromPool();
    const auto current = c10::cuda::getCurrentCUDAStream();
    order(current, own);
    const c10::cuda::CUDAStreamGuard guard(own);
    graph_.capture_begin(pool, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      end_quietly();
      throw;
    }
    graph_.capture_end();
  }
  void launch() override { graph_.replay(); }

 private:
  // Its own error says nothing new: the first one is thrown on.
  void end_quietly() {
    try {
      graph_.capture_end();
    } catch (const std::exception&) {
      (void)cudaGetLastError();
    }
  }

  at::cuda::CUDAGraph graph_;
};

}  // namespace

comm::CudaGraphPool graph_pool() {
  c10::cuda::device_synchronize();
  c10::cuda::CUDACachingAllocator::emptyCache();
  return at::cuda::graph_pool_handle();
}

std::unique_ptr<comm::CudaGraph> capture(const comm::CudaGraphPool& pool, const std::function<void()>& work) {
  return std::make_unique<Captured>(pool, work);
}

}  // namespace sweep::cuda
