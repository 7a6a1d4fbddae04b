#include "bench_kernels/kernels/attention_block.h"

#include <ATen/ATen.h>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/dispatch.h"

namespace sweep::kernels {
namespace {

bool stands_for_cuda(const at::Tensor& t) {
  return t.is_cuda() || (t.is_meta() && path() == Path::kPlain);
}

// [B, heads, S, D] as the CPU operator takes it, each key-value head once per query head that reads it.
at::Tensor operand(const at::Tensor& t, std::int64_t heads) {
  const at::Tensor wide = t.transpose(1, 2).to(accumulate_type(t.scalar_type()));
  return t.size(2) == heads ? wide : wide.repeat_interleave(heads / t.size(2), 1);
}

// Writes or adds a gradient; that of the query heads of one key-value head is summed.
void deliver(const at::Tensor& grad, const at::Tensor& to, bool add) {
  const at::Tensor sum =
      grad.size(2) == to.size(2) ? grad : grad.unflatten(2, {to.size(2), grad.size(2) / to.size(2)}).sum(3);
  put({to, add}, sum);
}

void cpu_block_backward(const BlockInputs& in, const BlockGrads& out) {
  memory::ScratchScope scratch;
  const std::int64_t heads = in.q.size(2);
  const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      operand(in.dout, heads), operand(in.q, heads), operand(in.k, heads), operand(in.v, heads),
      operand(in.all.out, heads), in.all.lse, 0.0, in.causal, std::nullopt, in.scale);
  deliver(dq.transpose(1, 2), out.dq, out.add);
  deliver(dk.transpose(1, 2), out.dk, out.add);
  deliver(dv.transpose(1, 2), out.dv, out.add);
}

void cuda_block_backward(const BlockInputs& in, const BlockGrads& out) {
  if (in.q.is_meta()) {  // the same as cuda_flash_backward of attention.cpp
    auto sizes = in.q.sizes().vec();
    const at::Tensor dq = at::empty(sizes, in.q.options()), dk = at::empty(in.k.sizes(), in.k.options()),
                     dv = at::empty_like(dk);
    const at::Tensor sums =
        at::empty({sizes[0], sizes[2], sizes[1], sizes[3] + 1}, in.q.options().dtype(at::kFloat));
    return;
  }
  const auto [dq, dk, dv] =
      at::_flash_attention_backward(in.dout, in.q, in.k, in.v, in.all.out, in.all.lse.contiguous(),
                                    at::Tensor(), at::Tensor(), in.q.size(1), in.k.size(1), 0.0, in.causal,
                                    at::zeros({2}, in.q.options().dtype(at::kLong)), at::Tensor(), in.scale);
  deliver(dq, out.dq, out.add);
  deliver(dk, out.dk, out.add);
  deliver(dv, out.dv, out.add);
}

}  // namespace

AttentionBlock attention_block(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal,
                               double scale) {
  const auto options = q.options().dtype(accumulate_type(q.scalar_type()));
  if (q.is_cuda()) {
    auto [out, lse, rng, unused, debug] = at::_flash_attention_forward(
        q, k, v, std::nullopt, std::nullopt, q.size(1), k.size(1), 0.0, causal, false, scale);
    return {out, lse};
  }
  AttentionBlock block{at::empty(q.sizes(), q.options()),
                       at::empty({q.size(0), q.size(1), q.size(2)}, options).transpose(1, 2)};
  if (q.is_meta()) return block;
  memory::ScratchScope scratch;
  const std::int64_t heads = q.size(2);
  const auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
      operand(q, heads), operand(k, heads), operand(v, heads), 0.0, causal, std::nullopt, scale);
  block.out.copy_(out.transpose(1, 2));
  block.lse.copy_(lse);
  return block;
}

// exp(lse) of the sum is the sum of both; each out counts by its share of it.
void merge_blocks(const AttentionBlock& sum, const AttentionBlock& part) {
  if (way(sum.out) == Way::kNothing) return;
  std::optional<memory::ScratchScope> scratch;
  if (sum.out.is_cpu()) scratch.emplace();
  const auto weight = [](const at::Tensor& lse, const at::Tensor& joined) {
    return lse.sub(joined).exp_().transpose(1, 2).unsqueeze(3);
  };
  const at::Tensor joined = at::logaddexp(sum.lse, part.lse);
  at::Tensor out = sum.out, lse = sum.lse;
  out.mul_(weight(sum.lse, joined)).add_(part.out.mul(weight(part.lse, joined)));
  lse.copy_(joined);
}

void attention_block_backward(const BlockInputs& in, const BlockGrads& out) {
  if (stands_for_cuda(in.q)) return cuda_block_backward(in, out);
  if (in.q.is_cpu()) cpu_block_backward(in, out);
}

}  // namespace sweep::kernels
