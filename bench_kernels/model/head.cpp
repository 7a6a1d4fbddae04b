// The head: final norm, logits, mean cross-entropy.
#include <ATen/ATen.h>

#include "bench_kernels/model/layers.h"

namespace sweep::model {
namespace {

struct HeadSaved final : Saved {
  at::Tensor x, h, logits, lse;
  kernels::NormStats stats;
};

class Head final : public Unit {
 public:
  Head(const Shared& shared, Parameters::Id table) : Unit(shared) {
    norm_ = add_norm(shared, is_gpt2(spec()) ? "transformer.ln_f" : "model.norm");
    shares_table_ = table != Parameters::kNone;
    if (shares_table_) {
      head_.weight = table;
    } else if (spec().tie_embeddings) {  // a copy of the first stage's table
      head_.weight = parameters().add(
          {{is_gpt2(spec()) ? "transformer.wte.weight" : "model.embed_tokens.weight", spec().vocab_size, {}}},
          spec().hidden_size, Parameters::Init::kUniform, Role::kTied);
    } else {
      head_ =
          add_linear(parameters(), {{"lm_head", spec().vocab_size, {}}}, spec().hidden_size, false, false);
    }
  }

  at::Tensor forward(const MicroStep& micro, at::Tensor in, SavedPtr& saved) const override {
    auto kept = std::make_unique<HeadSaved>();
    HeadSaved& s = *kept;
    s.x = std::move(in);
    s.h = at::empty_like(s.x);
    s.stats = kernels::norm(s.x, norm_of(shared_, norm_), s.h);
    s.logits = at::empty({s.x.size(0), spec().vocab_size}, s.x.options());
    kernels::linear(s.h, head_.value(parameters()), {}, s.logits);
    s.lse = at::empty({s.x.size(0)}, s.x.options().dtype(kernels::accumulate_type(s.x.scalar_type())));
    kernels::cross_entropy(s.logits, micro.labels, s.lse, micro.total);
    saved = std::move(kept);
    return {};
  }

  at::Tensor backward(const MicroStep& micro, at::Tensor, SavedPtr saved) const override {
    auto& s = static_cast<HeadSaved&>(*saved);
    kernels::cross_entropy_backward(s.logits, micro.labels, s.lse,
                                    micro.scale / static_cast<double>(s.x.size(0)));
    kernels::linear_backward_weight(s.logits, s.h, false, parameters().grad(head_.weight));
    if (!shares_table_) parameters().ready(head_.weight);  // else the embedding says so
    kernels::linear_backward_input(s.logits, head_.value(parameters()), s.h);
    s.logits.reset();
    backward_norm(shared_, norm_, s.h, s.x, s.stats, {}, s.h);
    return std::move(s.h);
  }

 private:
  NormLayer norm_;
  Linear head_;
  bool shares_table_ = false;
};

}  // namespace

UnitPtr make_head(const Shared& shared, Parameters::Id table) {
  return std::make_unique<Head>(shared, table);
}

}  // namespace sweep::model
