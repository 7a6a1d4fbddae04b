#include "runtime/visible_gpus.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string_view>

namespace sweep {

int gpu_device_files(const std::filesystem::path& folder) {
  constexpr std::string_view kName = "nvidia";
  const auto is_gpu = [&](const std::string& file) {
    return file.size() > kName.size() && file.starts_with(kName) &&
           file.find_first_not_of("0123456789", kName.size()) == std::string::npos;
  };
  std::error_code ec;
  int count = 0;
  for (std::filesystem::directory_iterator file(folder, ec), end; !ec && file != end; file.increment(ec))
    if (is_gpu(file->path().filename().string())) ++count;
  return count;
}

std::vector<std::string> visible_gpus(int count) {
  std::vector<std::string> out;
  const char* listed = std::getenv("CUDA_VISIBLE_DEVICES");
  std::istringstream items(listed == nullptr ? "" : listed);
  for (std::string item; std::getline(items, item, ',') && !item.starts_with('-');)
    if (!item.empty()) out.push_back(item);
  for (int i = 0; listed == nullptr && i < count; ++i) out.push_back(std::to_string(i));
  return out;
}

}  // namespace sweep
