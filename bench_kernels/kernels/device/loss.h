// Cross-entropy of logits over a vocabulary or a share of it, one block for each row, in two passes over the row: its
// log-sum-exp, of sums that grow with the largest logit so far (Milakov and Gimelshein 2018, arXiv 1805.02867), then the
// gradient in place. The losses are added up in one more launch, always in the same order.
#pragma once
#include "bench_kernels/kernels/device/activation.h"
#include "bench_kernels/kernels/device/eight_bit.h"

namespace sweep::device {

__device__ inline float logarithm(float x) {
  return logf(x);
}
__device__ inline double logarithm(double x) {
  return log(x);
}

// The log-sum-exp of a row of n logits, for all threads.
template <class T, int K>
__device__ inline Wide<T> log_sum_exp(const T* row, Index n, Wide<T>* room) {
  using A = Wide<T>;
  A most = A(-3e38F), sum = 0;  // below every logit
  over_columns<K>(n, [&](Index c, auto size) {
    A v[decltype(size)::value];
    load<decltype(size)::value>(row + c, v);
    A above = most;
    for (const A x : v) above = x > above ? x : above;
    if (above > most) sum *= exponential(most - above), most = above;
    for (const A x : v) sum += exponential(x - most);
  });
  const A largest = block_most(most, room);
  return largest + logarithm(block_sum(sum * exponential(most - largest), room));
}

template <class T, int kPack>
__device__ inline void cross_entropy(const CrossEntropyArgs& args, Wide<T>* room) {
  using A = Wide<T>;
  constexpr int K = sizeof(T) == sizeof(double) ? 1 : kPack;  // two exponentials of fp64 at once would spill
  for (Index row = blockIdx.x; row < args.rows; row += gridDim.x) {
    T* logits = static_cast<T*>(args.logits) + row * args.stride;
    const Index label = static_cast<const Index*>(args.labels)[row], place = label - args.first;
    A* lse = static_cast<A*>(args.lse) + row;
    if (args.picked != nullptr && threadIdx.x == 0)  // before the row changes
      static_cast<A*>(args.picked)[row] =
          label >= 0 && place >= 0 && place < args.n ? widen(logits[place]) : A(0);
    const A above = args.forward != 0 ? log_sum_exp<T, K>(logits, args.n, room) : *lse;
    if (args.forward != 0 && threadIdx.x == 0) *lse = above;
    if (args.backward == 0) continue;
    const A scale = static_cast<A>(args.scale);
    over_columns<K>(args.n, [&](Index c, auto size) {
      constexpr int kSize = decltype(size)::value;
      A v[kSize];
      load<kSize>(logits + c, v);
      for (int k = 0; k < kSize; ++k) {
        const A p = exponential(v[k] - above);
        v[k] = label < 0 ? A(0) : (c + k == place ? p - A(1) : p) * scale;
      }
      store<kSize>(v, logits + c);
    });
  }
}

// total (fp64) grows by the sum of lse - picked over the rows with a label. One block.
template <class T>
__device__ inline void add_losses(const CrossEntropyArgs& args, Wide<T>* room) {
  using A = Wide<T>;
  A sum = 0;
  for (Index row = threadIdx.x; row < args.rows; row += blockDim.x)
    if (static_cast<const Index*>(args.labels)[row] >= 0)
      sum += static_cast<const A*>(args.lse)[row] - static_cast<const A*>(args.picked)[row];
  sum = block_sum(sum, room);
  if (threadIdx.x == 0) *static_cast<double*>(args.total) += static_cast<double>(sum);
}

}  // namespace sweep::device
