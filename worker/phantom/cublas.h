// Shared by cuBLAS and cuBLASLt: products run as kernels of the modelled length.
#pragma once
#include <cublas_v2.h>

#include "worker/phantom/kernels.h"

namespace sweep::phantom {

// The type whose peak applies, of operands of `type`.
const char* type_name(cudaDataType type, bool tensor_fp32);
double type_bytes(cudaDataType type);
cublasStatus_t run_product(cudaStream_t stream, const Product& product);
// CUBLAS_STATUS_SUCCESS, or what a fault or an earlier error makes of this call.
cublasStatus_t cublas_begin();

}  // namespace sweep::phantom
