// Weights in 4-bit NormalFloat with double quantization (Dettmers et al. 2023, arXiv 2305.14314; shape/quantized_base.h
// has the sizes). A weight is its code's value times the largest magnitude of its block of 64. That magnitude is coded
// too: an 8-bit code (the signed dynamic map of eight_bit.h) times the scale of 256 blocks, plus the tensor's offset.
// Codes are those of bitsandbytes: the nearest value, of two as near the lower; two codes in a byte, the first in its
// upper half.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sweep::kernels {

// Blocks of a rank's part, and which of the whole tensor's they are: row r is `blocks` of them from
// part + r * part_stride on, in the whole from whole + r * whole_stride on.
struct Nf4Run {
  std::int64_t rows = 1, blocks = 0;
  std::int64_t part = 0, part_stride = 0;
  std::int64_t whole = 0, whole_stride = 0;
};

// One quantized tensor, or a rank's part of it: views of the bytes that it is kept in.
struct Nf4 {
  at::Tensor codes;        // uint8 [weights / 2]
  at::Tensor scale_codes;  // uint8 [blocks]
  at::Tensor scales;       // fp32 [blocks of the whole tensor / 256, rounded up]
  at::Tensor offset;       // fp32 [1]
  std::vector<Nf4Run> runs;
};

// The values that codes of 8 and of 4 bits stand for, fp32 [256 + 16], on a device.
at::Tensor nf4_maps(const at::TensorOptions&);

// out [weights] of the type of the computation becomes what the codes stand for.
void nf4_dequantize(const Nf4&, const at::Tensor& maps, const at::Tensor& out);

// Codes [n / 2] and largest magnitudes [n / 64], fp32, of n weights of any floating type.
// REQUIRES: n is a multiple of 64.
void nf4_quantize(const at::Tensor& weights, const at::Tensor& maps, const at::Tensor& codes,
                  const at::Tensor& largest);
// The second quantization, of the largest magnitudes of a whole tensor: its offset and scales, and the codes [blocks].
void nf4_quantize_scales(const at::Tensor& largest, const at::Tensor& maps, const at::Tensor& codes,
                         const at::Tensor& scales, const at::Tensor& offset);

}  // namespace sweep::kernels
