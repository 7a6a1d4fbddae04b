// A mixture-of-experts layer between its products: probabilities and weights of the router and their gradient, one warp
// for each token; the weighted sum of the rows that a token's experts gave, and its gradients, one block for each token; the experts' biases.
#pragma once
#include "bench_kernels/kernels/device/activation.h"

namespace sweep::device {

// f(i) for the numbers below n that are this thread's of its warp.
template <class F>
__device__ inline void over_lanes(Index n, const F& f) {
#ifdef __CUDACC__
#pragma unroll 1  // n is small, and exponentials of fp64 side by side would spill
#endif
  for (Index i = threadIdx.x % kWarp; i < n; i += kWarp) f(i);
}

// The probability of an expert for one token: a softmax over all, or a sigmoid.
template <class T>
struct Probability {
  using A = Wide<T>;
  const T* logits;
  bool sigmoid;
  A most, sum;
  // The whole warp comes here.
  __device__ Probability(const RouterArgs& args, Index row)
      : logits(static_cast<const T*>(args.logits) + row * args.experts),
        sigmoid(args.sigmoid != 0),
        most(0),
        sum(1) {
    if (sigmoid) return;
    most = widen(logits[0]), sum = 0;
    over_lanes(args.experts, [&](Index e) {
      const A x = widen(logits[e]);
      most = x > most ? x : most;
    });
    most = warp_most(most);
    over_lanes(args.experts, [&](Index e) { sum += exponential(widen(logits[e]) - most); });
    sum = warp_sum(sum);
  }
  __device__ A operator()(Index expert) const {
    const A x = widen(logits[expert]);
    const A power = exponential(sigmoid ? -x : x - most);
    return sigmoid ? A(1) / (A(1) + power) : power / sum;
  }
};

// f(token) for the tokens of this warp.
template <class F>
__device__ inline void over_tokens(Index tokens, const F& f) {
  const Index warps = static_cast<Index>(blockDim.x) / kWarp;
  for (Index row = static_cast<Index>(blockIdx.x) * warps + threadIdx.x / kWarp; row < tokens;
       row += static_cast<Index>(gridDim.x) * warps)
    f(row);
}

template <class T>
__device__ inline void route(const RouterArgs& args) {
  using A = Wide<T>;
  over_tokens(args.tokens, [&](Index row) {
    const Probability<T> probability(args, row);
    over_lanes(args.experts,
               [&](Index e) { static_cast<A*>(args.probs)[row * args.experts + e] = probability(e); });
    if (args.weights == nullptr) return;
    const Index* chosen = static_cast<const Index*>(args.chosen) + row * args.choices;
    A sum = 0;
    over_lanes(args.choices, [&](Index j) { sum += probability(chosen[j]); });
    sum = args.normalized != 0 ? warp_sum(sum) : A(1);
    over_lanes(args.choices, [&](Index j) {
      static_cast<A*>(args.weights)[row * args.choices + j] =
          static_cast<A>(args.scale) * probability(chosen[j]) / sum;
    });
  });
}

template <class T>
__device__ inline void route_backward(const RouterArgs& args) {
  using A = Wide<T>;
  const A* of_all = static_cast<const A*>(args.dprobs);
  over_tokens(args.tokens, [&](Index row) {
    const A* probs = static_cast<const A*>(args.probs) + row * args.experts;
    const Index* chosen = static_cast<const Index*>(args.chosen) + row * args.choices;
    const A *weights = static_cast<const A*>(args.weights) + row * args.choices,
            *dweights = static_cast<const A*>(args.dweights) + row * args.choices;
    A sum = 0, shared = 0;  // sums of the chosen probabilities, and of the weights x their gradients
    over_lanes(args.choices, [&](Index j) { sum += probs[chosen[j]], shared += dweights[j] * weights[j]; });
    sum = warp_sum(sum), shared = warp_sum(shared);
    if (args.normalized == 0) sum = 1, shared = 0;
    const auto gradient = [&](Index e) {
      A grad = of_all == nullptr ? A(0) : of_all[e];
      for (Index j = 0; j < args.choices; ++j)
        if (chosen[j] == e) grad += (static_cast<A>(args.scale) * dweights[j] - shared) / sum;
      return grad;
    };
    A mean = 0;
    if (args.sigmoid == 0) {
      over_lanes(args.experts, [&](Index e) { mean += gradient(e) * probs[e]; });
      mean = warp_sum(mean);
    }
    over_lanes(args.experts, [&](Index e) {
      const A slope = args.sigmoid != 0 ? A(1) - probs[e] : A(1);
      narrow((gradient(e) - mean) * probs[e] * slope, static_cast<T*>(args.dlogits)[row * args.experts + e]);
    });
  });
}

// to[t] = base[t] + sum over its choices of weight x row. A choice whose place is negative was not served.
template <class T, int K>
__device__ inline void combine(const CombineArgs& args) {
  using A = Wide<T>;
  for (Index row = blockIdx.x; row < args.tokens; row += gridDim.x) {
    const T* base = args.base == nullptr ? nullptr : static_cast<const T*>(args.base) + row * args.n;
    const Index* places = static_cast<const Index*>(args.places) + row * args.choices;
    const A* weights =
        args.weights == nullptr ? nullptr : static_cast<const A*>(args.weights) + row * args.choices;
    over_columns<K>(args.n, [&](Index c, auto size) {
      constexpr int kSize = decltype(size)::value;
      A sum[kSize] = {};
      if (base != nullptr) load<kSize>(base + c, sum);
      for (Index j = 0; j < args.choices; ++j) {
        if (places[j] < 0) continue;
        A v[kSize];
        load<kSize>(static_cast<const T*>(args.rows) + places[j] * args.n + c, v);
        const A weight = weights == nullptr ? A(1) : weights[j];
        for (int k = 0; k < kSize; ++k) sum[k] += weight * v[k];
      }
      store<kSize>(sum, static_cast<T*>(args.to) + row * args.n + c);
    });
  }
}

// dweights = dot of the token's gradient with the choice's row, which becomes weight x that gradient.
template <class T, int K>
__device__ inline void combine_backward(const CombineArgs& args, Wide<T>* room) {
  using A = Wide<T>;
  for (Index row = blockIdx.x; row < args.tokens; row += gridDim.x) {
    const T* grad = static_cast<const T*>(args.base) + row * args.n;
    for (Index choice = row * args.choices; choice < (row + 1) * args.choices; ++choice) {
      const Index place = static_cast<const Index*>(args.places)[choice];
      const A weight = static_cast<const A*>(args.weights)[choice];
      A dot = 0;
      if (place >= 0)
        over_columns<K>(args.n, [&](Index c, auto size) {
          constexpr int kSize = decltype(size)::value;
          T* at = static_cast<T*>(args.rows) + place * args.n + c;
          A g[kSize], v[kSize];
          load<kSize>(grad + c, g);
          load<kSize>(at, v);
          for (int k = 0; k < kSize; ++k) dot += g[k] * v[k], g[k] *= weight;
          store<kSize>(g, at);
        });
      dot = block_sum(dot, room);
      if (threadIdx.x == 0) static_cast<A*>(args.to)[choice] = dot;
    }
  }
}

// The group that a row is of: the first whose end is above it.
__device__ inline Index group_of(const GroupBiasArgs& args, Index row) {
  const int* ends = static_cast<const int*>(args.ends);
  Index low = 0, high = args.groups - 1;
  while (low < high) {
    const Index middle = (low + high) / 2;
    if (ends[middle] > row)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

template <class T, int K>
__device__ inline void add_group_bias(const GroupBiasArgs& args) {
  using A = Wide<T>;
  for (Index row = blockIdx.x; row < args.count; row += gridDim.x) {
    const T* bias = static_cast<const T*>(args.bias) + group_of(args, row) * args.n;
    T* to = static_cast<T*>(args.rows) + row * args.n;
    over_columns<K>(args.n, [&](Index c, auto size) {
      constexpr int kSize = decltype(size)::value;
      A v[kSize], b[kSize];
      load<kSize>(to + c, v);
      load<kSize>(bias + c, b);
      for (int k = 0; k < kSize; ++k) v[k] += b[k];
      store<kSize>(v, to + c);
    });
  }
}

// A block: a group's rows and kSumColumns packs of columns, kSumGroups threads for each. room: K elements for each thread.
// REQUIRES: K divides n.
template <class T, int K>
__device__ inline void sum_group_bias(const GroupBiasArgs& args, Wide<T>* room) {
  using A = Wide<T>;
  constexpr Index kTileColumns = static_cast<Index>(kSumColumns) * K;
  const Index tiles = (args.n + kTileColumns - 1) / kTileColumns, group = blockIdx.x / tiles;
  const Index column = blockIdx.x % tiles * kTileColumns + threadIdx.x % kSumColumns * K;
  const int* ends = static_cast<const int*>(args.ends);
  A sum[K] = {};
  if (column < args.n) {
    const Index first = group == 0 ? 0 : ends[group - 1];
#ifdef __CUDACC__
#pragma unroll 1  // else the sums of fp32 would spill
#endif
    for (Index row = first + threadIdx.x / kSumColumns; row < ends[group]; row += kSumGroups) {
      A v[K];
      load<K>(static_cast<const T*>(args.rows) + row * args.n + column, v);
      for (int k = 0; k < K; ++k) sum[k] += v[k];
    }
  }
  for (int k = 0; k < K; ++k) room[threadIdx.x * K + k] = sum[k];
  __syncthreads();  // before other threads' sums are read
  if (threadIdx.x >= kSumColumns || column >= args.n) return;
  for (int k = 0; k < K; ++k) {
    T& to = static_cast<T*>(args.bias)[group * args.n + column + k];
    A all = args.add != 0 ? widen(to) : A(0);
    for (int part = 0; part < kSumGroups; ++part) all += room[(part * kSumColumns + threadIdx.x) * K + k];
    narrow(all, to);
  }
}

}  // namespace sweep::device
