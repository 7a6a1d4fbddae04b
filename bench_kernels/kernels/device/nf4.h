// Weights of a frozen base from their codes of 4 bits: each thread makes eight of a block of 64, which share the
// largest magnitude that a code of 8 bits, a scale and the tensor's offset say.
#pragma once
#include "bench_kernels/kernels/device/scalar.h"

namespace sweep::device {

// A product and a sum that stay two: each is rounded, as where two kernels compute them one after the other.
__device__ inline float product_and_sum(float a, float b, float c) {
#ifdef __CUDACC__
  return __fadd_rn(__fmul_rn(a, b), c);
#else
  return a * b + c;
#endif
}

// room: shared memory for the two maps, from codes to values.
template <class T, int K>
__device__ inline void nf4_dequantize(const Nf4Args& args, Wide<T>* room) {
  constexpr int kEight = 8, kPieces = kNf4Block / kEight, kPack = K < kEight ? K : kEight;
  auto* maps = reinterpret_cast<float*>(room);
  for (int i = static_cast<int>(threadIdx.x); i < kEightBitValues + kNf4Values;
       i += static_cast<int>(blockDim.x))
    maps[i] = static_cast<const float*>(args.maps)[i];
  __syncthreads();  // before they are read
  const float *values = maps + kEightBitValues, offset = *static_cast<const float*>(args.offset);
  const auto* codes = static_cast<const unsigned char*>(args.codes);
  const Index pieces = args.rows * args.blocks * kPieces,
              threads = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < pieces; i += threads) {
    const Index at = i / kPieces, row = at / args.blocks, column = at % args.blocks;
    const Index block = args.part + row * args.part_stride + column;
    const Index whole = args.whole + row * args.whole_stride + column;
    const float largest =
        product_and_sum(maps[static_cast<const unsigned char*>(args.scale_codes)[block]],
                        static_cast<const float*>(args.scales)[whole / kNf4ScaleBlock], offset);
    const Index first = block * kNf4Block + (i % kPieces) * kEight;
    const auto four = *reinterpret_cast<const Pack<unsigned char, kEight / 2>*>(codes + first / 2);
    for (int k = 0; k < kEight; k += kPack) {
      Wide<T> weights[kPack];
      for (int j = 0; j < kPack; ++j) {
        const int byte = four.v[(k + j) / 2];
        weights[j] = values[(k + j) % 2 == 0 ? byte >> 4 : byte & 15] * largest;
      }
      store<kPack>(weights, static_cast<T*>(args.out) + first + k);
    }
  }
}

}  // namespace sweep::device
