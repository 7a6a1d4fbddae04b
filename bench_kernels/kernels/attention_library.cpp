// Attention by the library's kernels for GPUs: FlashAttention 2, the memory-efficient one (`sdpa`) and cuDNN's.
#include <ATen/ATen.h>

#include "bench_kernels/kernels/attention_heads.h"
#include "bench_kernels/kernels/dispatch.h"

namespace sweep::kernels {
namespace {

// A kernel takes and gives [B, heads, S, D]: views.
at::Tensor before_positions(const at::Tensor& t) {
  return t.transpose(1, 2);
}
at::Tensor result_heads(const at::Tensor& rows, const AttentionShape& s) {
  return rows.view({s.batch, s.seq, s.heads, s.head_dim});
}
at::Tensor result_rows(const at::Tensor& out, const AttentionShape& s) {
  return out.reshape({s.batch * s.seq, s.heads * s.head_dim});
}
at::TensorOptions exact(const at::Tensor& t) {
  return t.options().dtype(at::kFloat);
}

std::optional<std::int64_t> left_window(const AttentionShape& s) {
  return windowed(s) ? std::optional(*s.window - 1) : std::nullopt;
}

// Documents as one sequence [B * S, heads, D]: their ends tell the kernel where each begins.
at::Tensor one_sequence(const at::Tensor& heads) {
  return heads.flatten(0, 1);
}

AttentionState flash_documents(const Heads& h, const AttentionShape& s) {
  const Documents& d = *s.documents;
  const auto left = left_window(s);
  auto [out, lse, rng, unused, debug] = at::_flash_attention_forward(
      one_sequence(h.q), one_sequence(h.k), one_sequence(h.v), d.device_ends, d.device_ends, d.longest,
      d.longest, 0.0, true, false, scale_of(s), left, left ? std::optional<std::int64_t>(0) : std::nullopt);
  return {result_rows(out, s), lse, rng};
}

std::array<at::Tensor, 3> flash_documents_backward(const at::Tensor& dout, const Heads& h,
                                                   const AttentionShape& s, const AttentionState& state) {
  const Documents& d = *s.documents;
  const auto left = left_window(s);
  auto [dq, dk, dv] = at::_flash_attention_backward(
      one_sequence(result_heads(dout, s)), one_sequence(h.q), one_sequence(h.k), one_sequence(h.v),
      one_sequence(result_heads(state.out, s)), state.saved, d.device_ends, d.device_ends, d.longest,
      d.longest, 0.0, true, state.mask, at::Tensor(), scale_of(s), left,
      left ? std::optional<std::int64_t>(0) : std::nullopt);
  const auto by_sequence = [&](const at::Tensor& grad) { return grad.unflatten(0, {s.batch, s.seq}); };
  return {by_sequence(dq), by_sequence(dk), by_sequence(dv)};
}

AttentionState flash(const Heads& h, const AttentionShape& s) {
  if (s.documents != nullptr) return flash_documents(h, s);
  const auto left = left_window(s);
  auto [out, lse, rng, unused, debug] = at::_flash_attention_forward(
      h.q, h.k, h.v, std::nullopt, std::nullopt, s.seq, s.key_count(), 0.0, s.causal, false, scale_of(s),
      left, left ? std::optional<std::int64_t>(0) : std::nullopt);
  return {result_rows(out, s), lse, rng};
}

std::array<at::Tensor, 3> flash_backward(const at::Tensor& dout, const Heads& h, const AttentionShape& s,
                                         const AttentionState& state) {
  if (s.documents != nullptr) return flash_documents_backward(dout, h, s, state);
  const auto left = left_window(s);
  auto [dq, dk, dv] = at::_flash_attention_backward(
      result_heads(dout, s), h.q, h.k, h.v, result_heads(state.out, s), state.saved, at::Tensor(),
      at::Tensor(), s.seq, s.key_count(), 0.0, s.causal, state.mask, at::Tensor(), scale_of(s), left,
      left ? std::optional<std::int64_t>(0) : std::nullopt);
  return {dq, dk, dv};
}

// It has no groups of query heads.
Heads one_for_each_query(const Heads& h, const AttentionShape& s) {
  return {before_positions(h.q), before_positions(spread(h.k, s, 2)), before_positions(spread(h.v, s, 2))};
}

AttentionState efficient(const Heads& heads, const AttentionShape& s) {
  const Heads h = one_for_each_query(heads, s);
  const auto [out, lse, seed, offset] = at::_scaled_dot_product_efficient_attention(
      h.q, h.k, h.v, std::nullopt, true, 0.0, s.causal, scale_of(s));
  return {result_rows(before_positions(out), s), lse, seed};
}

std::array<at::Tensor, 3> efficient_backward(const at::Tensor& dout, const Heads& heads,
                                             const AttentionShape& s, const AttentionState& state) {
  const Heads h = one_for_each_query(heads, s);
  const auto [dq, dk, dv, unused] = at::_scaled_dot_product_efficient_attention_backward(
      before_positions(result_heads(dout, s)), h.q, h.k, h.v, at::Tensor(),
      before_positions(result_heads(state.out, s)), state.saved, state.mask, state.mask, 0.0,
      {true, true, true, false}, s.causal, scale_of(s));
  return {before_positions(dq), before_positions(dk), before_positions(dv)};
}

AttentionState cudnn(const Heads& h, const AttentionShape& s) {
  const auto result = at::_scaled_dot_product_cudnn_attention(before_positions(h.q), before_positions(h.k),
                                                              before_positions(h.v), std::nullopt, true, 0.0,
                                                              s.causal, false, scale_of(s));
  return {result_rows(before_positions(std::get<0>(result)), s), std::get<1>(result), std::get<6>(result)};
}

std::array<at::Tensor, 3> cudnn_backward(const at::Tensor& dout, const Heads& h, const AttentionShape& s,
                                         const AttentionState& state) {
  const auto [dq, dk, dv] = at::_scaled_dot_product_cudnn_attention_backward(
      before_positions(result_heads(dout, s)), before_positions(h.q), before_positions(h.k),
      before_positions(h.v), before_positions(result_heads(state.out, s)), state.saved, state.mask,
      state.mask, at::Tensor(), at::Tensor(), at::Tensor(), s.seq, s.key_count(), 0.0, s.causal, scale_of(s));
  return {before_positions(dq), before_positions(dk), before_positions(dv)};
}

// Sizes of k and v that a kernel reads and of which it makes gradients: one for each query head, but cuDNN's.
std::vector<std::int64_t> kernel_key_sizes(const AttentionShape& s) {
  const bool groups = s.kernel == AttentionKernel::kCudnn;
  return {s.batch, s.key_count(), groups ? s.kv_heads : s.heads, s.head_dim};
}

// The copies of k and v that one_for_each_query() makes.
std::array<at::Tensor, 2> spread_allocations(const at::Tensor& qkv, const AttentionShape& s) {
  if (s.kernel != AttentionKernel::kSdpa || s.heads == s.kv_heads) return {};
  return {at::empty(kernel_key_sizes(s), qkv.options()), at::empty(kernel_key_sizes(s), qkv.options())};
}

AttentionState allocations(const at::Tensor& qkv, const AttentionShape& s) {
  const auto keys_values = spread_allocations(qkv, s);
  return {at::empty({s.batch * s.seq, s.heads * s.head_dim}, qkv.options()),
          at::empty({s.batch, s.heads, s.seq}, exact(qkv)), at::empty({2}, qkv.options().dtype(at::kLong))};
}

// The gradients by the kernel's heads, an fp32 accumulator of dq and sums of the rows.
void backward_allocations(const at::Tensor& qkv, const AttentionShape& s) {
  const auto keys_values = spread_allocations(qkv, s);
  const at::Tensor dq = at::empty({s.batch, s.seq, s.heads, s.head_dim}, qkv.options());
  const at::Tensor dk = at::empty(kernel_key_sizes(s), qkv.options()), dv = at::empty_like(dk);
  const std::int64_t further = s.documents ? 128 * s.documents->count() : 0;  // a block for each
  const at::Tensor sums = at::empty({s.heads, s.batch * s.seq + further, s.head_dim + 1}, exact(qkv));
}

}  // namespace

AttentionState library_attention(const at::Tensor& qkv, const AttentionShape& s) {
  if (qkv.is_meta()) return allocations(qkv, s);
  const Heads h = split_heads(qkv, s);
  if (s.kernel == AttentionKernel::kSdpa) return efficient(h, s);
  return s.kernel == AttentionKernel::kCudnn ? cudnn(h, s) : flash(h, s);
}

void library_attention_backward(const at::Tensor& dout, const at::Tensor& qkv, const AttentionShape& s,
                                const AttentionState& state, const at::Tensor& dqkv, const Angles& angles) {
  if (qkv.is_meta()) {
    backward_allocations(qkv, s);
    return turn_back(dqkv, s, angles);
  }
  const Heads h = split_heads(qkv, s), d = split_heads(dqkv, s);
  const auto by = s.kernel == AttentionKernel::kSdpa    ? efficient_backward
                  : s.kernel == AttentionKernel::kCudnn ? cudnn_backward
                                                        : flash_backward;
  const auto [dq, dk, dv] = by(dout, h, s, state);
  if (s.keys == 0 && way(dqkv, Fused::kRope) == FusedWay::kDevice && dk.size(2) == s.kv_heads &&
      device::join_heads(dq, dk, dv, angles, dqkv))
    return;
  const auto put_heads = [&](const at::Tensor& grad, at::Tensor to) {
    if (grad.size(2) == to.size(2))
      to.copy_(grad);
    else
      gather(grad, to, s, 2);
  };
  put_heads(dq, d.q);
  put_heads(dk, d.k);
  put_heads(dv, d.v);
  turn_back(dqkv, s, angles);
}

}  // namespace sweep::kernels
