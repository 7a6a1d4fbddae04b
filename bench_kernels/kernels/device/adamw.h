// AdamW of a list of tensors in one launch (Loshchilov and Hutter 2019, arXiv 1711.05101): each number is read and
// written once. A master of more digits has its copy in the stored type written on the way. A block works on one chunk
// of a tensor at a time.
#pragma once
#include "bench_kernels/kernels/device/scalar.h"

namespace sweep::device {

// Numbers that a thread updates at once, where K are a pack: but for fp32 a whole pack would spill.
template <class T, int K>
constexpr int kAdamwPack = sizeof(T) == 4 ? K : (K + 1) / 2;

// Numbers of the tensor from i on. P: the type of parameters and moments.
template <int K, class T, class P>
__device__ inline void adamw_pack(const AdamwArgs& args, const AdamwTensor& of, Index i) {
  using A = Wide<P>;
  A g[K], p[K], m[K], v[K];
  if (args.wide_grads != 0)
    load_packs<K>(static_cast<const float*>(of.grad) + i, g);
  else
    load<K>(static_cast<const T*>(of.grad) + i, g);
  load<K>(static_cast<const P*>(of.parameter) + i, p);
  load<K>(static_cast<const P*>(of.mean) + i, m);
  load<K>(static_cast<const P*>(of.square) + i, v);
  const A beta1 = static_cast<A>(args.beta1), beta2 = static_cast<A>(args.beta2);
  for (int k = 0; k < K; ++k) {
    const A grad = static_cast<A>(args.coefficient) * g[k];
    m[k] = beta1 * m[k] + (1 - beta1) * grad;
    v[k] = beta2 * v[k] + (1 - beta2) * grad * grad;
    const A root = static_cast<A>(sqrt(v[k])) * static_cast<A>(args.root) + static_cast<A>(args.eps);
    p[k] = static_cast<A>(args.decay) * p[k] - static_cast<A>(args.step_size) * m[k] / root;
  }
  i = opaque(i);
  store<K>(p, static_cast<P*>(of.parameter) + i);
  store<K>(m, static_cast<P*>(of.mean) + i);
  store<K>(v, static_cast<P*>(of.square) + i);
  if (of.copy != nullptr) store<K>(p, static_cast<T*>(of.copy) + i);
}

template <class T, int K, class P>
__device__ inline void adamw(const AdamwArgs& args) {
  for (Index chunk = blockIdx.x; chunk < args.chunks; chunk += gridDim.x) {
    int at = 0;
    while (at + 1 < args.tensors && args.of[at + 1].first <= chunk) ++at;
    const AdamwTensor& of = args.of[at];
    const Index begin = (chunk - of.first) * args.chunk, left = of.n - begin;
    over_columns<K>(left < args.chunk ? left : args.chunk, [&](Index c, auto size) {
      adamw_pack<decltype(size)::value, T, P>(args, of, begin + c);
    });
  }
}

}  // namespace sweep::device
