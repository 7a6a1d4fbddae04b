// Private to this room: the fused kernels of the loss (device/loss.h) as launches, for the operations of ops.h.
#pragma once
#include "bench_kernels/kernels/ops.h"

namespace sweep::kernels::device {

void cross_entropy(const at::Tensor& logits, const Labels&, double scale, const at::Tensor& total);
void cross_entropy_share(const at::Tensor& logits, const Labels&, std::int64_t first, const at::Tensor& lse,
                         const at::Tensor& picked);
void cross_entropy_backward(const at::Tensor& logits, const Labels&, const at::Tensor& lse, double scale,
                            std::int64_t first);

}  // namespace sweep::kernels::device
