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
  std::string log;   // ptxas's words on registers and spills
  std::string ptx;   // the PTX from which ptxas made the code: for tests
};
// One kernel of SWEEP_DEVICE_KERNELS (kernels.h) for a stored type: float, double, Bf16, Fp16. Without a name: all, in both forms.
struct Kernel {
  std::string name;
  bool packed = false;
  std::string type;
  std::string entry() const { return name + (packed ? "_packed" : "_single"); }  // the name of its function
};
// The kernel for an architecture such as 90. Throws std::runtime_error with what is missing or what the compiler said.
// The library: of the wheel that `torch_lib` is a folder of. It compiles one program at a time, whatever the threads.
Compiled compile(const std::string& torch_lib, const Kernel&, int architecture);

// The same code kept in a folder by a hash of source, options and compiler: later processes read it.
// `folder` empty: nothing is kept. A folder that cannot be written is no error.
std::string compiled(const std::string& torch_lib, const Kernel&, int architecture,
                     const std::string& folder);

}  // namespace sweep::nvrtc
