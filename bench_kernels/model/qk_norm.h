// QkNorm: a norm over each head of the queries and of the keys, before the rotary positions (Henry et al. 2020, arXiv
// 2010.04245; as Qwen 3 has it: RMSNorm, with one weight for all heads of the queries and one for those of the keys).
#pragma once
#include "bench_kernels/model/layers.h"

namespace sweep::model {

class QkNorm {
 public:
  // Without QK norm in the model's family it has no parameters and does nothing.
  QkNorm(const StageContext&, std::int64_t layer);

  struct Kept {
    at::Tensor query, key;  // [rows x heads, head_dim] before the norm
    kernels::NormStats query_stats, key_stats;
    std::vector<at::Tensor*> tensors();
  };
  // The columns of q and k in [rows, q | k | v] pass their norms.
  Kept forward(const at::Tensor& qkv) const;
  // The gradients of q and k after the norm become those before it.
  void backward(const at::Tensor& dqkv, const Kept&) const;

 private:
  at::Tensor columns(const at::Tensor& qkv, bool key) const;

  const StageContext& shared_;
  bool there_;
  NormLayer query_, key_;
};

}  // namespace sweep::model
