#include "bench_kernels/comm/cuda/nvrtc.h"

#include <cuda.h>  // its version alone
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <nvrtc.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "base/files.h"
#include "base/text.h"

namespace sweep::nvrtc {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kFolder = "bench_kernels/kernels/device/", kMain = "kernels";

// NVRTC's functions; the library is one of the wheel's, looked for beside LibTorch.
struct Nvrtc {
  decltype(&nvrtcCreateProgram) create;
  decltype(&nvrtcCompileProgram) compile;
  decltype(&nvrtcDestroyProgram) destroy;
  decltype(&nvrtcGetProgramLogSize) log_size;
  decltype(&nvrtcGetProgramLog) log;
  decltype(&nvrtcGetCUBINSize) cubin_size;
  decltype(&nvrtcGetCUBIN) cubin;
  decltype(&nvrtcGetPTXSize) ptx_size;
  decltype(&nvrtcGetPTX) ptx;
  decltype(&nvrtcGetNumSupportedArchs) count;
  decltype(&nvrtcGetSupportedArchs) architectures;
  decltype(&nvrtcVersion) version;

  explicit Nvrtc(const std::string& torch_lib) {
    void* const library = open(torch_lib);
    find(library, "nvrtcCreateProgram", create), find(library, "nvrtcCompileProgram", compile);
    find(library, "nvrtcDestroyProgram", destroy), find(library, "nvrtcGetProgramLogSize", log_size);
    find(library, "nvrtcGetProgramLog", log), find(library, "nvrtcGetCUBINSize", cubin_size);
    find(library, "nvrtcGetCUBIN", cubin), find(library, "nvrtcGetPTXSize", ptx_size);
    find(library, "nvrtcGetPTX", ptx), find(library, "nvrtcGetNumSupportedArchs", count);
    find(library, "nvrtcGetSupportedArchs", architectures), find(library, "nvrtcVersion", version);
  }

 private:
  static void* open(const std::string& torch_lib) {
    const std::string name = "libnvrtc.so." + std::to_string(CUDA_VERSION / 1000);
    std::vector<fs::path> places{fs::path(torch_lib) / name};
    std::error_code none;
    for (const auto& part : fs::directory_iterator(fs::path(torch_lib) / "../../nvidia", none))
      places.push_back(part.path() / "lib" / name);
    places.emplace_back(name);  // a toolkit of the system
    for (const fs::path& place : places)
      if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    throw std::runtime_error("the fused kernels need " + name +
                             ", which LibTorch's wheel has beside it and this one has not; install "
                             "nvidia-cuda-nvrtc");
  }
  template <class F>
  static void find(void* library, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(library, name));
    if (function == nullptr) throw std::runtime_error(std::string("this NVRTC has no ") + name);
  }
};

// One for the process: a second library of another path would be no use.
const Nvrtc& found_in(const std::string& torch_lib) {
  static const Nvrtc found(torch_lib);
  return found;
}

// The device's own code where NVRTC knows it, else PTX of the newest that is older: the driver makes the rest.
std::string architecture_option(const Nvrtc& library, int architecture) {
  int count = 0;
  library.count(&count);
  std::vector<int> known(static_cast<std::size_t>(count));
  library.architectures(known.data());
  if (std::find(known.begin(), known.end(), architecture) != known.end())
    return "--gpu-architecture=sm_" + std::to_string(architecture);
  int newest = 0;
  for (const int each : known)
    if (each < architecture) newest = std::max(newest, each);
  if (newest == 0)
    throw std::runtime_error("NVRTC makes no code for compute capability " +
                             std::to_string(architecture / 10) + "." + std::to_string(architecture % 10) +
                             "; update LibTorch");
  return "--gpu-architecture=compute_" + std::to_string(newest);
}

std::vector<std::string> options_for(const Nvrtc& library, const Kernel& kernel, int architecture) {
  const bool own = kernel.type == "float" || kernel.type == "double";
  std::vector<std::string> options{
      architecture_option(library, architecture), "-std=c++20", "-default-device", "--ptxas-options=-v",
      "-DSWEEP_DEVICE_TYPE=" + (own ? kernel.type : "sweep::device::" + kernel.type)};
  if (!kernel.name.empty())
    for (const std::string& one : {"KERNEL=" + kernel.name + "_kernel", "ENTRY=" + kernel.entry(),
                                   std::string("PACKED=") + (kernel.packed ? "1" : "0")})
      options.push_back("-DSWEEP_DEVICE_" + one);
  return options;
}

std::string key_of(const Nvrtc& library, const std::vector<std::string>& options) {
  int major = 0, minor = 0;
  library.version(&major, &minor);
  std::string all = std::to_string(major) + "." + std::to_string(minor);
  for (const std::string& option : options) all.append("\n").append(option);
  for (const Source& source : sources()) all.append("\n").append(source.name).append(source.text);
  return fmt::format("{:016x}", fnv1a(all));
}

Compiled compile_with(const Nvrtc& library, const std::vector<std::string>& options) {
  std::vector<std::string> names, texts;
  std::string main;
  for (const Source& source : sources()) {
    if (source.name == kMain) main = source.text;
    names.push_back(std::string(kFolder).append(source.name).append(".h")), texts.emplace_back(source.text);
  }
  std::vector<const char*> name_pointers, text_pointers, option_pointers;
  for (const auto& each : names) name_pointers.push_back(each.c_str());
  for (const auto& each : texts) text_pointers.push_back(each.c_str());
  for (const auto& each : options) option_pointers.push_back(each.c_str());
  nvrtcProgram program = nullptr;
  library.create(&program, main.c_str(), "kernels.cu", static_cast<int>(names.size()), text_pointers.data(),
                 name_pointers.data());
  const bool made =
      library.compile(program, static_cast<int>(options.size()), option_pointers.data()) == NVRTC_SUCCESS;
  const auto text = [&](auto size_of, auto get) {
    std::size_t size = 0;
    std::string out;
    if (size_of(program, &size) == NVRTC_SUCCESS && size > 0) out.resize(size), get(program, out.data());
    return out;
  };
  Compiled out;
  out.log = text(library.log_size, library.log);
  if (made) out.code = text(library.cubin_size, library.cubin), out.ptx = text(library.ptx_size, library.ptx);
  if (out.code.empty()) out.code = out.ptx;
  library.destroy(&program);
  if (!made) throw std::runtime_error("NVRTC does not compile a fused kernel: " + out.log);
  return out;
}

// One process of a machine compiles, while the others wait for what it keeps.
class Turn {
 public:
  explicit Turn(const fs::path& path) {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    lock_ = open((path.string() + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (lock_ >= 0) flock(lock_, LOCK_EX);
  }
  ~Turn() {
    if (lock_ >= 0) close(lock_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  int lock_ = -1;
};

}  // namespace

Compiled compile(const std::string& torch_lib, const Kernel& kernel, int architecture) {
  const Nvrtc& library = found_in(torch_lib);
  return compile_with(library, options_for(library, kernel, architecture));
}

std::string compiled(const std::string& torch_lib, const Kernel& kernel, int architecture,
                     const std::string& folder) {
  const Nvrtc& library = found_in(torch_lib);
  const auto options = options_for(library, kernel, architecture);
  const fs::path path = folder.empty() ? fs::path() : fs::path(folder) / (key_of(library, options) + ".bin");
  if (path.empty()) return compile_with(library, options).code;
  if (auto code = files::read(path)) return *code;
  const Turn turn(path);
  if (auto code = files::read(path)) return *code;
  std::string code = compile_with(library, options).code;
  (void)files::write_atomically(path, code);  // a folder that cannot be written costs the next one as much
  return code;
}

}  // namespace sweep::nvrtc
