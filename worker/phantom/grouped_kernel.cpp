#include <array>
#include <cstdint>
#include <cstring>

#include "worker/phantom/library_kernels.h"

namespace sweep::phantom {

GroupedKernel grouped_kernel(const char* mangled) {
  if (std::strstr(mangled, "prepare_grouped_gemm_data") != nullptr) return GroupedKernel::kSizes;
  const bool multiplies = std::strstr(mangled, "cutlass13device_kernel") != nullptr &&
                          std::strstr(mangled, "GroupProblemShape") != nullptr;
  return multiplies ? GroupedKernel::kProduct : GroupedKernel::kNone;
}

bool groups_fp8(const char* mangled) {
  return std::strstr(mangled, "prepare_grouped_gemm_dataIN7cutlass12float_e4m3_tE") != nullptr;
}

// The size that differs from group to group is -1; the matrices' shapes tell what it is of all.
GroupedSizes grouped_sizes(void* const* arguments) {
  constexpr int kFirstSize = 15, kShapes = 21;
  std::int32_t sizes[3];
  for (int i = 0; i < 3; ++i) std::memcpy(&sizes[i], arguments[kFirstSize + i], sizeof sizes[i]);
  std::array<std::int64_t, 3> left{}, right{};
  std::memcpy(left.data(), arguments[kShapes], sizeof left);
  std::memcpy(right.data(), arguments[kShapes + 1], sizeof right);
  const auto known = [](std::int32_t size, std::int64_t whole) {
    return static_cast<double>(size < 0 ? whole : size);
  };
  return {known(sizes[0], left[0]), known(sizes[1], right[1]), known(sizes[2], left[1])};
}

}  // namespace sweep::phantom
