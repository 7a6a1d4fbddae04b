// Transformer: the plain decoder-only model of one rank: embedding, blocks of attention and MLP each behind a
// norm and added to the residual stream, final norm, head, mean cross-entropy. It owns parameters and
// position tables and builds one autograd node per half block; each node's backward is written by hand and
// puts parameter gradients straight where they belong. It knows nothing of ranks, optimizers or where tokens
// come from.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "bench_kernels/model/parameters.h"
#include "schema/model_spec.h"

namespace sweep::model {

enum class Attention { kMath, kFlash };

struct Options {
  at::Device device = at::kCPU;
  at::ScalarType type = at::kFloat;
  Attention attention = Attention::kFlash;
  std::int64_t seq_len = 0;
  std::uint64_t seed = 1;
};

// What one micro-step adds to: gradients are overwritten by the first and added to by later ones.
struct MicroStep {
  bool first = true;
  double scale = 1.0;  // of the mean loss, before its gradient is taken (1 / micro-steps)
  at::Tensor total;    // float64 [1] on the device: grows by the sum of the tokens' losses
};

struct Linear {
  Parameters::Stack weight, bias;  // bias.parts empty: none
  bool transposed = false;
  kernels::Weight value() const { return {weight.whole, bias.whole, transposed}; }
};
struct NormLayer {
  Parameters::Id w = Parameters::kNone, b = Parameters::kNone;
};
struct Block {
  NormLayer attention_norm, mlp_norm;
  Linear qkv, out, in, down;  // in: gate and up stacked, or c_fc
};

class Transformer {
 public:
  Transformer(const ModelSpec&, const Options&);
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  // tokens and labels are int64 [batch * seq_len] on the device. Returns a scalar whose backward fills the
  // gradients; its own gradient is taken to be one.
  at::Tensor loss(const at::Tensor& tokens, const at::Tensor& labels, const MicroStep&) const;

  Parameters& parameters() { return parameters_; }
  const Parameters& parameters() const { return parameters_; }
  const ModelSpec& spec() const { return spec_; }
  const Options& options() const { return options_; }

 private:
  friend struct EmbedNode;
  friend struct AttentionNode;
  friend struct MlpNode;
  friend struct HeadNode;

  Linear add_linear(const std::vector<Parameters::Part>&, std::int64_t inputs, bool bias, bool transposed);
  NormLayer add_norm(const std::string& name);
  void add_block(std::int64_t layer);
  void make_tables();
  kernels::Norm norm_of(const NormLayer&) const;
  kernels::AttentionShape attention_shape(std::int64_t batch) const;
  void backward_weight(const Linear&, const at::Tensor& dout, const at::Tensor& in, bool add) const;
  void backward_norm(const NormLayer&, const at::Tensor& dy, const at::Tensor& x, const kernels::NormStats&,
                     const at::Tensor& residual, const at::Tensor& dx, bool add) const;

  ModelSpec spec_;
  Options options_;
  Parameters parameters_;
  Parameters::Id table_ = Parameters::kNone, positions_ = Parameters::kNone;
  std::vector<Block> blocks_;
  NormLayer final_norm_;
  Linear head_;  // tied: its weight is the table
  at::Tensor cos_, sin_, mask_;
};

}  // namespace sweep::model
