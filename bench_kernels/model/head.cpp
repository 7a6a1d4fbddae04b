// The head: final norm, logits, mean cross-entropy.
#include <ATen/ATen.h>

#include "bench_kernels/model/tensor_parallel.h"

namespace sweep::model {
namespace {

struct HeadSaved final : Saved {
  at::Tensor x, h, logits, lse;
  kernels::NormStats stats;
  std::vector<at::Tensor*> tensors() override { return {&x, &h, &logits, &lse, &stats.mean, &stats.rstd}; }
};

class Head final : public Unit {
 public:
  Head(const StageContext& shared, Parameters::Id table) : Unit(shared) {
    const shape::TensorNames& names = shape::family_of(spec()).names;
    norm_ = add_norm(shared, std::string(names.final_norm));
    head_.shared = table != Parameters::kNone;
    if (head_.shared) {
      head_.weight = table;
      parameters().also_reads(table);
    } else if (spec().tie_embeddings) {  // a copy of the first stage's table
      head_.weight = parameters().add({vocabulary_part(shared, std::string(names.token_table))},
                                      spec().hidden_size, Parameters::Init::kUniform, Role::kTied);
    } else {
      head_.weight = parameters().add({vocabulary_part(shared, "lm_head.weight")}, spec().hidden_size,
                                      Parameters::Init::kUniform);
    }
    padding_ = parameters().stacks()[head_.weight].parts[0].padding;
  }

  at::Tensor forward(const MicroBatch& micro, at::Tensor in, SavedPtr& saved) const override {
    auto kept = std::make_unique<HeadSaved>();
    HeadSaved& s = *kept;
    s.x = std::move(in);
    s.h = at::empty_like(s.x);
    s.stats = kernels::norm(s.x, norm_of(shared_, norm_), s.h);
    const std::int64_t rows = micro.labels.size(0);
    s.logits = at::empty({rows, shared_.vocabulary_rows()}, s.x.options());
    column_forward(shared_, head_, s.h, s.logits);
    s.lse = at::empty({rows}, s.x.options().dtype(kernels::accumulate_type(s.x.scalar_type())));
    cross_entropy(micro, s);
    saved = std::move(kept);
    return {};
  }

  at::Tensor backward(const MicroBatch& micro, at::Tensor, SavedPtr saved) const override {
    auto& s = static_cast<HeadSaved&>(*saved);
    kernels::cross_entropy_backward(entries(s.logits), micro.labels, s.lse,
                                    micro.scale / static_cast<double>(s.logits.size(0)),
                                    first_entry(shared_));
    if (padding_ > 0) s.logits.narrow(1, s.logits.size(1) - padding_, padding_).zero_();
    const at::Tensor dh = column_backward(shared_, head_, s.logits, s.h);
    s.logits.reset();
    backward_norm(shared_, norm_, dh, s.x, s.stats, {}, dh);
    return dh;
  }

 private:
  // The logits without those of padding, which the softmax does not see.
  at::Tensor entries(const at::Tensor& logits) const {
    return padding_ > 0 ? logits.narrow(1, 0, logits.size(1) - padding_) : logits;
  }

  // Over the vocabulary's shares: their largest log-sum-exp, then their weights and the label's logit,
  // summed.
  void cross_entropy(const MicroBatch& micro, const HeadSaved& s) const {
    const at::Tensor logits = entries(s.logits);
    if (layout().tp() == 1) return kernels::cross_entropy(logits, micro.labels, s.lse, micro.total);
    const at::Tensor sums = at::empty({2, s.lse.size(0)}, s.lse.options()), largest = at::empty_like(s.lse);
    kernels::cross_entropy_share(logits, micro.labels, *first_entry(shared_), s.lse, sums.select(0, 1));
    at::Tensor(largest).copy_(s.lse);
    layout().tensor->all_reduce(largest, comm::Channel::Op::kMax).wait();
    kernels::cross_entropy_weigh(s.lse, largest, sums);
    layout().tensor->all_reduce(sums).wait();
    kernels::cross_entropy_join(largest, sums, s.lse, micro.total);
  }

  NormLayer norm_;
  Linear head_;
  std::int64_t padding_ = 0;  // the last columns of the logits: rows of the table that are no entry
};

}  // namespace

UnitPtr make_head(const StageContext& shared, Parameters::Id table) {
  return std::make_unique<Head>(shared, table);
}

}  // namespace sweep::model
