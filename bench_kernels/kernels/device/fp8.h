// Rounding of a tensor to eight bits with one scale, for products on fp8 units (Micikevicius et al. 2022, arXiv
// 2209.05433): first the largest magnitude of each block's rows, then the values, as they lie or transposed.
#pragma once
#include "bench_kernels/kernels/device/eight_bit.h"

namespace sweep::device {

// The code of the value next to x, ties to even; a NaN stays one. The format has a sign, kMantissa bits of mantissa,
// and the bias kBias of its exponent. REQUIRES: no magnitude above the format's largest.
template <int kMantissa, int kBias>
__device__ inline unsigned char eight_bits_of(float x) {
  const unsigned sign = (__float_as_uint(x) >> 24) & 0x80u;
  unsigned magnitude = __float_as_uint(x) & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<unsigned char>(sign | 0x7fu);
  if (magnitude < static_cast<unsigned>(128 - kBias)
                      << 23) {  // a subnormal: the sum has the format's last bit
    const unsigned grid = static_cast<unsigned>(151 - kBias - kMantissa) << 23;
    const float sum = __uint_as_float(magnitude) + __uint_as_float(grid);
    return static_cast<unsigned char>(sign | (__float_as_uint(sum) - grid));
  }
  magnitude += (1u << (22 - kMantissa)) - 1 + ((magnitude >> (23 - kMantissa)) & 1u);
  const unsigned code = (magnitude >> (23 - kMantissa)) - (static_cast<unsigned>(127 - kBias) << kMantissa);
  return static_cast<unsigned char>(sign | code);
}

// The least power of two s with most / s <= largest.
__device__ inline float power_of_two(float most, float largest) {
  const unsigned ratio = __float_as_uint((most > kLeastLargest ? most : kLeastLargest) / largest);
  const unsigned exponent = ratio >> 23;
  return __uint_as_float(((ratio & 0x7fffffu) != 0 && exponent < 255 ? exponent + 1 : exponent) << 23);
}

// room: kWarp elements.
template <class T, int K>
__device__ inline void largest_magnitude(const LargestArgs& args, Wide<T>* room) {
  using A = Wide<T>;
  A most = 0;
  for (Index row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const T* in = static_cast<const T*>(args.in) + row * args.stride;
    over_columns<K>(args.n, [&](Index c, auto size) {
      constexpr int kSize = decltype(size)::value;
      A x[kSize];
      load<kSize>(in + c, x);
      for (int k = 0; k < kSize; ++k) {
        const A magnitude = x[k] < 0 ? -x[k] : x[k];
        most = magnitude > most ? magnitude : most;
      }
    });
  }
  most = block_most(most, room);
  if (threadIdx.x == 0) static_cast<float*>(args.largest)[blockIdx.x] = static_cast<float>(most);
}

// Codes of numbers that are divided by the scale.
struct EightBits {
  float scale;
  bool wide;  // e5m2, else e4m3
  template <class A>
  __device__ unsigned char operator()(A x) const {
    const float scaled = static_cast<float>(x / static_cast<A>(scale));
    return wide ? eight_bits_of<2, 15>(scaled) : eight_bits_of<3, 7>(scaled);
  }
};

template <class T, int K>
__device__ inline void round_rows(const RoundArgs& args, const EightBits& code) {
  for (Index row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const T* in = static_cast<const T*>(args.in) + row * args.stride;
    unsigned char* out = static_cast<unsigned char*>(args.out) + row * args.n;
    over_columns<K>(args.n, [&](Index c, auto size) {
      constexpr int kSize = decltype(size)::value;
      Wide<T> x[kSize];
      load<kSize>(in + c, x);
      Pack<unsigned char, kSize> codes;
      for (int k = 0; k < kSize; ++k) codes.v[k] = code(x[k]);
      *reinterpret_cast<Pack<unsigned char, kSize>*>(out + c) = codes;
    });
  }
}

// A tile at a time, so that rows are read and columns written in runs. tile: kTile rows of kTile + 1 bytes.
template <class T>
__device__ inline void round_transposed(const RoundArgs& args, const EightBits& code, unsigned char* tile) {
  const Index across = (args.n + kTile - 1) / kTile, tiles = (args.rows + kTile - 1) / kTile * across;
  const Index lane = threadIdx.x % kTile, first = threadIdx.x / kTile, step = blockDim.x / kTile;
  for (Index at = blockIdx.x; at < tiles; at += gridDim.x) {
    const Index row = at / across * kTile, column = at % across * kTile;
    for (Index r = first; r < kTile && row + r < args.rows; r += step)
      if (column + lane < args.n)
        tile[r * (kTile + 1) + lane] =
            code(widen(static_cast<const T*>(args.in)[(row + r) * args.stride + column + lane]));
    __syncthreads();
    for (Index c = first; c < kTile && column + c < args.n; c += step)
      if (row + lane < args.rows)
        static_cast<unsigned char*>(args.out)[(column + c) * args.rows + row + lane] =
            tile[lane * (kTile + 1) + c];
    __syncthreads();  // before the tile is filled again
  }
}

// room: kWarp elements, and a tile where the values are transposed.
// REQUIRES: then a multiple of kTile threads.
template <class T, int K>
__device__ inline void round_to_eight(const RoundArgs& args, Wide<T>* room) {
  const float* parts = static_cast<const float*>(args.largest);
  Wide<T> most = 0;
  for (Index i = threadIdx.x; i < args.parts; i += blockDim.x) {
    const Wide<T> part = parts[i];
    most = part > most ? part : most;
  }
  const float scale =
      power_of_two(static_cast<float>(block_most(most, room)), args.wide != 0 ? kLargestE5m2 : kLargestE4m3);
  if (blockIdx.x == 0 && threadIdx.x == 0) *static_cast<float*>(args.scale) = scale;
  const EightBits code{scale, args.wide != 0};
  if (args.transposed != 0)
    round_transposed<T>(args, code, reinterpret_cast<unsigned char*>(room + kWarp));
  else
    round_rows<T, K>(args, code);
}

}  // namespace sweep::device
