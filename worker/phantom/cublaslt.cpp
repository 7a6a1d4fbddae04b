// cuBLASLt: products by descriptors.
#include <cublasLt.h>

#include <cstring>

#include "worker/phantom/cublas.h"

using namespace sweep::phantom;

namespace {

struct Layout {  // content of cublasLtMatrixLayoutOpaque_t
  cudaDataType type;
  std::uint64_t rows, cols;
  std::int32_t batch;
};
struct MatmulOperation {  // content of cublasLtMatmulDescOpaque_t
  cublasComputeType_t compute;
  std::int32_t transposed_a;
};
static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(sizeof(MatmulOperation) <= sizeof(cublasLtMatmulDescOpaque_t));

template <class Out, class In>
Out& in(In* opaque) {
  return *reinterpret_cast<Out*>(opaque);
}

template <class T>
void take(T& into, const void* from, std::size_t bytes) {
  if (bytes == sizeof into) std::memcpy(&into, from, bytes);
}

}  // namespace

PHANTOM_API cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (const auto status = cublas_begin()) return status;
  *handle = reinterpret_cast<cublasLtHandle_t>(new char);
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<char*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API std::size_t cublasLtGetVersion() {
  return CUBLAS_VERSION;
}

PHANTOM_API cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* out, cublasComputeType_t compute,
                                                    cudaDataType_t) {
  *out = new cublasLtMatmulDescOpaque_t{};
  in<MatmulOperation>(*out).compute = compute;
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  delete operation;
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                                          cublasLtMatmulDescAttributes_t attribute,
                                                          const void* value, std::size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSA)
    take(in<MatmulOperation>(operation).transposed_a, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* out) {
  *out = new cublasLtMatmulPreferenceOpaque_t{};
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* out, cudaDataType type,
                                                      std::uint64_t rows, std::uint64_t cols, std::int64_t) {
  *out = new cublasLtMatrixLayoutOpaque_t{};
  in<Layout>(*out) = {type, rows, cols, 1};
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                            cublasLtMatrixLayoutAttribute_t attribute,
                                                            const void* value, std::size_t bytes) {
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) take(in<Layout>(layout).batch, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                                          cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                          cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                          cublasLtMatmulPreference_t, int asked,
                                                          cublasLtMatmulHeuristicResult_t* results,
                                                          int* count) {
  *count = asked > 0 ? 1 : 0;
  if (asked > 0) results[0] = {};
  return CUBLAS_STATUS_SUCCESS;
}

PHANTOM_API cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void*,
                                          const void*, cublasLtMatrixLayout_t a, const void*,
                                          cublasLtMatrixLayout_t, const void*, const void*,
                                          cublasLtMatrixLayout_t, void*, cublasLtMatrixLayout_t d,
                                          const cublasLtMatmulAlgo_t*, void*, std::size_t,
                                          cudaStream_t stream) {
  const Layout &left = in<Layout>(a), &out = in<Layout>(d);
  const MatmulOperation& how = in<MatmulOperation>(operation);
  const auto inner = static_cast<double>(how.transposed_a != CUBLAS_OP_N ? left.rows : left.cols);
  const bool tensor = how.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  return run_product(stream, {static_cast<double>(out.rows), static_cast<double>(out.cols), inner,
                              static_cast<double>(std::max(out.batch, 1)), type_bytes(left.type),
                              type_bytes(out.type), type_name(left.type, tensor)});
}
