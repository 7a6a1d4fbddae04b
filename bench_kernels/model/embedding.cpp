// The embedding: rows of the token table, plus learned positions where the family has them.
#include <ATen/ATen.h>

#include "bench_kernels/model/layers.h"

namespace sweep::model {
namespace {

class Embedding final : public Unit {
 public:
  explicit Embedding(const Shared& shared) : Unit(shared) {
    const ModelSpec& s = spec();
    const bool gpt2 = is_gpt2(s);
    table_ = parameters().add(
        {{gpt2 ? "transformer.wte.weight" : "model.embed_tokens.weight", s.vocab_size, {}}}, s.hidden_size,
        Parameters::Init::kUniform, s.tie_embeddings && layout().tied_elsewhere ? Role::kTied : Role::kDense);
    TORCH_INTERNAL_ASSERT(table_ == kTable);
    if (s.rope) return;
    positions_ = parameters().add(
        {{gpt2 ? "transformer.wpe.weight" : "model.embed_positions.weight", s.max_positions, {}}},
        s.hidden_size, Parameters::Init::kUniform);
  }

  at::Tensor forward(const MicroStep& micro, at::Tensor, SavedPtr&) const override {
    const at::Tensor& table = parameters()[table_];
    const at::Tensor out = at::empty({micro.tokens.size(0), table.size(1)}, table.options());
    kernels::embed(table, learned() ? parameters()[positions_] : at::Tensor(), micro.tokens,
                   shared_.local_seq(), out);
    return out;
  }

  at::Tensor backward(const MicroStep& micro, at::Tensor grad, SavedPtr) const override {
    kernels::embed_backward(grad, micro.tokens, shared_.local_seq(), parameters().grad(table_),
                            learned() ? parameters().grad(positions_) : kernels::GradOut());
    if (learned()) parameters().ready(positions_);
    parameters().ready(table_);
    return {};
  }

 private:
  bool learned() const { return positions_ != Parameters::kNone; }
  Parameters::Id table_ = Parameters::kNone, positions_ = Parameters::kNone;
};

}  // namespace

UnitPtr make_embedding(const Shared& shared) {
  return std::make_unique<Embedding>(shared);
}

}  // namespace sweep::model
