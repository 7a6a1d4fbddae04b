// A mixture-of-experts layer between its products: probabilities and weights of the router and their gradient, one warp
// for each token; the weighted sum of the rows that a token's experts gave, and its gradients, one block for each token.
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
    A sum = 0, shared = 0;  // of the chosen probabilities; of the weights' gradients, weighted
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

}  // namespace sweep::device
