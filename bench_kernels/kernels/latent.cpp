#include "bench_kernels/kernels/latent.h"

#include <ATen/ATen.h>

#include <optional>

#include "bench_kernels/kernels/counting_allocator.h"

namespace sweep::kernels {
namespace {

void put_there(at::Tensor to, const at::Tensor& from) {
  to.copy_(from);
}

// [T, heads, 2, n] views: of a run of packed heads, what turns and what stays.
struct Packed {
  at::Tensor rotary, plain;
};
Packed packed(const at::Tensor& qkv, const LatentHeads& h, std::int64_t section) {
  const std::int64_t width = h.heads * h.head_dim();
  const at::Tensor halves =
      qkv.narrow(1, section * width, width).unflatten(1, {h.heads, 2, h.head_dim() / 2});
  return {halves.narrow(3, 0, h.rotary / 2), halves.narrow(3, h.rotary / 2, h.plain / 2)};
}

// The same view of rotary numbers of a product, which are [..., rotary] with each pair side by side.
at::Tensor pairs(const at::Tensor& t, const LatentHeads& h) {
  return t.unflatten(-1, {h.rotary / 2, 2}).transpose(-1, -2);
}
at::Tensor halves(const at::Tensor& t, const LatentHeads& h) {
  return t.unflatten(-1, {2, h.plain / 2});
}

at::Tensor by_head(const at::Tensor& rows, const LatentHeads& h) {
  return rows.unflatten(1, {h.heads, -1});
}

// [T, heads, value] of the packed values.
at::Tensor packed_values(const at::Tensor& rows, const LatentHeads& h) {
  return by_head(rows, h).narrow(2, 0, h.value);
}

at::Tensor values_section(const at::Tensor& qkv, const LatentHeads& h) {
  const std::int64_t width = h.heads * h.head_dim();
  return qkv.narrow(1, 2 * width, width);
}

}  // namespace

void join_latent_heads(const LatentParts& parts, const LatentHeads& h, const at::Tensor& qkv) {
  if (qkv.is_meta()) return;
  const at::Tensor q = by_head(parts.queries, h), kv = by_head(parts.keys_values, h);
  const Packed queries = packed(qkv, h, 0), keys = packed(qkv, h, 1);
  put_there(queries.plain, halves(q.narrow(2, 0, h.plain), h));
  put_there(queries.rotary, pairs(q.narrow(2, h.plain, h.rotary), h));
  put_there(keys.plain, halves(kv.narrow(2, 0, h.plain), h));
  put_there(keys.rotary, pairs(parts.rotary, h).unsqueeze(1));
  const at::Tensor values = by_head(values_section(qkv, h), h);
  put_there(values.narrow(2, 0, h.value), kv.narrow(2, h.plain, h.value));
  values.narrow(2, h.value, h.head_dim() - h.value).zero_();
}

void split_latent_heads(const at::Tensor& dqkv, const LatentHeads& h, const LatentParts& to) {
  if (dqkv.is_meta()) return;
  const at::Tensor q = by_head(to.queries, h), kv = by_head(to.keys_values, h);
  const Packed queries = packed(dqkv, h, 0), keys = packed(dqkv, h, 1);
  put_there(halves(q.narrow(2, 0, h.plain), h), queries.plain);
  put_there(pairs(q.narrow(2, h.plain, h.rotary), h), queries.rotary);
  put_there(halves(kv.narrow(2, 0, h.plain), h), keys.plain);
  put_there(kv.narrow(2, h.plain, h.value), packed_values(values_section(dqkv, h), h));
  std::optional<memory::ScratchScope> scratch;
  if (dqkv.is_cpu()) scratch.emplace();
  at::Tensor rotary = pairs(to.rotary, h);
  at::sum_out(rotary, keys.rotary, {1});
}

void cut_values(const at::Tensor& rows, const LatentHeads& h, const at::Tensor& values) {
  if (!rows.is_meta()) put_there(by_head(values, h), packed_values(rows, h));
}

void pad_values(const at::Tensor& values, const LatentHeads& h, const at::Tensor& rows) {
  if (rows.is_meta()) return;
  put_there(packed_values(rows, h), by_head(values, h));
  by_head(rows, h).narrow(2, h.value, h.head_dim() - h.value).zero_();
}

}  // namespace sweep::kernels
