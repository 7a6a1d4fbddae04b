// Unit: a differentiable piece of a model on one rank: the embedding, half a block, the head. Its forward
// saves what its backward, written by hand, needs; parameter gradients go straight where they belong. A unit
// with peers (Layout) sends inside its forward and backward. It owns no tensors between the two calls: what
// it saved belongs to the caller, who may drop it and call forward again.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "bench_kernels/kernels/ops.h"
#include "bench_kernels/model/layout.h"
#include "bench_kernels/model/parameters.h"
#include "bench_kernels/shape/adapters.h"
#include "bench_kernels/shape/splits.h"
#include "schema/model_spec.h"

namespace sweep::model {

using Attention = kernels::AttentionKernel;
// Recomputation in backward: nothing; the attention from q, k and v; all of a layer but its input.

struct Options {
  at::Device device = at::kCPU;
  at::ScalarType type = at::kFloat;  // type of values and activations
  bool fp8 = false;                  // products of the blocks' dense linear layers
  bool autocast = false;             // operators as under torch.amp (kernels/autocast.h)
  shape::Adapters adapters;          // if there are any, everything else is frozen
  bool quantize_base = false;        // frozen linear layers of the blocks are kept in 4 bits
  Attention attention = Attention::kFlash;
  std::int64_t seq_len = 0;                     // length of a whole sequence
  std::int64_t encoder_seq_len = 0;             // the same of the encoder's, where the model has one
  std::int64_t vocab_multiple = 1;              // token tables are padded to a multiple of it x tp rows
  std::int64_t loss_chunk = shape::kLossChunk;  // bytes of logits that are there at once
  std::uint64_t seed = 1;
  // Mixture of experts: hot_percent of skewed choices go to the hot experts; capacity in percent of an even
  // share, 0: dropless.
  Routing routing = Routing::kBalanced;
  std::int64_t hot_percent = 50, capacity_percent = 0;
  bool grouped = false;  // the device has one kernel for the products of all experts (kernels/grouped.h)
  Recompute recompute = Recompute::kNone;
  std::int64_t recompute_every = 1;  // kFull: layers that share one kept input
  bool activation_offload = false;   // saved activations wait in host memory
  Parameters::Source source;         // source of the initial values; empty: drawn from the seed
  Parameters::CodeSource codes;      // source of codes that are initial values; empty: weights are quantized
  std::function<void()> filled;      // told while the initial values are made, after each tensor
};

// How unevenly tokens met experts since it was last reset: the largest, over layers and micro-batches, of an
// expert's rows over the mean. 0: no experts here.
struct RoutingLoad {
  double worst = 0;
};

// One micro-batch, as far as this rank sees it.
struct MicroBatch {
  at::Tensor tokens, labels;  // int64 [batch * seq_len / cp]
  // Factor of the loss (mean over this rank's tokens) before its gradient is taken.
  double scale = 1.0;
  // float64 [1] on the device: grows, in backward, by the sum of the tokens' losses.
  at::Tensor total;
  // The documents packed into the rows; null: there are none. They outlive the micro-batch.
  const kernels::Documents* documents = nullptr;
  bool holes = false;  // labels of padding are negative
  double weight = 1;   // all tokens of the step over those that have a loss: the loss is the mean over these
  // int64 [batch * seq_len / cp]: an evaluation's head writes the likeliest next token of each row; undefined: it is
  // not wanted.
  at::Tensor predictions = {};
  at::Tensor sources = {};  // int64 [batch * encoder_seq_len]: the encoder's tokens, where the model has one
};

// Work that writes parameters' gradients, put off: what a backward that is split in two leaves for its second
// part (Qi et al. 2024, arXiv 2401.10241). Each piece keeps the tensors it reads, and is done once, in order.
using LaterWork = std::vector<std::function<void()>>;

struct ForcedRoutes;  // routing.h

// Relative positions of the encoder's layers, or the decoder's: what is added to their scores, [heads, seq, seq]. While a
// backward runs, also the sum of the layers' gradients of it, in the accumulation type.
struct ScoreBias {
  at::Tensor values, gradient;
};
// The encoder's rows of the micro-batch at work, which the decoder's layers read: [batch * encoder_seq_len, hidden_size].
// While a backward runs, also the sum of the layers' gradients of them.
struct Encoded {
  at::Tensor rows, gradient;
  ScoreBias encoder_bias, decoder_bias;
};

// The context that all units of a stage share. Angles: [positions of this rank, head_dim / 2]; with packed documents
// [rows of the micro-batch at work, head_dim / 2].
struct StageContext {
  ModelSpec spec;
  Options options;
  Layout layout;
  Parameters* parameters = nullptr;
  kernels::Angles angles;
  kernels::Angles local_angles;  // tables of layers with a window, if these have a base of their own
  at::Tensor mask;               // mask of layers with a window
  at::Tensor places;  // int64: this rank's positions, where learned ones are not taken from the first on
  const kernels::Documents* documents = nullptr;  // documents of the micro-batch at work
  RoutingLoad* load = nullptr;
  // List to which a backward defers the weights' part; null: it computes that part itself.
  LaterWork* later = nullptr;
  ForcedRoutes* routes = nullptr;
  Encoded* encoded = nullptr;

  ScoreBias& bias_of(std::int64_t layer) const {
    return layer < spec.encoder_layers ? encoded->encoder_bias : encoded->decoder_bias;
  }
  const kernels::Angles& angles_of(std::int64_t layer) const {
    return spec.full_attention(layer) || spec.rope_local_theta == 0 ? angles : local_angles;
  }
  at::Tensor mask_of(std::int64_t layer) const { return spec.full_attention(layer) ? at::Tensor() : mask; }
  std::int64_t local_seq() const { return options.seq_len / layout.cp(); }
  // Heads that this rank attends with; one that several ranks share counts whole (attention.cpp).
  std::int64_t heads() const { return spec.heads / layout.tp(); }
  std::int64_t kv_heads() const { return spec.kv_heads * layout.key_value->size() / layout.tp(); }
  // Rows of a token table on each rank of the tensor group, padding included.
  std::int64_t vocabulary_rows() const {
    return shape::padded_vocab(spec.vocab_size, options.vocab_multiple, layout.tp()) / layout.tp();
  }
  // All rows of a micro-batch, of which the residual stream holds `rows`, and the reverse.
  std::int64_t whole_rows(std::int64_t rows) const { return layout.rows_split() ? rows * layout.tp() : rows; }
  std::int64_t held_rows(std::int64_t rows) const { return layout.rows_split() ? rows / layout.tp() : rows; }
};

struct Saved {
  virtual ~Saved() = default;
  // Every tensor that is this unit's alone, so that it can wait elsewhere until backward.
  virtual std::vector<at::Tensor*> tensors() = 0;
};
using SavedPtr = std::unique_ptr<Saved>;

class Unit {
 public:
  explicit Unit(const StageContext& shared) : shared_(shared) {}
  virtual ~Unit() = default;
  // in and the result are [rows, hidden_size]; rows are this rank's tokens (a share of them under sequence
  // parallelism). in is undefined for an embedding, the result for a head.
  virtual at::Tensor forward(const MicroBatch&, at::Tensor in, SavedPtr&) const = 0;
  // The gradient of the result (undefined for a head) becomes that of `in` (undefined for an embedding). No
  // parameter's gradient is touched before the weights' part.
  virtual at::Tensor backward(const MicroBatch&, at::Tensor grad, SavedPtr) const = 0;
  // Forward whose saved tensors are dropped. A head adds the tokens' losses to the micro-batch's total.
  virtual at::Tensor evaluate(const MicroBatch& micro, at::Tensor in) const {
    SavedPtr dropped;
    return forward(micro, std::move(in), dropped);
  }

 protected:
  Parameters& parameters() const { return *shared_.parameters; }
  const ModelSpec& spec() const { return shared_.spec; }
  const Layout& layout() const { return shared_.layout; }
  const StageContext& shared_;
};
using UnitPtr = std::unique_ptr<Unit>;

// `layer` counts from the first of the whole model, the encoder's before the decoder's: it names the parameters. The
// constructors add them.
UnitPtr make_embedding(const StageContext&);
// The decoder's embedding of an encoder-decoder, whose table is that of make_embedding, the encoder's.
UnitPtr make_decoder_embedding(const StageContext&);
// The encoder's last norm: its result is what the decoder reads, and no unit's input.
UnitPtr make_encoder_end(const StageContext&);
UnitPtr make_cross_attention(const StageContext&, std::int64_t layer);
UnitPtr make_attention(const StageContext&, std::int64_t layer);
UnitPtr make_latent_attention(const StageContext&, std::int64_t layer);
UnitPtr make_mlp(const StageContext&, std::int64_t layer);
UnitPtr make_moe(const StageContext&, std::int64_t layer);
// table: the embedding's stack when it is tied and on this rank, else kNone.
UnitPtr make_head(const StageContext&, Parameters::Id table);

// The stack of the embedding table, added by make_embedding before anything else.
inline constexpr Parameters::Id kTable = 0;

}  // namespace sweep::model
