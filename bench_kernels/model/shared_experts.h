// SharedExperts: experts that process every token beside those that the router chooses (DeepSeekMoE, Dai et al. 2024,
// arXiv 2401.06066): one MLP of all their widths. Over a tensor group each rank has a share of its columns, and a part
// of the sum. It is a part of the unit of experts, whose rows it reads.
#pragma once
#include "bench_kernels/model/layers.h"

namespace sweep::model {

class SharedExperts {
 public:
  // Without any in the model it has no parameters and does nothing.
  SharedExperts(const StageContext&, std::int64_t layer);

  bool there() const { return there_; }
  // sum [rows, hidden_size] grows by this rank's part. Returns what backward reads, [rows, 2 x width].
  at::Tensor forward(const at::Tensor& h, const at::Tensor& sum) const;
  // grad: that of the result, all rows. dh grows by this rank's part.
  void backward(const at::Tensor& grad, const at::Tensor& h, at::Tensor in, const at::Tensor& dh) const;

 private:
  void backward_weight(const Linear&, const at::Tensor& dout, const at::Tensor& in) const;

  const StageContext& shared_;
  bool there_;
  Linear in_, down_;
};

}  // namespace sweep::model
