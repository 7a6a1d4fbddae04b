// The status codes with which cuBLAS and NCCL last failed on this thread. LibTorch turns both into exceptions
// that carry text only; to name the code in that text it calls one function of each library, by a dynamic
// symbol. The program exports the same symbols, so that it sees the code, notes it, and lets the library's
// own function answer.
#pragma once

namespace sweep::rank {

// cublasStatus_t and ncclResult_t; 0: neither failed. Kept as numbers: the program is built without CUDA's
// headers.
struct LibraryStatus {
  int cublas = 0, nccl = 0;
};
inline constexpr int kCublasNotInitialized = 1, kCublasAllocFailed = 3, kCublasExecutionFailed = 13,
                     kCublasInternalError = 14;
inline constexpr int kNcclUnhandledCudaError = 1, kNcclInvalidArgument = 4, kNcclInvalidUsage = 5;

LibraryStatus last_library_status();  // the calling thread's

}  // namespace sweep::rank
