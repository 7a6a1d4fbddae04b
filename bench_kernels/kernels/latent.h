// Heads of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, equations 9 to 19): from the products of its
// latents to the packed q, k and v of ops.h, and back. Each writes into tensors that its caller allocated; on meta tensors
// nothing runs.
//
// A head of the packed rows has its numbers in another order than a product's, which its scores do not feel: of the two
// halves that rotary positions pair, each begins with its half of the rotary numbers, of which pairs lie side by side in
// the products. Tables with the angle 0 for the other numbers leave them as they are (model/positions.h). Values are
// padded with zeros to the head's size, as kernels want that have one size of heads.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sweep::kernels {

struct LatentHeads {
  std::int64_t heads = 0, plain = 0, rotary = 0,
               value = 0;  // of a head: numbers that stay, that turn; of values
  std::int64_t head_dim() const { return plain + rotary; }
};

// What the packed rows are made of. queries [T, heads x (plain | rotary)], keys_values [T, heads x (plain of the key |
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
