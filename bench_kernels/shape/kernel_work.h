// KernelWork: what the kernels of a layer and of the loss move and launch on a GPU beside matrix products, by the axes
// that choose them. Bytes and launches are counted in the operators themselves: bench_kernels/kernels/plain.cpp,
// plain_softmax.cpp, autocast.cpp, attention.cpp, and the fused kernels of device/. Numbers of a token, or of a layer,
// are left out.
#pragma once
#include "bench_kernels/shape/step_sizes.h"

namespace sweep::shape {

// The axes that choose kernels. By default: fused kernels, and attention that keeps no scores.
struct KernelChoice {
  FusedGroups fused;
  bool math = false;      // attention with its scores in memory
  bool autocast = false;  // eager operators on fp32 copies
  bool casts = false;     // weights are kept in another type than the one that computes
  bool fp8 = false;       // the factors of dense products are rounded to eight bits
  bool graph = false;     // forward and backward are launched whole
};
KernelChoice kernel_choice(const Trial&);
// Whether it is the default one.
bool is_default(const KernelChoice&);

struct KernelWork {
  double bytes = 0, launches = 0;
  KernelWork& operator+=(const KernelWork& other) {
    bytes += other.bytes, launches += other.launches;
    return *this;
  }
};
struct PassWork {
  KernelWork forward, backward;
  PassWork& operator+=(const PassWork& other) {
    forward += other.forward, backward += other.backward;
    return *this;
  }
};

// Sizes of one layer on a rank, in columns of a token.
struct LayerColumns {
  double tokens = 0;       // tokens of a micro-batch on this rank
  double norm_tokens = 0;  // rows of the residual stream, which sequence parallelism divides
  double keys = 0;         // columns of a row of scores in memory
  double hidden = 0, query = 0, key_value = 0, mlp = 0, heads = 0;  // mlp: of the activation's result
  double element = 2;
};

// Norms, rotary positions, the joining of heads, activation and biases of a layer; casts of its weights (`parameters`).
PassWork layer_work(const ModelSpec&, const KernelChoice&, const LayerColumns&, double parameters);
// Scores in memory: their softmax, and copies of the heads. Without them: the sums over heads that share keys.
PassWork attention_work(const ModelSpec&, const KernelChoice&, const LayerColumns&);
// The loss of so many logits of `entries` each, in chunks. It is forward and backward at once.
KernelWork loss_work(const KernelChoice&, double rows, double entries, double element);

}  // namespace sweep::shape
