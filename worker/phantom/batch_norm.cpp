// cuDNN's batch normalization of the old interface, to which LibTorch gives convolutional networks in NCHW. It takes the
// time in which its tensors pass memory. Its workspaces are taken to be empty. No header of cuDNN is included: it marks
// these functions' own types as deprecated.
#include <dlfcn.h>

#include <cmath>
#include <cstddef>

#include "worker/phantom/description.h"
#include "worker/phantom/launch_log.h"
#include "worker/phantom/runtime.h"

using namespace sweep::phantom;

extern "C" int cudnnGetStream(void* handle, cudaStream_t* stream);

namespace {

constexpr int kSuccess = 0, kExecutionFailed = 5000;
// How often a tensor of the input's size is read or written: statistics, then values.
constexpr double kForward = 3, kBackward = 5, kInference = 2;

using SizeOf = int (*)(void*, std::size_t*);

// A function of the program's own cuDNN, which describes tensors; LibTorch loads it, so no search of all libraries finds it.
SizeOf tensor_size() {
  void* cudnn = ::dlopen("libcudnn.so.9", RTLD_NOLOAD | RTLD_LAZY);
  return cudnn == nullptr ? nullptr : reinterpret_cast<SizeOf>(::dlsym(cudnn, "cudnnGetTensorSizeInBytes"));
}

// 0: there is another cuDNN.
double bytes_of(void* tensor) {
  static const SizeOf size_of = tensor_size();
  std::size_t bytes = 0;
  return size_of != nullptr && size_of(tensor, &bytes) == kSuccess ? static_cast<double>(bytes) : 0;
}

int pass_memory(void* handle, void* tensor, double times) {
  if (Runtime::get().begin() != cudaSuccess) return kExecutionFailed;
  cudaStream_t stream = nullptr;
  (void)cudnnGetStream(handle, &stream);
  const double bytes = times * bytes_of(tensor);
  log_launch("cudnn batch normalization", 0, bytes);
  const auto& d = description();
  const Ns time =
      d.profile.kernel_floor + static_cast<Ns>(std::llround(bytes / d.device.memory_bandwidth * 1e9));
  return run_kernel(stream_of(stream), {time}) == cudaSuccess ? kSuccess : kExecutionFailed;
}

int no_bytes(std::size_t* size) {
  *size = 0;
  return kSuccess;
}

}  // namespace

// Parameters that nothing reads have no names; further ones follow.
PHANTOM_API int cudnnBatchNormalizationForwardTrainingEx(void* handle, int, int, const void*, const void*,
                                                         void* input, ...) {
  return pass_memory(handle, input, kForward);
}
PHANTOM_API int cudnnBatchNormalizationBackwardEx(void* handle, int, int, const void*, const void*,
                                                  const void*, const void*, void* input, ...) {
  return pass_memory(handle, input, kBackward);
}
PHANTOM_API int cudnnBatchNormalizationForwardInference(void* handle, int, const void*, const void*,
                                                        void* input, ...) {
  return pass_memory(handle, input, kInference);
}
PHANTOM_API int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void*, int, int, void*, void*, void*,
                                                                         void*, void*, std::size_t* size) {
  return no_bytes(size);
}
PHANTOM_API int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void*, int, int, void*, void*, void*, void*,
                                                                  void*, void*, void*, std::size_t* size) {
  return no_bytes(size);
}
PHANTOM_API int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void*, int, int, void*, void*,
                                                                     std::size_t* size) {
  return no_bytes(size);
}
