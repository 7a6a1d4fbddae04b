// Attention sinks (gpt-oss, arXiv 2508.10925, section 2.1; Xiao et al. 2023, arXiv 2309.17453, with a learned logit): a
// share exp(sink - lse') of a query's attention goes nowhere, where exp(lse') = exp(lse) + exp(sink). So the kernel's
// result shrinks by exp(lse - lse'). Its backward computes probabilities from the log-sum-exp that it is given and takes
// from their gradient the product of result and gradient: with lse' and the shrunken result both are those of the
// softmax with the sink, whose own gradient is minus its share times that product.
#include <ATen/ATen.h>

#include <optional>

#include "bench_kernels/kernels/attention_heads.h"
#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/dispatch.h"

namespace sweep::kernels {
namespace {

// A view [B, S, heads] of a kernel's log-sum-exp: on GPUs [B, heads, S], of documents [heads, B * S].
at::Tensor of_rows(const at::Tensor& lse, const AttentionShape& s) {
  if (lse.dim() == 2) return lse.transpose(0, 1).unflatten(0, {s.batch, s.seq});
  return lse.is_cpu() ? lse : lse.transpose(1, 2);
}

// out [T * heads]: of each head's rows of both.
void row_products(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out, std::int64_t head_dim) {
  if (out.is_meta()) return;
  const at::Tensor left = a.reshape({-1, 1, head_dim}), right = b.reshape({-1, head_dim, 1});
  at::Tensor result = out.view({-1, 1, 1});
  if (left.is_cuda() && left.scalar_type() != out.scalar_type())
    at::bmm_out(result, left, right, out.scalar_type());
  else
    at::bmm_out(result, left.to(out.scalar_type()), right.to(out.scalar_type()));
}

}  // namespace

void take_sinks(const AttentionShape& s, const AttentionState& state) {
  if (!s.sinks.defined() || way(state.out) == Way::kNothing) return;
  std::optional<memory::ScratchScope> scratch;
  if (state.out.is_cpu()) scratch.emplace();
  const at::Tensor lse = of_rows(state.saved, s);
  const at::Tensor all = at::logaddexp(lse, s.sinks.to(lse.scalar_type())), kept = lse.sub(all).exp_();
  state.out.view({s.batch, s.seq, s.heads, s.head_dim}).mul_(kept.unsqueeze(3));
  at::Tensor(lse).copy_(all);
}

at::Tensor sinks_backward(const at::Tensor& dout, const AttentionShape& s, const AttentionState& state) {
  const at::Tensor sum = at::empty({s.heads}, state.saved.options());
  if (way(dout) == Way::kNothing) return sum;
  std::optional<memory::ScratchScope> scratch;
  if (dout.is_cpu()) scratch.emplace();
  const at::Tensor products = at::empty({s.batch, s.seq, s.heads}, state.saved.options());
  row_products(dout, state.out, products, s.head_dim);
  const at::Tensor share = s.sinks.to(sum.scalar_type()).sub(of_rows(state.saved, s)).exp_();
  at::Tensor(sum).copy_(share.mul_(products).sum(at::IntArrayRef{0, 1}).neg_());
  return sum;
}

}  // namespace sweep::kernels
