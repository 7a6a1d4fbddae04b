// GroupedKernel: the two kernels of LibTorch's grouped product (at::_grouped_mm). The first writes each group's
// sizes on the device, and its arguments tell those of all groups together; the second multiplies, and its
// arguments are addresses. Pure.
#pragma once

namespace sweep::phantom {

enum class GroupedKernel { kNone, kSizes, kProduct };
GroupedKernel grouped_kernel(const char* mangled);

struct GroupedSizes {
  double m = 0, n = 0, k = 0;  // sizes of all groups together, which split the rows (or summands)
};
// REQUIRES: the arguments of a kernel that is kSizes (ATen/native/cuda/GroupMMCommon.cuh of the wheel).
GroupedSizes grouped_sizes(void* const* arguments);
// Whether the factors of a kernel that is kSizes are of fp8; else they are of bf16.
bool groups_fp8(const char* mangled);

}  // namespace sweep::phantom
