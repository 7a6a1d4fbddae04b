// The embedding: rows of the token table, plus learned positions where the family has them.
#include <ATen/ATen.h>

#include <cmath>

#include "bench_kernels/model/tensor_parallel.h"

namespace sweep::model {
namespace {

class Embedding final : public Unit {
 public:
  explicit Embedding(const StageContext& shared) : Unit(shared) {
    const ModelSpec& s = spec();
    const shape::Family& family = shape::family_of(s);
    if (family.scales_embedding) scale_ = std::sqrt(static_cast<double>(s.hidden_size));
    const std::string name(family.names.token_table);
    table_ = parameters().add({vocabulary_part(shared, name)}, s.hidden_size, Parameters::Init::kUniform,
                              s.tie_embeddings && layout().tied_elsewhere ? Role::kTied : Role::kDense);
    TORCH_INTERNAL_ASSERT(table_ == kTable);
    if (s.rope) return;
    positions_ = parameters().add({{std::string(family.names.position_table), s.max_positions, {}}},
                                  s.hidden_size, Parameters::Init::kUniform);
  }

  // Each rank of the tensor group adds the rows that it holds, the first one the positions.
  at::Tensor forward(const MicroBatch& micro, at::Tensor, SavedPtr&) const override {
    const at::Tensor& table = parameters()[table_];
    const at::Tensor out =
        at::empty({shared_.held_rows(micro.tokens.size(0)), table.size(1)}, table.options());
    const bool adds = learned() && layout().tensor->rank() == 0;
    const auto embed = [&](std::int64_t, const at::Tensor& to) {
      kernels::embed(table, adds ? parameters()[positions_] : at::Tensor(), tokens_of(micro), to);
    };
    sum_rows(layout(), out, embed, false);
    if (scale_ != 1) out.mul_(scale_);
    return out;
  }

  at::Tensor backward(const MicroBatch& micro, at::Tensor grad, SavedPtr) const override {
    if (!parameters().trains(table_)) return {};
    if (scale_ != 1) grad.mul_(scale_);
    weights_part(shared_, [this, micro, grad = std::move(grad)] {
      WholeRows whole(layout(), grad, false);
      whole.each([&](const at::Tensor& rows, std::int64_t) {
        kernels::embed_backward(rows, tokens_of(micro), parameters().grad(table_),
                                learned() ? parameters().grad(positions_) : kernels::GradOut());
      });
      if (learned()) parameters().ready(positions_);
      parameters().ready(table_);
    });
    return {};
  }

 private:
  kernels::Tokens tokens_of(const MicroBatch& micro) const {
    if (micro.documents != nullptr)
      return {micro.tokens, micro.tokens.size(0), first_entry(shared_), micro.documents->places};
    return {micro.tokens, shared_.local_seq(), first_entry(shared_), shared_.places};
  }
  bool learned() const { return positions_ != Parameters::kNone; }
  double scale_ = 1;
  Parameters::Id table_ = Parameters::kNone, positions_ = Parameters::kNone;
};

}  // namespace

UnitPtr make_embedding(const StageContext& shared) {
  return std::make_unique<Embedding>(shared);
}

}  // namespace sweep::model
