# LibTorch out of the PyPI wheel, without find_package(Torch) (which wants nvcc and drags libtorch_cuda into every program).
# Gives: sweep_torch (CPU libraries only) and, where the CUDA headers are found, sweep_torch_cuda for the GPU plug-in.
if(NOT SWEEP_TORCH)
  file(GLOB candidates ${PROJECT_SOURCE_DIR}/build/venv/lib/python3*/site-packages/torch)
  list(GET candidates 0 SWEEP_TORCH_DIR)
else()
  set(SWEEP_TORCH_DIR ${SWEEP_TORCH})
endif()
if(NOT EXISTS "${SWEEP_TORCH_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "LibTorch not found in '${SWEEP_TORCH_DIR}'. Run scripts/setup, name a torch folder with "
    "-DSWEEP_TORCH=DIR, or build the torch-free half alone with -DSWEEP_WITH_RANK=OFF.")
endif()
if(EXISTS "${SWEEP_TORCH_DIR}/version.py")
  file(STRINGS "${SWEEP_TORCH_DIR}/version.py" version_line REGEX "^__version__")
  if(NOT version_line MATCHES "'2\\.11\\.")
    message(FATAL_ERROR "LibTorch 2.11 is needed; '${SWEEP_TORCH_DIR}' says: ${version_line}")
  endif()
  file(STRINGS "${SWEEP_TORCH_DIR}/version.py" cuda_line REGEX "^cuda")
  string(REGEX MATCH "[0-9]+\\.[0-9]+" SWEEP_TORCH_CUDA "${cuda_line}")
endif()
# GPU code in the wheel (cuobjdump of libtorch_cuda.so 2.11.0+cu130): no Volta.
set(SWEEP_TORCH_ARCHS "7.5 8.0 8.6 9.0 10.0 12.0")

add_library(sweep_torch INTERFACE)
target_include_directories(sweep_torch SYSTEM INTERFACE
  ${SWEEP_TORCH_DIR}/include ${SWEEP_TORCH_DIR}/include/torch/csrc/api/include)
target_compile_definitions(sweep_torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
target_link_libraries(sweep_torch INTERFACE ${SWEEP_TORCH_DIR}/lib/libtorch_cpu.so ${SWEEP_TORCH_DIR}/lib/libc10.so)
if(NOT SWEEP_PACKAGE)
  target_link_options(sweep_torch INTERFACE -Wl,-rpath,${SWEEP_TORCH_DIR}/lib)
endif()

get_filename_component(SWEEP_CUDA_HEADERS ${SWEEP_TORCH_DIR} DIRECTORY)
include(cmake/Cuda.cmake)
if(SWEEP_HAVE_CUDA)
  add_library(sweep_torch_cuda INTERFACE)
  target_include_directories(sweep_torch_cuda SYSTEM INTERFACE ${SWEEP_CUDA_INCLUDES})
  target_compile_definitions(sweep_torch_cuda INTERFACE USE_C10D_NCCL)
  target_link_libraries(sweep_torch_cuda INTERFACE sweep_torch ${SWEEP_TORCH_DIR}/lib/libtorch_cuda.so
    ${SWEEP_TORCH_DIR}/lib/libc10_cuda.so ${SWEEP_CUDA_HEADERS}/nvidia/cu13/lib/libcudart.so.13)
else()
  message(WARNING "CUDA headers not found beside LibTorch: the GPU plug-in is not built.")
endif()
