# What the wheels hold (pyproject.toml: sweep-bench; python/rank/pyproject.toml: sweep-bench-rank). Both fill one folder,
# so that `sweep` finds its companions beside itself; python/sweep_bench/_programs.py puts them on the PATH.
set(package sweep_bench)
if(SWEEP_WITH_RANK)
  install(TARGETS sweep-rank RUNTIME DESTINATION ${package}/bin COMPONENT wheel)
  if(TARGET sweep_cuda)
    install(TARGETS sweep_cuda LIBRARY DESTINATION ${package}/bin COMPONENT wheel)
  endif()
  return()
endif()
install(TARGETS sweep sweep-agent RUNTIME DESTINATION ${package}/bin COMPONENT wheel)
install(FILES ${PROJECT_SOURCE_DIR}/python/sweep_trial.py DESTINATION . COMPONENT wheel)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/schema/json/ DESTINATION ${package}/schema COMPONENT wheel)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/sweeps/ DESTINATION ${package}/sweeps COMPONENT wheel FILES_MATCHING PATTERN "*.yaml")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/orchestrator/interop/ DESTINATION ${package}/recipes COMPONENT wheel
  FILES_MATCHING PATTERN "recipe.yaml")
if(SWEEP_HAVE_CUDA)
  install(TARGETS sweep_phantom sweep_phantom_cuda sweep_phantom_nvidia-ml LIBRARY DESTINATION ${package}/phantom
    COMPONENT wheel NAMELINK_SKIP)
else()
  message(STATUS "CUDA headers not found (SWEEP_CUDA_HEADERS): this wheel has no phantom GPUs")
endif()
