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
  // The kernels that run, which decide the temporaries.
  struct Kernels {
    AttentionKind attention;
    bool gpu, flash;  // flash: the scores are never in memory
    bool fp8;
    bool autocast;  // precision bf16_amp or fp16_amp
    bool plain_norm, plain_rope, plain_mlp,
        plain_loss;     // library operators with temporaries run, no fused kernel
    bool fused_update;  // AdamW by one kernel, which reads and writes every type of state itself
    bool norm_starts;   // the norm of a block writes what the block's last product starts from
  };
  // The computations of the family's block.
  struct Block {
    bool rms, gated, gelu_gate, exact_gelu, relu, clamped;
    bool qk_norm, post_norms, sinks, relative;
    bool local_angles;   // layers with a window have rotary tables of their own
    bool causal = true;  // attention within a sequence
    bool selective;      // recompute selective
  };
  struct Weights {
    bool frozen;           // adapters are trained, and nothing else
    bool quantized;        // frozen weights of linear layers are made for each product of codes
    bool later;            // their gradients are made later (zero_bubble)
    bool staged;           // gradients are added to buffers of another type than the values'
    bool staged_products;  // gradients of products are staged too; else a GPU writes them in fp32 at once
  };
  // The ranks that share a layer, and what they exchange.
  struct Group {
    double tp, cp, ep, kv_sharers;
    double pieces;        // pieces of an exchange that are there at once, of all of them: 1, or 1/2
    bool ring, exchange;  // how context-parallel ranks attend
    bool rows_split;      // sequence parallelism: the residual stream holds a share of the rows
  };
  struct Rows {
    double batch, seq, local_seq;
    double encoder_seq;      // tokens of the encoder's sequences; 0: the model has none
    double residual, whole;  // rows of the residual stream, and of a micro-batch
    bool packed;             // rows hold documents, whose positions start anew
    double documents;        // documents of a micro-batch and the padding behind them, at most
  };
  // Columns and heads of a rank.
  struct Dims {
    double hidden, head_dim, heads, kv_heads;
    double query, key_value;           // columns of q, and of k (or v)
    double width, vocabulary;          // columns of the MLP; rows of the token table
    double dense_width, shared_width;  // columns of layers without experts, and of shared experts
  };
  // Latent attention: columns of the latents and of the rotary part of keys, a rank's columns of the values and of
  // what keys and values are made of.
  struct Latent {
    bool used;
    double query, key_value, rotary, values, expanded;
    double columns() const { return query + key_value + rotary; }
  };
  // Columns between the two matrices of the adapters of each linear layer; 0: it has none.
  struct Low {
    double query_key_value, attention_out, in, down;
    double latents, up;  // latent attention: of what makes the latents, and of each product from them
  };
  struct Experts {
    double count, local, choices;   // choices: experts per token
    double sent = 0, received = 0;  // rows to and from experts
    bool learned;                   // routing
    bool biased_choice;             // a bias takes part in the choice of experts
    bool exact_router;              // its logits are in the type of sums
  };

  StepSizes(const Trial&, KernelPath);

  double element;   // bytes of a value and of an activation
  double gradient;  // bytes of a gradient
  Kernels kernels;
  Block block;
  Weights weights;
  Group group;
  Rows rows;
  Dims dims;
  Latent latent;
  Low low;
  Experts experts;

  // The same of the layers of the encoder.
  StepSizes of_encoder() const;

  // Bytes of a tensor of the residual stream, and of it with all rows.
  double residual() const { return element * rows.residual * dims.hidden; }
  double gathered() const { return of_rows(dims.hidden); }
  // Bytes of all rows of a micro-batch, of so many columns.
  double of_rows(double columns) const { return element * rows.whole * columns; }
  // Relative positions have a number for each score of a sequence.
  double score_bias() const { return block.relative ? dims.heads * rows.local_seq * rows.local_seq : 0; }
  // Number of fp32 temporary elements.
  double sums(double elements) const { return 4 * elements; }
  // Copies of 16-bit operands in the type of sums are made; of fp32 operands they are the operands
  // themselves.
  double wide(double copies) const { return element == 4 ? 0 : copies; }
};

}  // namespace sweep::shape
