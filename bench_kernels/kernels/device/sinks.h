// Attention sinks after a kernel that has none (kernels/sinks.cpp): the log-sum-exp takes in the sink of its head and the
// result shrinks, one block for each row; the sinks' gradients in sums of each block's rows.
#pragma once
#include "bench_kernels/kernels/device/loss.h"

namespace sweep::device {

template <class A>
__device__ inline A& lse_of(const SinksArgs& args, Index row, Index head) {
  const Index at = row / args.seq * args.of_sequence + row % args.seq * args.of_row + head * args.of_head;
  return static_cast<A*>(args.lse)[at];
}

// room: an element for each head.
// REQUIRES: kPack divides head_dim.
template <class T, int kPack>
__device__ inline void sinks(const SinksArgs& args, Wide<T>* room) {
  using A = Wide<T>;
  constexpr int K = sizeof(T) == sizeof(double) ? 1 : kPack;  // two columns of fp64 at once would spill
  const Index n = static_cast<Index>(args.heads) * args.head_dim;
  for (Index row = blockIdx.x; row < args.rows; row += gridDim.x) {
#ifdef __CUDACC__
#pragma unroll 1  // else several exponentials of fp64 side by side would spill
#endif
    for (int head = static_cast<int>(threadIdx.x); head < args.heads; head += static_cast<int>(blockDim.x)) {
      A& lse = lse_of<A>(args, row, head);
      const A sink = widen(static_cast<const T*>(args.sinks)[head]);
      const A most = sink > lse ? sink : lse, least = sink > lse ? lse : sink;
      const A all = most + logarithm(A(1) + exponential(least - most));
      room[head] = exponential(lse - all);
      lse = all;
    }
    __syncthreads();  // before the heads' shares are read
    T* out = static_cast<T*>(args.out) + row * n;
    over_columns<K>(n, [&](Index c, auto size) {
      constexpr int kSize = decltype(size)::value;
      A v[kSize];
      load<kSize>(out + c, v);
      const A share = room[c / args.head_dim];
      for (int k = 0; k < kSize; ++k) v[k] *= share;
      store<kSize>(v, out + c);
    });
    __syncthreads();  // before the shares change
  }
}

// The sink's share of each row's attention times the product of result and gradient, over this block's rows; a thread
// has the same columns throughout. room: an element for each thread.
// REQUIRES: K divides head_dim.
template <class T, int K>
__device__ inline void sinks_backward(const SinksArgs& args, Wide<T>* room) {
  using A = Wide<T>;
  const Index n = static_cast<Index>(args.heads) * args.head_dim, step = static_cast<Index>(blockDim.x) * K;
  A* partial = static_cast<A*>(args.partial) + static_cast<Index>(blockIdx.x) * args.heads;
  for (Index first = 0; first < n; first += step) {
    const Index c = first + static_cast<Index>(threadIdx.x) * K, of = c / args.head_dim;
    A sum = 0;
    if (c < n) {
      const A sink = widen(static_cast<const T*>(args.sinks)[of]);
#ifdef __CUDACC__
#pragma unroll 1  // else several exponentials of fp64 side by side would spill
#endif
      for (Index row = blockIdx.x; row < args.rows; row += gridDim.x) {
        A grad[K], out[K], dot = 0;
        load<K>(static_cast<const T*>(args.dout) + row * n + c, grad);
        load<K>(static_cast<const T*>(args.out) + row * n + c, out);
        for (int k = 0; k < K; ++k) dot += grad[k] * out[k];
        sum -= exponential(sink - lse_of<A>(args, row, of)) * dot;
      }
    }
    room[threadIdx.x] = sum;
    __syncthreads();  // before the columns of a head are added up
    for (Index head = threadIdx.x; head < args.heads; head += blockDim.x) {
      const Index begin = head * args.head_dim, end = begin + args.head_dim, last = first + step;
      A all = first == 0 ? A(0) : partial[head];
      for (Index at = begin > first ? begin : first; at < end && at < last; at += K)
        all += room[(at - first) / K];
      partial[head] = all;
    }
    __syncthreads();  // before the columns change
  }
}

}  // namespace sweep::device
