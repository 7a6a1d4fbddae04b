// Counts of a model: parameters and FLOPs. Pure functions of the dimensions, never of how the model is split.
#pragma once
#include "schema/model_spec.h"
#include "schema/trial.h"

namespace sweep::shape {

i64 parameter_count(const ModelSpec&);  // all, a tied table once
i64 multiplied_parameter_count(
    const ModelSpec&);  // parameters in matmuls per token: head once, no input table, no norms/biases
i64 attention_weights(const ModelSpec&);  // weights in the matmuls of one layer's attention
// Model FLOPs per token, forward + backward: 6 x multiplied parameters + 12 x layers x heads x head_dim x
// seq_len (attention not halved for causality; Chowdhery et al. 2022, appendix B; of latent attention heads x (head_dim
// + v_head_dim) / 2). No recomputation.
double model_flops_per_token(const ModelSpec&, i64 seq_len);
// The same plus the forward FLOPs that `recompute` runs again.
double hardware_flops_per_token(const ModelSpec&, i64 seq_len, Recompute);
// The same of a trial, whose packed documents have attention among their own tokens. A frozen base needs no gradients of its weights: 4 x multiplied parameters + 6 x those
// of the adapters + the attention's (Hu et al. 2021, arXiv 2106.09685, train these alone).
double model_flops_per_token(const Trial&);
double hardware_flops_per_token(const Trial&);
// FLOPs of documents alone, over all tokens: padding counts as tokens without FLOPs, and a token of a document
// meets that document's tokens only.
double useful_flops_per_token(const Trial&);

}  // namespace sweep::shape
