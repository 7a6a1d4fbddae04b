// Products on fp8 units: both factors are rounded to eight bits with one scale a tensor, found anew for each
// product, and the sum is taken in fp32. e4m3 for values and activations, e5m2 for gradients (Micikevicius et
// al. 2022, arXiv 2209.05433). Scales are powers of two, so that dividing by them loses nothing. Private to
// this room.
//
// REQUIRES: the sizes of both factors are multiples of 16 (on CUDA; no other device has such units, and on
// CPU the library computes the same slowly, for tests).
#pragma once
#include <ATen/core/Tensor.h>

namespace sweep::kernels {

enum class Eight { kE4m3, kE5m2 };
struct Factor {
  const at::Tensor& of;
  Eight form;
};

// out = a @ b (+ out when add).
void fp8_product(const Factor& a, const Factor& b, const at::Tensor& out, bool add);

}  // namespace sweep::kernels
