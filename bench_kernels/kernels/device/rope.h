// Rotary positions ("rotate half"): forward in place on the rows of q, k and v; backward from the gradients
// of q, k and v, each where it is, to one row of all three.
#pragma once
#include "bench_kernels/kernels/device/scalar.h"

namespace sweep::device {

// The place where the vector of a row's head is read.
template <class T>
__device__ inline const T* head_of(const RopeArgs& args, Index row, int head) {
  if (head < args.heads) return static_cast<const T*>(args.q) + row * args.q_stride + head * args.head_dim;
  head -= args.heads;
  if (head < args.kv_heads) return static_cast<const T*>(args.k) + row * args.k_stride + head * args.head_dim;
  head -= args.kv_heads;
  return static_cast<const T*>(args.v) + row * args.v_stride + head * args.head_dim;
}

// REQUIRES: K divides half of head_dim.
template <class T, int K>
__device__ inline void rotate(const RopeArgs& args) {
  using A = Wide<T>;
  const int half = args.head_dim / 2, packs = half / K;
  const int turning = args.cos == nullptr ? 0 : args.heads + args.kv_heads;
  const int pieces = (args.heads + args.kv_heads + args.v_heads) * packs;
  const A sign = static_cast<A>(args.sign);
  for (Index row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const Index angles = row % args.seq * half;
    for (int piece = static_cast<int>(threadIdx.x); piece < pieces; piece += static_cast<int>(blockDim.x)) {
      const int head = piece / packs, c = piece % packs * K;
      const T* from = head_of<T>(args, row, head) + c;
      T* to = static_cast<T*>(args.out) + opaque(row * args.out_stride + head * args.head_dim + c);
      A a[K], b[K];
      load<K>(from, a);
      load<K>(from + half, b);
      if (head < turning) {
        A cosines[K], sines[K];
        load_packs<K>(static_cast<const A*>(args.cos) + angles + c, cosines);
        load_packs<K>(static_cast<const A*>(args.sin) + angles + c, sines);
        for (int k = 0; k < K; ++k) {
          const A x = a[k], y = b[k], cosine = cosines[k], sine = sign * sines[k];
          a[k] = x * cosine - y * sine;
          b[k] = y * cosine + x * sine;
        }
      }
      store<K>(a, to);
      store<K>(b, to + half);
    }
  }
}

}  // namespace sweep::device
