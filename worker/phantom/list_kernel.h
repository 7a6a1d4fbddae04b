// ListKernel: a kernel of LibTorch that works on lists of tensors, 65,536 numbers of one for each block
// (ATen/native/cuda/MultiTensorApply.cuh of the wheel). Its name tells how many lists it reads and writes, its first
// argument the tensors' sizes. Pure.
#pragma once
#include <string>

namespace sweep::phantom {

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
