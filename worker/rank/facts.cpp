#include "worker/rank/facts.h"

#include <torch/headeronly/version.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "schema/codec.h"
#include "schema/version.h"

namespace sweep::rank {

std::string facts() {
  std::error_code ec;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ec);
  const bool plugin = !ec && std::filesystem::exists(self.parent_path() / "libsweep_cuda.so", ec);
  nlohmann::json archs = nlohmann::json::array();
  std::string arch;
  for (const char c : std::string(SWEEP_TORCH_ARCHS) + " ") {
    if (c != ' ')
      arch += c;
    else if (!arch.empty())
      archs.push_back(std::exchange(arch, ""));
  }
  return dump({{"version", kVersion},
               {"build", kBuild},
               {"libtorch", TORCH_VERSION},
               {"cuda", SWEEP_TORCH_CUDA},
               {"archs", archs},
               {"gpu_plugin", plugin}});
}

}  // namespace sweep::rank
