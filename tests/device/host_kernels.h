// The fused kernels of a device as the host's compiler makes them (cuda_shim.h): run one by its name.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/support/cuda_shim.h"
// The kernels come after the words that they are written in.
#include "bench_kernels/kernels/device/kernels.h"

namespace host_kernels {

struct Shape {
  unsigned blocks, threads;
  std::size_t shared;
};

template <class T, int K>
bool run_as(std::string_view name, const Shape& shape, const void* given) {
  using namespace sweep::device;
#define SWEEP_HOST_KERNEL(kernel, Args, body)                                        \
  if (name == #kernel) {                                                             \
    const Args args = *static_cast<const Args*>(given);                              \
    shim::launch(shape.blocks, shape.threads, shape.shared, [&](std::byte* shared) { \
      [[maybe_unused]] auto* room = reinterpret_cast<Wide<T>*>(shared);              \
      body;                                                                          \
    });                                                                              \
    return true;                                                                     \
  }
  SWEEP_DEVICE_KERNELS(SWEEP_HOST_KERNEL)
#undef SWEEP_HOST_KERNEL
  return false;
}

template <class T>
void run(std::string_view name, bool packed, const Shape& shape, const void* args) {
  if (packed ? run_as<T, 16 / static_cast<int>(sizeof(T))>(name, shape, args)
             : run_as<T, 1>(name, shape, args))
    return;
  std::fprintf(stderr, "no kernel is called %s\n", std::string(name).c_str());
  std::abort();
}

}  // namespace host_kernels
