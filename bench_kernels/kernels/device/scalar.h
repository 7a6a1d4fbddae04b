// Parts of the fused kernels of a device: stored types and their accumulation types, packs that move
// 16 bytes at once, the columns of a thread, sums over a block. One source for two compilers: NVRTC for a
// GPU, and the host's for tests, where a shim gives threadIdx, __syncthreads and the like a meaning
// (tests/support/cuda_shim.h).
#pragma once
#include "bench_kernels/kernels/device/args.h"

namespace sweep::device {

struct Bf16 {
  unsigned short bits;
};
struct Fp16 {
  unsigned short bits;
};

template <class T>
struct WideType {
  using Type = float;
};
template <>
struct WideType<double> {
  using Type = double;
};
template <class T>
using Wide = typename WideType<T>::Type;

__device__ inline float widen(float x) {
  return x;
}
__device__ inline double widen(double x) {
  return x;
}
__device__ inline float widen(Bf16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}
__device__ inline void narrow(float x, float& to) {
  to = x;
}
__device__ inline void narrow(double x, double& to) {
  to = x;
}
// Rounds to the nearest, ties to even; a NaN stays one.
__device__ inline void narrow(float x, Bf16& to) {
  const unsigned bits = __float_as_uint(x);
  const unsigned rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  to.bits = static_cast<unsigned short>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
}
#ifdef __CUDACC__
__device__ inline float widen(Fp16 x) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
}
__device__ inline void narrow(float x, Fp16& to) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(x));
}
#else
__device__ inline float widen(Fp16 x) {
  return static_cast<float>(shim::bits_to<_Float16>(x.bits));
}
__device__ inline void narrow(float x, Fp16& to) {
  to.bits = shim::bits_to<unsigned short>(static_cast<_Float16>(x));
}
#endif

// K elements that are read or written at once.
template <class T, int K>
struct alignas(sizeof(T) * K) Pack {
  T v[K];
};
template <int K, class T>
__device__ inline void load(const T* from, Wide<T> (&to)[K]) {
  const Pack<T, K> pack = *reinterpret_cast<const Pack<T, K>*>(from);
  for (int k = 0; k < K; ++k) to[k] = widen(pack.v[k]);
}
template <int K, class T>
__device__ inline void store(const Wide<T> (&from)[K], T* to) {
  Pack<T, K> pack;
  for (int k = 0; k < K; ++k) narrow(from[k], pack.v[k]);
  *reinterpret_cast<Pack<T, K>*>(to) = pack;
}
// K numbers of fp32 or fp64, at most 16 bytes a load.
template <int K, class F, class A>
__device__ inline void load_packs(const F* from, A (&to)[K]) {
  constexpr int kPack = 16 / static_cast<int>(sizeof(F)), kOnce = K < kPack ? K : kPack;
  for (int first = 0; first < K; first += kOnce) {
    F part[kOnce];
    load<kOnce>(from + first, part);
    for (int k = 0; k < kOnce; ++k) to[first + k] = part[k];
  }
}

// The same place, but the compiler no longer knows how it was computed: for sm_80 and sm_90 it else splits stores of packs.
__device__ inline Index opaque(Index place) {
#ifdef __CUDACC__
  asm("" : "+l"(place));
#endif
  return place;
}

template <int K>
struct Size {
  static constexpr int value = K;
};
// f(column, Size) for the columns of n that are this thread's, the same at each call: packs of K, then
// the few behind the last whole pack one by one.
template <int K, class F>
__device__ inline void over_columns(Index n, const F& f) {
  const Index whole = n - n % K;
#ifdef __CUDACC__
#pragma unroll 1  // else the norms' backward spills
#endif
  for (Index c = static_cast<Index>(threadIdx.x) * K; c < whole; c += static_cast<Index>(blockDim.x) * K)
    f(c, Size<K>());
  if constexpr (K > 1)
    for (Index c = whole + threadIdx.x; c < n; c += blockDim.x) f(c, Size<1>());
}

// The sum, and the largest, over the threads of a warp, for all of them.
template <class A>
__device__ inline A warp_sum(A x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  return x;
}
template <class A>
__device__ inline A warp_most(A x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const A other = __shfl_xor_sync(~0u, x, offset);
    x = other > x ? other : x;
  }
  return x;
}

// The sum over the block's threads, for all of them. room: one element for each warp.
template <class A>
__device__ inline A block_sum(A x, A* room) {
  x = warp_sum(x);
  if (threadIdx.x % kWarp == 0) room[threadIdx.x / kWarp] = x;
  __syncthreads();
  A sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / kWarp; ++warp) sum += room[warp];
  __syncthreads();  // before the room is used again
  return sum;
}

}  // namespace sweep::device
