// StepSizes: what decides the size of the tensors of a training step on one rank, read from a trial once.
#pragma once
#include <optional>
#include <string>

#include "bench_kernels/shape/adapters.h"
#include "bench_kernels/shape/model_states.h"
#include "schema/trial.h"

namespace sweep::shape {

// A count in a floating-point formula.
inline double real(i64 n) {
  return static_cast<double>(n);
}

// The device whose kernels run: their temporaries differ. FusedGroups says which of a GPU's are fused.
enum class KernelPath { kGpu, kProcessor };
KernelPath kernel_path(const Trial&);
// The attention's kernel, also where `auto` takes one: never kAuto.
AttentionKind attention_kind(const Trial&, KernelPath);
// Why no attention runs this trial: one that is asked for needs a half precision, or a ring needs flash
// attention. The plan and the step ask it.
std::optional<std::string> attention_objection(const Trial&, KernelPath);

// The groups of operations that run as fused kernels (docs/kernels.md): what the trial asks for, and its GPU can
// compile.
struct FusedGroups {
  bool norm = true, rope = true, mlp = true, loss = true;
  bool update = true;  // optimizer fused runs one kernel for all tensors; not asked for, it runs where it can
};
FusedGroups fused_groups(const Trial&, KernelPath);

struct StepSizes {
  StepSizes(const Trial&, KernelPath);

  AttentionKind attention;
  bool gpu, flash;  // flash: the scores are never in memory
  bool ring, exchange, fp8;
  bool autocast;  // precision bf16_amp or fp16_amp
  bool plain_norm, plain_rope, plain_mlp,
      plain_loss;      // library operators with temporaries run, no fused kernel
  bool kernel_update;  // AdamW by one kernel, which reads and writes every type of state itself
  bool norm_starts;    // the norm of a block writes what the block's last product starts from
  bool rows_split;     // sequence parallelism: the residual stream holds a share of the rows
  bool rms, gated, gelu_gate, exact_gelu, relu, qk_norm, post_norms, sinks, clamped, relative;
  bool local_angles;      // layers with a window have rotary tables of their own
  bool causal = true;     // attention within a sequence
  bool selective, later;  // recompute selective; weight gradients are made later (zero_bubble)
  bool learned;           // routing
  bool biased_choice;     // a bias takes part in the choice of experts
  bool exact_router;      // its logits are in the type of sums
  bool staged;            // gradients are added to buffers of another type than the values'
  bool staged_products;   // gradients of products are staged too; else a GPU writes them in fp32 at once
  bool frozen;            // adapters are trained, and nothing else
  bool quantized;         // frozen weights of linear layers are made for each product of codes
  bool packed;            // rows hold documents, whose positions start anew
  double pieces_of_rows;  // documents of a micro-batch and the padding behind them, at most
  // Columns between the two matrices of the adapters of each linear layer; 0: it has none.
  double low_query_key_value, low_attention_out, low_in, low_down;
  double low_latents,
      low_up;       // latent attention: columns of what makes the latents, and of each product from them
  double element;   // bytes of a value and of an activation
  double gradient;  // bytes of a gradient
  double tp, cp, ep, kv_sharers,
      pieces;  // pieces of an exchange that are there at once, of all of them: 1, or 1/2
  double batch, seq, local_seq;
  double encoder_seq;  // tokens of the encoder's sequences; 0: the model has none
  // Rows of the residual stream, and of a micro-batch.
  double rows, whole;
  double hidden, head_dim, heads, kv_heads;
  double query, key_value;           // a rank's columns of q, and of k (or v)
  double width, vocabulary;          // a rank's columns of the MLP; its rows of the token table
  double dense_width, shared_width;  // its columns of layers without experts, and of shared experts
  // Latent attention: columns of the latents and of the rotary part of keys, a rank's columns of the values and of
  // what keys and values are made of.
  bool latent;
  double query_latent, key_value_latent, rotary, values, expanded;
  double experts, local_experts, choices;  // choices: experts per token
  double sent = 0, received = 0;           // rows to and from experts

  // The same of the layers of the encoder.
  StepSizes of_encoder() const;

  double residual() const { return element * rows * hidden; }   // bytes of a tensor of the residual stream
  double gathered() const { return element * whole * hidden; }  // bytes of it with all rows
  double latents() const { return query_latent + key_value_latent + rotary; }
  double low_rows(double columns) const { return element * whole * columns; }
  // Relative positions have a number for each score of a sequence.
  double score_bias() const { return relative ? heads * local_seq * local_seq : 0; }
  // Number of fp32 temporary elements.
  double sums(double elements) const { return 4 * elements; }
  // Copies of 16-bit operands in the type of sums are made; of fp32 operands they are the operands
  // themselves.
  double wide(double copies) const { return element == 4 ? 0 : copies; }
};

}  // namespace sweep::shape
