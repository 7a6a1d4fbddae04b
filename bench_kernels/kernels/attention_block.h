// Attention between two runs of positions, the building stone of ring attention: flash kernels, whose partial
// results carry their log-sum-exp and can be merged. On CPU the library's operator, whose work space is
// scratch; on CUDA flash-attention; on meta tensors what either would allocate.
//
// q, out and their gradients are [B, Sq, heads, head_dim], k and v [B, Sk, kv_heads, head_dim], views of any
// stride; lse is [B, heads, Sq] in the accumulation type.
#pragma once
#include "bench_kernels/kernels/ops.h"

namespace sweep::kernels {

struct AttentionBlock {
  at::Tensor out, lse;
};
// causal: query i sees keys 0 .. i (as many queries as keys); else every key.
AttentionBlock attention_block(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal,
                               double scale);
// sum, over some keys, takes in the part over others. sum.out is in the accumulation type.
void merge_blocks(const AttentionBlock& sum, const AttentionBlock& part);

struct BlockInputs {
  at::Tensor dout, q, k, v;
  AttentionBlock all;  // the result of these queries over all keys
  bool causal = false;
  double scale = 1;
};
struct BlockGrads {
  at::Tensor dq, dk, dv;
  bool add = false;  // the result is added to what is there
};
void attention_block_backward(const BlockInputs&, const BlockGrads&);

}  // namespace sweep::kernels
