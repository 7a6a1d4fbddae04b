#include "bench_kernels/comm/cuda_plugin.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace sweep::comm {
namespace {

const CudaPlugin* load() {
  // SWEEP_PHANTOM: phantom GPUs answer here (docs/phantom.md); they have no device file.
  if (access("/dev/nvidiactl", F_OK) != 0 && std::getenv("SWEEP_PHANTOM") == nullptr) return nullptr;
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libsweep_cuda.so";
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  TORCH_CHECK_NOT_IMPLEMENTED(
      module != nullptr, "this machine has a GPU, but its plug-in cannot be loaded: ", dlerror(),
      ". Build sweep-rank with the CUDA headers beside LibTorch, or use hardware: cpu.");
  using Entry = const CudaPlugin* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(module, "sweep_cuda_plugin"));
  TORCH_CHECK_NOT_IMPLEMENTED(entry != nullptr && entry()->version == CudaPlugin::kVersion, path.string(),
                              " is of another build than this program");
  kernels::device::set_launcher(entry()->launch);
  return entry();
}

}  // namespace

const CudaPlugin* cuda_plugin() {
  static const CudaPlugin* plugin = load();
  return plugin;
}

BackendPtr make_nccl(const GroupOptions& options) {
  const CudaPlugin* plugin = cuda_plugin();
  TORCH_CHECK_NOT_IMPLEMENTED(plugin != nullptr && plugin->device_count() > 0,
                              "backend nccl needs a GPU; this machine has none");
  return plugin->make_nccl(options);
}

}  // namespace sweep::comm
