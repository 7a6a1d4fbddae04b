// cuBLAS as far as LibTorch's products ask for it. Nothing is multiplied.
#include "worker/phantom/cublas.h"

#include <cstdio>

#include "worker/phantom/counters.h"
#include "worker/phantom/faults.h"
#include "worker/phantom/launch_log.h"

namespace sweep::phantom {

const char* type_name(cudaDataType type, bool tensor_fp32) {
  switch (type) {
    case CUDA_R_16F:
      return "fp16";
    case CUDA_R_16BF:
      return "bf16";
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
    case CUDA_R_8I:  // Tensor cores multiply 8-bit integers as fast.
      return "fp8";
    case CUDA_R_4F_E2M1:
      return "fp4";
    default:
      return tensor_fp32 ? "tf32" : "fp32";
  }
}

double type_bytes(cudaDataType type) {
  switch (type) {
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
    case CUDA_R_8I:
      return 1;
    case CUDA_R_4F_E2M1:
      return 0.5;
    case CUDA_R_64F:
      return 8;
    default:
      return 4;
  }
}

cublasStatus_t cublas_begin() {
  if (Runtime::get().begin() != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (Faults::get().triggered(Fault::kCublasOom, current_device()) != nullptr)
    return CUBLAS_STATUS_ALLOC_FAILED;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t run_product(cudaStream_t stream, const Product& product) {
  if (const auto status = cublas_begin()) return status;
  ++counters().matmuls;
  if (logs_launches()) {
    char name[128];
    std::snprintf(name, sizeof name, "product %.0f x %.0f x %.0f, %.0f at once, %s", product.m, product.n,
                  product.k, product.batch, product.type.c_str());
    log_launch(name, 0, traffic_of(product));
  }
  return run_kernel(stream_of(stream), product_time(product)) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                                             : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace sweep::phantom

using namespace sweep::phantom;

namespace {

struct CublasState {  // behind cublasHandle_t
  cudaStream_t stream = nullptr;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
};

CublasState& state_of(cublasHandle_t handle) {
  return *reinterpret_cast<CublasState*>(handle);
}

cublasStatus_t multiply(cublasHandle_t handle, double m, double n, double k, double batch, cudaDataType type,
                        bool fast = false) {
  const CublasState& state = state_of(handle);
  const bool tensor = fast || (state.math & CUBLAS_TF32_TENSOR_OP_MATH) != 0;
  return run_product(state.stream,
                     {m, n, k, batch, type_bytes(type), type_bytes(type), type_name(type, tensor)});
}

// A dot product: its result is zero, as all that kernels would compute.
template <class T>
cublasStatus_t dot(cublasHandle_t handle, int n, T* out) {
  if (state_of(handle).pointers == CUBLAS_POINTER_MODE_HOST) *out = T();
  return multiply(handle, 1, 1, n, 1, CUDA_R_32F);
}

}  // namespace

PHANTOM_API cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (const auto status = cublas_begin()) return status;
  *handle = reinterpret_cast<cublasHandle_t>(new CublasState);
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete &state_of(handle);
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  state_of(handle).stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  *stream = state_of(handle).stream;
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  state_of(handle).math = mode;
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  *mode = state_of(handle).math;
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  state_of(handle).pointers = mode;
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  *mode = state_of(handle).pointers;
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t, cublasOperation_t, int m,
                                          int n, int k, const float*, const float*, int, const float*, int,
                                          const float*, float*, int) {
  return multiply(handle, m, n, k, 1, CUDA_R_32F);
}

PHANTOM_API cublasStatus_t cublasDgemm_v2(cublasHandle_t handle, cublasOperation_t, cublasOperation_t, int m,
                                          int n, int k, const double*, const double*, int, const double*, int,
                                          const double*, double*, int) {
  return multiply(handle, m, n, k, 1, CUDA_R_64F);
}

PHANTOM_API cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t, cublasOperation_t, int m,
                                        int n, int k, const void*, const void*, cudaDataType type, int,
                                        const void*, cudaDataType, int, const void*, void*, cudaDataType, int,
                                        cublasComputeType_t compute, cublasGemmAlgo_t) {
  return multiply(handle, m, n, k, 1, type, compute == CUBLAS_COMPUTE_32F_FAST_TF32);
}

PHANTOM_API cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t, cublasOperation_t, int m,
                                         int n, int k, const float*, const void*, cudaDataType type, int,
                                         const void*, cudaDataType, int, const float*, void*, cudaDataType,
                                         int) {
  return multiply(handle, m, n, k, 1, type);
}

PHANTOM_API cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t,
                                                      cublasOperation_t, int m, int n, int k, const void*,
                                                      const void*, cudaDataType type, int, long long,
                                                      const void*, cudaDataType, int, long long, const void*,
                                                      void*, cudaDataType, int, long long, int batch,
                                                      cublasComputeType_t compute, cublasGemmAlgo_t) {
  return multiply(handle, m, n, k, batch, type, compute == CUBLAS_COMPUTE_32F_FAST_TF32);
}

PHANTOM_API cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t,
                                                     cublasOperation_t, int m, int n, int k, const float*,
                                                     const float*, int, long long, const float*, int,
                                                     long long, const float*, float*, int, long long,
                                                     int batch) {
  return multiply(handle, m, n, k, batch, CUDA_R_32F);
}

PHANTOM_API cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t,
                                                     cublasOperation_t, int m, int n, int k, const double*,
                                                     const double*, int, long long, const double*, int,
                                                     long long, const double*, double*, int, long long,
                                                     int batch) {
  return multiply(handle, m, n, k, batch, CUDA_R_64F);
}

PHANTOM_API cublasStatus_t cublasSgemv_v2(cublasHandle_t handle, cublasOperation_t, int m, int n,
                                          const float*, const float*, int, const float*, int, const float*,
                                          float*, int) {
  return multiply(handle, m, 1, n, 1, CUDA_R_32F);
}

PHANTOM_API cublasStatus_t cublasDgemv_v2(cublasHandle_t handle, cublasOperation_t, int m, int n,
                                          const double*, const double*, int, const double*, int,
                                          const double*, double*, int) {
  return multiply(handle, m, 1, n, 1, CUDA_R_64F);
}

PHANTOM_API cublasStatus_t cublasSdot_v2(cublasHandle_t handle, int n, const float*, int, const float*, int,
                                         float* out) {
  return dot(handle, n, out);
}

PHANTOM_API cublasStatus_t cublasDdot_v2(cublasHandle_t handle, int n, const double*, int, const double*, int,
                                         double* out) {
  return dot(handle, n, out);
}

PHANTOM_API cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void*, cudaDataType, int,
                                       const void*, cudaDataType, int, void* out, cudaDataType,
                                       cudaDataType) {
  return dot(handle, n, static_cast<std::uint16_t*>(out));
}
