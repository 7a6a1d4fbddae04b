# CUDA's headers out of the wheels that a CUDA torch brings, completed by nvidia-cuda-crt and nvidia-cuda-cccl. No nvcc.
# SWEEP_CUDA_HEADERS: the site-packages folder that holds them. Gives: SWEEP_HAVE_CUDA, SWEEP_CUDA_INCLUDES, SWEEP_CUDNN_INCLUDE.
set(SWEEP_HAVE_CUDA OFF)
set(cuda_home ${SWEEP_CUDA_HEADERS}/nvidia/cu13)
if(EXISTS ${cuda_home}/include/cuda_runtime.h AND EXISTS ${cuda_home}/include/crt/host_config.h)
  set(SWEEP_HAVE_CUDA ON)
  set(SWEEP_CUDA_INCLUDES ${cuda_home}/include ${cuda_home}/include/cccl ${SWEEP_CUDA_HEADERS}/nvidia/nccl/include)
  set(SWEEP_CUDNN_INCLUDE ${SWEEP_CUDA_HEADERS}/nvidia/cudnn/include)
endif()
