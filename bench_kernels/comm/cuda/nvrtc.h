// Compiles the fused kernels (bench_kernels/kernels/device) by the NVRTC of LibTorch's wheel. It needs no GPU.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace sweep::nvrtc {

struct Source {
  std::string_view name, text;
};
std::span<const Source> sources();  // the files of bench_kernels/kernels/device, by their names without .h

struct Compiled {
  std::string code;  // a cubin, or PTX where NVRTC does not know the device's architecture
  std::string log;  // what ptxas says: registers and spills of each kernel; empty when it came from the cache
};
// The kernels for a stored type of kernels.h (float, double, Bf16, Fp16) and an architecture such as 90.
// Throws std::runtime_error with what is missing or what the compiler said. The library: of the wheel that
// `torch_lib` is a folder of.
Compiled compile(const std::string& torch_lib, const std::string& type, int architecture);

// The same code kept in a folder by a hash of source, options and compiler: later processes read it.
// `folder` empty: nothing is kept. A folder that cannot be written is no error.
std::string compiled(const std::string& torch_lib, const std::string& type, int architecture,
                     const std::string& folder);

}  // namespace sweep::nvrtc
