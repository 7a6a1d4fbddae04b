// Kernels of LibTorch that a phantom knows by name: the grouped product's, and those that work on lists of tensors. Pure.
#pragma once
#include <string>

namespace sweep::phantom {

// GroupedKernel: the two kernels of LibTorch's grouped product (at::_grouped_mm). The first writes each group's
// sizes on the device, and its arguments tell those of all groups together; the second multiplies, and its
// arguments are addresses. Pure.
enum class GroupedKernel { kNone, kSizes, kProduct };
GroupedKernel grouped_kernel(const char* mangled);

struct GroupedSizes {
  double m = 0, n = 0, k = 0;  // sizes of all groups together, which split the rows (or summands)
};
// REQUIRES: the arguments of a kernel that is kSizes (ATen/native/cuda/GroupMMCommon.cuh of the wheel).
GroupedSizes grouped_sizes(void* const* arguments);
// Whether the factors of a kernel that is kSizes are of fp8; else they are of bf16.
bool groups_fp8(const char* mangled);

// ListKernel: a kernel of LibTorch that works on lists of tensors, 65,536 numbers of one for each block
// (ATen/native/cuda/MultiTensorApply.cuh of the wheel). Its name tells how many lists it reads and writes, its first
// argument the tensors' sizes. Pure.
struct ListKernel {
  int lists = 0;        // 0: it is none of these
  double passes = 0;    // lists read and lists written
  double width = 0;     // bytes of a number
  bool counts = false;  // a fused optimizer: a table of step counts comes after the sizes

  static ListKernel named(const std::string& mangled);
  // Bytes that it moves. REQUIRES: lists > 0; the kernel's first argument, and its blocks.
  double bytes(const void* tensors, unsigned blocks) const;
};

}  // namespace sweep::phantom
