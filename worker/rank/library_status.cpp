#include "worker/rank/library_status.h"

#include <dlfcn.h>

namespace sweep::rank {
namespace {

thread_local LibraryStatus last;

// Calls the library's own function of that name, which describes a status.
const char* library_says(const char* symbol, int status, const char* otherwise) {
  using Function = const char* (*)(int);
  const auto function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, symbol));
  return function == nullptr ? otherwise : function(status);
}

}  // namespace

LibraryStatus last_library_status() {
  return last;
}

}  // namespace sweep::rank

extern "C" {

// at::cuda::blas::_cublasGetErrorEnum(cublasStatus_t), which LibTorch calls for a status that is not a
// success.
__attribute__((visibility("default"))) const char* _ZN2at4cuda4blas19_cublasGetErrorEnumE14cublasStatus_t(
    int status) {
  sweep::rank::last.cublas = status;
  return sweep::rank::library_says("_ZN2at4cuda4blas19_cublasGetErrorEnumE14cublasStatus_t", status,
                                   "an error of cuBLAS");
}

__attribute__((visibility("default"))) const char* ncclGetErrorString(int result) {
  sweep::rank::last.nccl = result;
  return sweep::rank::library_says("ncclGetErrorString", result, "an error of NCCL");
}

}  // extern "C"
