// Heads of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, equations 9 to 19): from the products of its
// latents to the packed q, k and v of ops.h, and back. Each writes into tensors that its caller allocated; on meta
// tensors nothing runs.
//
// Within a head the packed order differs from the product's; scores do not change. Each half that rotary positions pair
// begins with its half of the rotary numbers; in the products pairs lie side by side. Tables with the angle 0 for the
// other numbers leave them as they are (model/positions.h). Values are padded with zeros to the head's size, as kernels
// want that have one size of heads.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sweep::kernels {

struct LatentHeads {
  std::int64_t heads = 0;
  std::int64_t plain = 0;   // numbers of a query's or key's head that have no position
  std::int64_t rotary = 0;  // numbers that rotary positions turn
  std::int64_t value = 0;   // numbers of a value's head
  std::int64_t head_dim() const { return plain + rotary; }
};

// The parts that packed rows are made of: queries [T, heads x (plain | rotary)], keys_values [T, heads x (plain of the key |
// value)], rotary [T, rotary of the key, which all heads share]; may be columns of wider rows.
struct LatentParts {
  at::Tensor queries, keys_values, rotary;
};
// qkv [T, 3 x heads x head_dim].
void join_latent_heads(const LatentParts&, const LatentHeads&, const at::Tensor& qkv);
// The gradients of the parts from that of qkv: the rotary part's is the sum over the heads.
void split_latent_heads(const at::Tensor& dqkv, const LatentHeads&, const LatentParts&);

// values [T, heads x value] from rows [T, heads x head_dim], and back with zeros behind them.
void cut_values(const at::Tensor& rows, const LatentHeads&, const at::Tensor& values);
void pad_values(const at::Tensor& values, const LatentHeads&, const at::Tensor& rows);

}  // namespace sweep::kernels
