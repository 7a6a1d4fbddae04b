#include "bench_kernels/kernels/nf4.h"

#include <ATen/ATen.h>

#include <array>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/device/args.h"
#include "bench_kernels/kernels/dispatch.h"
#include "bench_kernels/kernels/eight_bit.h"

namespace sweep::kernels {
namespace {

namespace d = sweep::device;

// Quantiles of the normal distribution, scaled to [-1, 1]: the table of the paper's appendix E.
constexpr std::array<float, d::kNf4Values> kNormalFloat = {-1.0F,
                                                           -0.6961928009986877F,
                                                           -0.5250730514526367F,
                                                           -0.39491748809814453F,
                                                           -0.28444138169288635F,
                                                           -0.18477343022823334F,
                                                           -0.09105003625154495F,
                                                           0.0F,
                                                           0.07958029955625534F,
                                                           0.16093020141124725F,
                                                           0.24611230194568634F,
                                                           0.33791524171829224F,
                                                           0.44070982933044434F,
                                                           0.5626170039176941F,
                                                           0.7229568362236023F,
                                                           1.0F};

// The place of the nearest of ascending values, each block of numbers divided by its largest magnitude.
at::Tensor nearest(const at::Tensor& blocks, const at::Tensor& largest, const at::Tensor& values) {
  const std::int64_t n = values.size(0);
  const at::Tensor between = values.narrow(0, 0, n - 1).add(values.narrow(0, 1, n - 1)).div_(2);
  const at::Tensor scaled = blocks.mul(largest.clamp_min(1e-38).reciprocal_().unsqueeze(1)).clamp_(-1, 1);
  return at::bucketize(scaled, between, /*out_int32=*/true).to(at::kByte);
}

template <class T>
void dequantize_run(const Nf4& q, const Nf4Run& run, const float* maps, T* out) {
  const auto *codes = data<std::uint8_t>(q.codes), *scale_codes = data<std::uint8_t>(q.scale_codes);
  const float *scales = data<float>(q.scales), *values = maps + d::kEightBitValues;
  const float offset = *data<float>(q.offset);
  over_rows(run.rows * run.blocks, d::kNf4Block, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i / run.blocks, column = i % run.blocks;
      const std::int64_t block = run.part + row * run.part_stride + column;
      const std::int64_t whole = run.whole + row * run.whole_stride + column;
      const float largest = maps[scale_codes[block]] * scales[whole / d::kNf4ScaleBlock] + offset;
      T means[d::kNf4Values];
      for (int code = 0; code < d::kNf4Values; ++code) means[code] = static_cast<T>(values[code] * largest);
      const std::uint8_t* from = codes + block * d::kNf4Block / 2;
      T* to = out + block * d::kNf4Block;
      for (int pair = 0; pair < d::kNf4Block / 2; ++pair)
        to[2 * pair] = means[from[pair] >> 4], to[2 * pair + 1] = means[from[pair] & 15];
    }
  });
}

}  // namespace

at::Tensor nf4_maps(const at::TensorOptions& like) {
  at::Tensor maps = at::empty({d::kEightBitValues + d::kNf4Values}, like.dtype(at::kFloat));
  if (maps.is_meta()) return maps;
  std::array<float, 256> dynamic = dynamic_map(true);
  std::array<float, d::kNf4Values> normal = kNormalFloat;
  const memory::ScratchScope scratch;
  maps.narrow(0, 0, d::kEightBitValues)
      .copy_(at::from_blob(dynamic.data(), {d::kEightBitValues}, at::kFloat));
  maps.narrow(0, d::kEightBitValues, d::kNf4Values)
      .copy_(at::from_blob(normal.data(), {d::kNf4Values}, at::kFloat));
  return maps;
}

void nf4_dequantize(const Nf4& q, const at::Tensor& maps, const at::Tensor& out) {
  if (out.is_meta()) return;
  for (const Nf4Run& run : q.runs) {
    if (out.is_cuda() || path() == Path::kDevice) {
      device::nf4_dequantize(q, run, maps, out);
      continue;
    }
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, out.scalar_type(), "nf4_dequantize", [&] {
      dequantize_run<scalar_t>(q, run, data<float>(maps), data<scalar_t>(out));
    });
  }
}

void nf4_quantize(const at::Tensor& weights, const at::Tensor& maps, const at::Tensor& codes,
                  const at::Tensor& largest) {
  if (weights.is_meta()) return;
  const memory::ScratchScope scratch;
  const at::Tensor blocks = weights.to(at::kFloat).view({-1, d::kNf4Block});
  at::Tensor most = largest;
  most.copy_(blocks.abs().amax(1));
  const at::Tensor code =
      nearest(blocks, largest, maps.narrow(0, d::kEightBitValues, d::kNf4Values)).view({-1, 2});
  at::Tensor(codes).copy_(code.select(1, 0).bitwise_left_shift(4).bitwise_or_(code.select(1, 1)));
}

void nf4_quantize_scales(const at::Tensor& largest, const at::Tensor& maps, const at::Tensor& codes,
                         const at::Tensor& scales, const at::Tensor& offset) {
  if (largest.is_meta()) return;
  const memory::ScratchScope scratch;
  at::Tensor mean = offset, most = scales;
  mean.copy_(largest.mean());
  const std::int64_t n = largest.size(0), padding = scales.size(0) * d::kNf4ScaleBlock - n;
  const at::Tensor blocks = at::constant_pad_nd(largest - offset, {0, padding}).view({-1, d::kNf4ScaleBlock});
  most.copy_(blocks.abs().amax(1));
  const at::Tensor code = nearest(blocks, scales, maps.narrow(0, 0, d::kEightBitValues));
  at::Tensor(codes).copy_(code.view({-1}).narrow(0, 0, n));
}

}  // namespace sweep::kernels
