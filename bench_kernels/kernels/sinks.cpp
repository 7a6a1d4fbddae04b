// Attention sinks (gpt-oss, arXiv 2508.10925, section 2.1; Xiao et al. 2023, arXiv 2309.17453, with a learned logit): a
// share exp(sink - lse') of a query's attention goes nowhere, where exp(lse') = exp(lse) + exp(sink). So the kernel's
// result shrinks by exp(lse - lse'). Its backward computes probabilities from the log-sum-exp that it is given and takes
// from their gradient the product of result and gradient: with lse' and the shrunken result both are those of the
// softmax with the sink, whose own gradient is minus its share times that product.
#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "bench_kernels/kernels/attention_heads.h"
#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/device_launch.h"
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

bool has_kernel(const at::Tensor& t) {
  return way(t, Fused::kRope) == FusedWay::kDevice;
}

sweep::device::SinksArgs kernel_args(const AttentionShape& s, const AttentionState& state) {
  using device::at_of;
  sweep::device::SinksArgs args{};
  const at::Tensor lse = of_rows(state.saved, s);
  args.sinks = at_of(s.sinks), args.out = at_of(state.out), args.lse = at_of(lse);
  args.rows = s.batch * s.seq, args.seq = s.seq;
  args.of_sequence = lse.stride(0), args.of_row = lse.stride(1), args.of_head = lse.stride(2);
  args.heads = static_cast<int>(s.heads), args.head_dim = static_cast<int>(s.head_dim);
  return args;
}

// A thread for each pack of a row's columns, as far as a block has threads.
unsigned kernel_threads(const AttentionShape& s, const at::Tensor& out, bool packed) {
  return device::threads_for(s.heads * s.head_dim / (packed ? device::pack_of(out) : 1));
}

void take_by_kernel(const AttentionShape& s, const AttentionState& state) {
  if (state.out.is_meta()) return;
  const auto args = kernel_args(s, state);
  const bool packed = device::aligned({state.out}, {s.head_dim});
  device::run(state.out, {"sinks",
                          {},
                          packed,
                          device::blocks_for(args.rows),
                          kernel_threads(s, state.out, packed),
                          static_cast<std::size_t>(s.heads) * state.saved.element_size(),
                          &args,
                          2 * (device::bytes_of(state.out) + device::bytes_of(state.saved))});
}

void backward_by_kernel(const at::Tensor& dout, const AttentionShape& s, const AttentionState& state,
                        const at::Tensor& sum) {
  namespace d = sweep::device;
  const std::int64_t parts = std::min<std::int64_t>(s.batch * s.seq, d::kMostParts);
  const at::Tensor partial = at::empty({parts, s.heads}, sum.options());
  if (dout.is_meta()) return;
  auto args = kernel_args(s, state);
  args.dout = device::at_of(dout), args.partial = device::at_of(partial);
  const bool packed = device::aligned({state.out, dout}, {s.head_dim});
  const unsigned threads = kernel_threads(s, dout, packed);
  device::run(dout, {"sinks_backward",
                     {},
                     packed,
                     static_cast<unsigned>(parts),
                     threads,
                     static_cast<std::size_t>(threads) * partial.element_size(),
                     &args,
                     device::bytes_of(dout) + device::bytes_of(state.out) + device::bytes_of(state.saved) +
                         device::bytes_of(partial)});
  device::sum_parts(partial, {sum, false}, {});
}

}  // namespace

void take_sinks(const AttentionShape& s, const AttentionState& state) {
  if (!s.sinks.defined() || way(state.out) == Way::kNothing) return;
  if (has_kernel(state.out)) return take_by_kernel(s, state);
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
  if (has_kernel(dout)) {
    backward_by_kernel(dout, s, state, sum);
    return sum;
  }
  std::optional<memory::ScratchScope> scratch;
  if (dout.is_cpu()) scratch.emplace();
  const at::Tensor products = at::empty({s.batch, s.seq, s.heads}, state.saved.options());
  row_products(dout, state.out, products, s.head_dim);
  const at::Tensor share = s.sinks.to(sum.scalar_type()).sub(of_rows(state.saved, s)).exp_();
  at::Tensor(sum).copy_(share.mul_(products).sum(at::IntArrayRef{0, 1}).neg_());
  return sum;
}

}  // namespace sweep::kernels
