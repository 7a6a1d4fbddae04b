// PostNorm: a norm of what attention or the MLP gives, before it is added to the residual stream (Gemma 3, arXiv
// 2503.19786, section 2: RMSNorm before and after each).
#pragma once
#include "bench_kernels/model/layers.h"

namespace sweep::model {

class PostNorm {
 public:
  // module: empty where the model's family has no such norm. Then there are no parameters, and rows pass as they are.
  // Its parameters lie behind those of the products before it.
  PostNorm(const StageContext&, std::int64_t layer, std::string_view module);
  bool there() const { return norm_.w != Parameters::kNone; }

  struct Kept {
    at::Tensor before;  // [rows, hidden_size]
    kernels::NormStats stats;
    std::vector<at::Tensor*> tensors() { return {&before, &stats.mean, &stats.rstd}; }
  };
  // residual + norm(rows); without a norm `rows`, which have the residual already.
  at::Tensor forward(at::Tensor rows, const at::Tensor& residual, Kept&) const;
  // The gradient of `rows` above from that of the result.
  at::Tensor backward(const at::Tensor& grad, Kept&) const;

 private:
  const StageContext& shared_;
  NormLayer norm_;
};

}  // namespace sweep::model
