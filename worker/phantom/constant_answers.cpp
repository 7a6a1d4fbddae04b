// Functions that answer the same whatever they are asked: success where a phantom has nothing to do, and the library's
// "not supported", with the function's name said, where LibTorch imports what phantoms lack. No header of CUDA is
// included: it declares the parameters, which nothing here reads.
#include "worker/phantom/counters.h"
#include "worker/phantom/description.h"
#include "worker/phantom/export.h"

#define PHANTOM_ANSWERS(name, status) \
  PHANTOM_API int name(...) {         \
    return status;                    \
  }
#define PHANTOM_SAYS_LACKING(name, status) \
  PHANTOM_API int name(...) {              \
    sweep::phantom::say_lacking(#name);    \
    return status;                         \
  }
// The counters of the process name it too.
#define PHANTOM_REFUSES(name, status) \
  PHANTOM_API int name(...) {         \
    sweep::phantom::refuse(#name);    \
    return status;                    \
  }
#define PHANTOM_REFUSES_OF_EACH_TYPE(before, after, status) \
  PHANTOM_REFUSES(before##S##after, status)                 \
  PHANTOM_REFUSES(before##D##after, status)                 \
  PHANTOM_REFUSES(before##C##after, status)                 \
  PHANTOM_REFUSES(before##Z##after, status)

namespace {

constexpr int kSuccess = 0;  // success in every library
constexpr int kCublasNotSupported = 15, kCudnnNotSupported = 3000, kCudaNotSupported = 801,
              kNvmlNotSupported = 3;
constexpr int kNcclInvalidUsage = 5;
constexpr int kCufftNotSupported = 16, kCusolverNotSupported = 9, kCusparseNotSupported = 10;

}  // namespace

// The runtime.
PHANTOM_ANSWERS(cudaProfilerStart, kSuccess)
PHANTOM_ANSWERS(cudaProfilerStop, kSuccess)
PHANTOM_ANSWERS(cudaFuncSetCacheConfig, kSuccess)

// The driver. A tensor map describes memory to a kernel, and no kernel reads it.
PHANTOM_ANSWERS(cuDevicePrimaryCtxRelease_v2, kSuccess)
PHANTOM_ANSWERS(cuCtxSetCurrent, kSuccess)
PHANTOM_ANSWERS(cuCtxPushCurrent_v2, kSuccess)
PHANTOM_ANSWERS(cuCtxSetLimit, kSuccess)
PHANTOM_ANSWERS(cuModuleUnload, kSuccess)
PHANTOM_ANSWERS(cuFuncSetAttribute, kSuccess)
PHANTOM_ANSWERS(cuFuncSetCacheConfig, kSuccess)
PHANTOM_ANSWERS(cuMemSetAccess, kSuccess)
PHANTOM_ANSWERS(cuTensorMapEncodeTiled, kSuccess)
// Memory shared between processes by handle, multicast, green contexts.
PHANTOM_SAYS_LACKING(cuStreamWriteValue32_v2, kCudaNotSupported)
PHANTOM_SAYS_LACKING(cuMemExportToShareableHandle, kCudaNotSupported)
PHANTOM_SAYS_LACKING(cuMemImportFromShareableHandle, kCudaNotSupported)
PHANTOM_SAYS_LACKING(cuMemRetainAllocationHandle, kCudaNotSupported)
PHANTOM_SAYS_LACKING(cuMemGetAllocationPropertiesFromHandle, kCudaNotSupported)
PHANTOM_SAYS_LACKING(cuMulticastCreate, kCudaNotSupported)
PHANTOM_SAYS_LACKING(cuMulticastAddDevice, kCudaNotSupported)
PHANTOM_SAYS_LACKING(cuMulticastBindMem, kCudaNotSupported)
PHANTOM_SAYS_LACKING(cuMulticastUnbind, kCudaNotSupported)
PHANTOM_SAYS_LACKING(cuGreenCtxCreate, kCudaNotSupported)
PHANTOM_SAYS_LACKING(cuGreenCtxDestroy, kCudaNotSupported)
PHANTOM_SAYS_LACKING(cuGreenCtxStreamCreate, kCudaNotSupported)
PHANTOM_SAYS_LACKING(cuCtxFromGreenCtx, kCudaNotSupported)
PHANTOM_SAYS_LACKING(cuDevResourceGenerateDesc, kCudaNotSupported)
PHANTOM_SAYS_LACKING(cuDevSmResourceSplitByCount, kCudaNotSupported)
PHANTOM_SAYS_LACKING(cuDeviceGetDevResource, kCudaNotSupported)
PHANTOM_SAYS_LACKING(cuLinkCreate_v2, kCudaNotSupported)
PHANTOM_SAYS_LACKING(cuLinkAddData_v2, kCudaNotSupported)
PHANTOM_SAYS_LACKING(cuLinkComplete, kCudaNotSupported)

// cuBLAS: linear algebra, complex numbers.
PHANTOM_ANSWERS(cublasSetWorkspace_v2, kSuccess)
PHANTOM_ANSWERS(cublasLtMatmulPreferenceSetAttribute, kSuccess)
PHANTOM_REFUSES_OF_EACH_TYPE(cublas, gelsBatched, kCublasNotSupported)
PHANTOM_REFUSES_OF_EACH_TYPE(cublas, geqrfBatched, kCublasNotSupported)
PHANTOM_REFUSES_OF_EACH_TYPE(cublas, getrfBatched, kCublasNotSupported)
PHANTOM_REFUSES_OF_EACH_TYPE(cublas, getrsBatched, kCublasNotSupported)
PHANTOM_REFUSES_OF_EACH_TYPE(cublas, trsmBatched, kCublasNotSupported)
PHANTOM_REFUSES_OF_EACH_TYPE(cublas, trsm_v2, kCublasNotSupported)
PHANTOM_REFUSES_OF_EACH_TYPE(cublas, gemmBatched, kCublasNotSupported)
PHANTOM_REFUSES(cublasGemmBatchedEx, kCublasNotSupported)
PHANTOM_REFUSES(cublasCgemm_v2, kCublasNotSupported)
PHANTOM_REFUSES(cublasZgemm_v2, kCublasNotSupported)
PHANTOM_REFUSES(cublasCgemmStridedBatched, kCublasNotSupported)
PHANTOM_REFUSES(cublasZgemmStridedBatched, kCublasNotSupported)
PHANTOM_REFUSES(cublasCgemv_v2, kCublasNotSupported)
PHANTOM_REFUSES(cublasZgemv_v2, kCublasNotSupported)
PHANTOM_REFUSES(cublasCdotc_v2, kCublasNotSupported)
PHANTOM_REFUSES(cublasCdotu_v2, kCublasNotSupported)
PHANTOM_REFUSES(cublasZdotc_v2, kCublasNotSupported)
PHANTOM_REFUSES(cublasZdotu_v2, kCublasNotSupported)

// The libraries that are no part of the phantom: without a handle nothing of them is called.
PHANTOM_REFUSES(cufftCreate, kCufftNotSupported)
PHANTOM_REFUSES(cusolverDnCreate, kCusolverNotSupported)
PHANTOM_REFUSES(cusparseCreate, kCusparseNotSupported)

// cuDNN: what needs a handle.
PHANTOM_ANSWERS(cudnnBackendFinalize, kSuccess)
PHANTOM_REFUSES(cudnnCTCLoss, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnCTCLoss_v8, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnConvolutionBackwardData, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnConvolutionBackwardFilter, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnConvolutionBiasActivationForward, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnConvolutionForward, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnDropoutGetStatesSize, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnFindConvolutionBackwardDataAlgorithmEx, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnFindConvolutionBackwardFilterAlgorithmEx, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnFindConvolutionForwardAlgorithmEx, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnGetCTCLossWorkspaceSize, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnGetCTCLossWorkspaceSize_v8, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnGetConvolutionBackwardDataAlgorithm_v7, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnGetConvolutionBackwardDataWorkspaceSize, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnGetConvolutionBackwardFilterAlgorithm_v7, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnGetConvolutionBackwardFilterWorkspaceSize, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnGetConvolutionForwardAlgorithm_v7, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnGetConvolutionForwardWorkspaceSize, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnGetRNNTempSpaceSizes, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnGetRNNWeightParams, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnGetRNNWeightSpaceSize, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnPoolingForward, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnRNNBackwardData_v8, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnRNNBackwardWeights_v8, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnRNNForward, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnRestoreDropoutDescriptor, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnSetDropoutDescriptor, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnSpatialTfGridGeneratorBackward, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnSpatialTfGridGeneratorForward, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnSpatialTfSamplerBackward, kCudnnNotSupported)
PHANTOM_REFUSES(cudnnSpatialTfSamplerForward, kCudnnNotSupported)

// NCCL. Communication out of kernels is not modelled: kernels do nothing.
PHANTOM_ANSWERS(ncclCommFinalize, kSuccess)
PHANTOM_ANSWERS(ncclRedOpDestroy, kSuccess)
PHANTOM_ANSWERS(ncclCommDeregister, kSuccess)
PHANTOM_ANSWERS(ncclCommWindowDeregister, kSuccess)
PHANTOM_ANSWERS(ncclDevCommDestroy, kSuccess)
PHANTOM_REFUSES(ncclCommInitAll, kNcclInvalidUsage)
PHANTOM_REFUSES(ncclDevCommCreate, kNcclInvalidUsage)

// NVML: nothing models power and the fabric.
PHANTOM_ANSWERS(nvmlShutdown, kSuccess)
PHANTOM_ANSWERS(nvmlDeviceGetPowerUsage, kNvmlNotSupported)
PHANTOM_ANSWERS(nvmlDeviceGetNvLinkRemoteDeviceType, kNvmlNotSupported)
PHANTOM_ANSWERS(nvmlDeviceGetNvLinkRemotePciInfo_v2, kNvmlNotSupported)
PHANTOM_ANSWERS(nvmlDeviceGetGpuFabricInfoV, kNvmlNotSupported)
