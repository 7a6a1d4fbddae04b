// AdamW with moments in eight bits, block by block (Dettmers et al. 2021, arXiv 2110.02861): one loop on a processor,
// one kernel on a GPU, without temporaries on both. A moment is a code: the nearest of 256 values, of which more
// stand near zero (the dynamic map), times the largest magnitude of its block of 256 numbers.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>

#include "bench_kernels/kernels/adamw.h"

namespace sweep::kernels {

// The values that the codes stand for, ascending, as bitsandbytes makes them: from -1 to 1 for the mean (`with_sign`),
// from 0 to 1 for the square.
std::array<float, 256> dynamic_map(bool with_sign);
// Both on a device: [2, 256], fp32.
at::Tensor dynamic_maps(const at::TensorOptions&);

// One parameter tensor of n elements; its gradient is of its type.
struct EightBitAdamW {
  at::Tensor parameter, grad;
  at::Tensor mean, square;  // fp32: of each block the largest magnitude, or without codes the moments
  at::Tensor mean_codes, square_codes;  // uint8 [n]; undefined: moments are not quantized
  at::Tensor maps;                      // dynamic_maps
  AdamwNumbers by;
};
void adamw_eight_bit(const EightBitAdamW&);

}  // namespace sweep::kernels
