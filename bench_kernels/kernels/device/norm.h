// RMSNorm and LayerNorm: forward in one launch, with the start of the product that follows; backward in two:
// the rows' gradients beside each block's sums for the weights, then the sums over the blocks.
#pragma once
#include "bench_kernels/kernels/device/scalar.h"

namespace sweep::device {

template <class T, int K, bool kLayer>
__device__ inline void norm(const NormArgs& args, Wide<T>* room) {
  using A = Wide<T>;
  const T *w = static_cast<const T*>(args.w), *b = static_cast<const T*>(args.b);
  const T* bias = static_cast<const T*>(args.bias);
  for (Index row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const T* x = static_cast<const T*>(args.x) + row * args.n;
    T* y = static_cast<T*>(args.y) + row * args.n;
    T* start = args.start == nullptr ? nullptr : static_cast<T*>(args.start) + row * args.n;
    const auto mean_of = [&](const auto& term) {
      A sum = 0;
      over_columns<K>(args.n, [&](Index c, auto size) {
        A v[decltype(size)::value];
        load<decltype(size)::value>(x + c, v);
        for (const A each : v) sum += term(each);
      });
      return block_sum(sum, room) / static_cast<A>(args.n);
    };
    A mean = 0;
    if constexpr (kLayer) mean = mean_of([](A v) { return v; });
    const A square = mean_of([&](A v) { return (v - mean) * (v - mean); });
    const A rstd = rsqrt(square + static_cast<A>(args.eps));
    if (threadIdx.x == 0) {
      static_cast<A*>(args.rstd)[row] = rstd;
      if constexpr (kLayer) static_cast<A*>(args.mean)[row] = mean;
    }
    over_columns<K>(args.n, [&](Index c, auto size) {
      constexpr int kSize = decltype(size)::value;
      A v[kSize], weight[kSize];
      [[maybe_unused]] A shift[kSize];
      load<kSize>(x + c, v);
      if (start != nullptr) {
        A sum[kSize] = {};
        if (bias != nullptr) load<kSize>(bias + c, sum);
        for (int k = 0; k < kSize; ++k) sum[k] += v[k];
        store<kSize>(sum, start + c);
      }
      load<kSize>(w + c, weight);
      if constexpr (kLayer) load<kSize>(b + c, shift);
      for (int k = 0; k < kSize; ++k) {
        if constexpr (!kLayer) weight[k] += static_cast<A>(args.plus);
        v[k] = (v[k] - mean) * rstd * weight[k];
        if constexpr (kLayer) v[k] += shift[k];
      }
      store<kSize>(v, y + c);
    });
  }
}

// f(place) for the sums of this thread's columns, those of the bias behind those of the weight.
template <int K, bool kLayer, class F>
__device__ inline void over_sums(Index n, const F& f) {
  over_columns<K>(n, [&](Index c, auto size) {
    for (int k = 0; k < decltype(size)::value; ++k) {
      f(c + k);
      if constexpr (kLayer) f(n + c + k);
    }
  });
}

template <class T, int K, bool kLayer>
__device__ inline void norm_backward(const NormBackwardArgs& args, Wide<T>* room) {
  using A = Wide<T>;
  const Index n = args.n, width = kLayer ? 2 * n : n;
  const T* w = static_cast<const T*>(args.w);
  A* partial = static_cast<A*>(args.partial) + blockIdx.x * width;
  A* sums = args.in_shared != 0 ? room + kWarp : partial;  // a column is one thread's throughout
  over_sums<K, kLayer>(n, [&](Index c) { sums[c] = 0; });
  for (Index row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const T *dy = static_cast<const T*>(args.dy) + row * n, *x = static_cast<const T*>(args.x) + row * n;
    const T* residual = args.residual == nullptr ? nullptr : static_cast<const T*>(args.residual) + row * n;
    T* dx = static_cast<T*>(args.dx) + row * n;
    const A rstd = static_cast<const A*>(args.rstd)[row];
    const A mean = kLayer ? static_cast<const A*>(args.mean)[row] : A(0);
    A dot = 0, sum = 0;
    over_columns<K>(n, [&](Index c, auto size) {
      constexpr int kSize = decltype(size)::value;
      A g[kSize], v[kSize], weight[kSize];
      load<kSize>(dy + c, g);
      load<kSize>(x + c, v);
      load<kSize>(w + c, weight);
      for (int k = 0; k < kSize; ++k) {
        if constexpr (!kLayer) weight[k] += static_cast<A>(args.plus);
        dot += g[k] * weight[k] * (v[k] - mean) * rstd;
        if constexpr (kLayer) sum += g[k] * weight[k];
      }
    });
    dot = block_sum(dot, room) / static_cast<A>(n);
    if constexpr (kLayer) sum = block_sum(sum, room) / static_cast<A>(n);
    over_columns<K>(n, [&](Index c, auto size) {
      constexpr int kSize = decltype(size)::value;
      A g[kSize], v[kSize], weight[kSize], add[kSize] = {};
      load<kSize>(dy + c, g);
      load<kSize>(x + c, v);
      load<kSize>(w + c, weight);
      if (residual != nullptr) load<kSize>(residual + c, add);
      for (int k = 0; k < kSize; ++k) {
        const A hat = (v[k] - mean) * rstd;
        if constexpr (!kLayer) weight[k] += static_cast<A>(args.plus);
        sums[c + k] += g[k] * hat;
        if constexpr (kLayer) sums[n + c + k] += g[k];
        v[k] = rstd * (g[k] * weight[k] - hat * dot - sum) + add[k];
      }
      store<kSize>(v, dx + c);
    });
  }
  if (args.in_shared == 0) return;
  over_sums<K, kLayer>(n, [&](Index c) { partial[c] = sums[c]; });
}

// A block: kSumColumns columns, kSumGroups threads for each. Columns from n on are those of the bias.
template <class T>
__device__ inline void sum_parts(const SumPartsArgs& args, Wide<T>* room) {
  using A = Wide<T>;
  const Index width = args.db != nullptr ? 2 * args.n : args.n;
  const Index column = static_cast<Index>(blockIdx.x) * kSumColumns + threadIdx.x % kSumColumns;
  A sum = 0;
  if (column < width)
    for (Index part = threadIdx.x / kSumColumns; part < args.parts; part += kSumGroups)
      sum += static_cast<const A*>(args.partial)[part * width + column];
  room[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x >= kSumColumns || column >= width) return;
  for (int group = 1; group < kSumGroups; ++group) sum += room[group * kSumColumns + threadIdx.x];
  const bool weight = column < args.n;
  T* to = weight ? static_cast<T*>(args.dw) + column : static_cast<T*>(args.db) + (column - args.n);
  if ((weight ? args.add_w : args.add_b) != 0) sum += widen(*to);
  narrow(sum, *to);
}

}  // namespace sweep::device
