// Refuses by name the other functions that LibTorch imports from cuDNN and that need a handle.
#include "worker/phantom/counters.h"
#include "worker/phantom/export.h"

#define PHANTOM_CUDNN_LACKS(name)                 \
  PHANTOM_API int name(...) {                     \
    sweep::phantom::refuse(#name);                \
    return 3000; /* CUDNN_STATUS_NOT_SUPPORTED */ \
  }

PHANTOM_CUDNN_LACKS(cudnnBatchNormalizationBackwardEx)
PHANTOM_CUDNN_LACKS(cudnnBatchNormalizationForwardInference)
PHANTOM_CUDNN_LACKS(cudnnBatchNormalizationForwardTrainingEx)
PHANTOM_CUDNN_LACKS(cudnnCTCLoss)
PHANTOM_CUDNN_LACKS(cudnnCTCLoss_v8)
PHANTOM_CUDNN_LACKS(cudnnConvolutionBackwardData)
PHANTOM_CUDNN_LACKS(cudnnConvolutionBackwardFilter)
PHANTOM_CUDNN_LACKS(cudnnConvolutionBiasActivationForward)
PHANTOM_CUDNN_LACKS(cudnnConvolutionForward)
PHANTOM_CUDNN_LACKS(cudnnDropoutGetStatesSize)
PHANTOM_CUDNN_LACKS(cudnnFindConvolutionBackwardDataAlgorithmEx)
PHANTOM_CUDNN_LACKS(cudnnFindConvolutionBackwardFilterAlgorithmEx)
PHANTOM_CUDNN_LACKS(cudnnFindConvolutionForwardAlgorithmEx)
PHANTOM_CUDNN_LACKS(cudnnGetBatchNormalizationBackwardExWorkspaceSize)
PHANTOM_CUDNN_LACKS(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize)
PHANTOM_CUDNN_LACKS(cudnnGetBatchNormalizationTrainingExReserveSpaceSize)
PHANTOM_CUDNN_LACKS(cudnnGetCTCLossWorkspaceSize)
PHANTOM_CUDNN_LACKS(cudnnGetCTCLossWorkspaceSize_v8)
PHANTOM_CUDNN_LACKS(cudnnGetConvolutionBackwardDataAlgorithm_v7)
PHANTOM_CUDNN_LACKS(cudnnGetConvolutionBackwardDataWorkspaceSize)
PHANTOM_CUDNN_LACKS(cudnnGetConvolutionBackwardFilterAlgorithm_v7)
PHANTOM_CUDNN_LACKS(cudnnGetConvolutionBackwardFilterWorkspaceSize)
PHANTOM_CUDNN_LACKS(cudnnGetConvolutionForwardAlgorithm_v7)
PHANTOM_CUDNN_LACKS(cudnnGetConvolutionForwardWorkspaceSize)
PHANTOM_CUDNN_LACKS(cudnnGetRNNTempSpaceSizes)
PHANTOM_CUDNN_LACKS(cudnnGetRNNWeightParams)
PHANTOM_CUDNN_LACKS(cudnnGetRNNWeightSpaceSize)
PHANTOM_CUDNN_LACKS(cudnnPoolingForward)
PHANTOM_CUDNN_LACKS(cudnnRNNBackwardData_v8)
PHANTOM_CUDNN_LACKS(cudnnRNNBackwardWeights_v8)
PHANTOM_CUDNN_LACKS(cudnnRNNForward)
PHANTOM_CUDNN_LACKS(cudnnRestoreDropoutDescriptor)
PHANTOM_CUDNN_LACKS(cudnnSetDropoutDescriptor)
PHANTOM_CUDNN_LACKS(cudnnSpatialTfGridGeneratorBackward)
PHANTOM_CUDNN_LACKS(cudnnSpatialTfGridGeneratorForward)
PHANTOM_CUDNN_LACKS(cudnnSpatialTfSamplerBackward)
PHANTOM_CUDNN_LACKS(cudnnSpatialTfSamplerForward)
