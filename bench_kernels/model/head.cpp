// The head: final norm, logits, mean cross-entropy. All but the norm is done in backward, a chunk of the rows at
// a time, so that no tensor of tokens x vocabulary is there whole: the loss is known after backward.
#include <ATen/ATen.h>

#include <cmath>

#include "bench_kernels/kernels/autocast.h"
#include "bench_kernels/model/tensor_parallel.h"

namespace sweep::model {
namespace {

struct HeadSaved final : Saved {
  at::Tensor x, h;
  kernels::NormStats stats;
  std::vector<at::Tensor*> tensors() override { return {&x, &h, &stats.mean, &stats.rstd}; }
};

class Head final : public Unit {
 public:
  Head(const StageContext& shared, Parameters::Id table) : Unit(shared) {
    const shape::Family& family = shape::family_of(spec());
    const shape::TensorNames& names = family.names;
    if (family.scales_tied_head && spec().tie_embeddings)
      scale_ = 1 / std::sqrt(static_cast<double>(spec().hidden_size));
    norm_ = add_norm(shared, std::string(names.final_norm));
    head_.shared = table != Parameters::kNone;
    if (head_.shared) {
      head_.weight = table;
      parameters().also_reads(table);
    } else if (spec().tie_embeddings) {  // a copy of the first stage's table
      head_.weight = parameters().add({vocabulary_part(shared, std::string(names.token_table))},
                                      spec().hidden_size, Init::kUniform, Role::kTied);
    } else {
      head_.weight =
          parameters().add({vocabulary_part(shared, "lm_head.weight")}, spec().hidden_size, Init::kUniform);
    }
    padding_ = parameters().stacks()[head_.weight].parts[0].padding;
  }

  at::Tensor forward(const MicroBatch&, at::Tensor in, SavedPtr& saved) const override {
    auto kept = std::make_unique<HeadSaved>();
    kept->x = std::move(in);
    kept->h = at::empty_like(kept->x);
    kept->stats = forward_norm(shared_, norm_, kept->x, kept->h);
    if (scale_ != 1) kept->h.mul_(scale_);
    saved = std::move(kept);
    return {};
  }

  at::Tensor backward(const MicroBatch& micro, at::Tensor, SavedPtr saved) const override {
    auto& s = static_cast<HeadSaved&>(*saved);
    const bool split = layout().rows_split();
    const at::Tensor h = gathered(s.h);
    // It takes the place of h if nobody reads h later; the weights' part gathers rows of its own.
    const at::Tensor grad = split ? h : room_over(shared_, h);
    gradients(micro, s.h, h, grad);
    const at::Tensor dh = split ? room_over(shared_, s.h) : grad;
    if (split)
      layout().tensor->reduce_scatter(grad, dh).wait();
    else
      layout().tensor->all_reduce(dh).wait();
    if (scale_ != 1) at::Tensor(dh).mul_(scale_);
    backward_norm(shared_, norm_, dh, s.x, s.stats, {}, dh);
    return dh;
  }

  at::Tensor evaluate(const MicroBatch& micro, at::Tensor in) const override {
    SavedPtr saved;
    forward(micro, std::move(in), saved);
    const at::Tensor h = gathered(static_cast<HeadSaved&>(*saved).h);
    saved.reset();
    const std::int64_t most = chunk_rows(h);
    const at::Tensor room = at::empty({most, shared_.vocabulary_rows()}, h.options());
    for (std::int64_t begin = 0; begin < h.size(0); begin += most)
      chunk_loss(micro, h, {begin, std::min(most, h.size(0) - begin)}, room);
    return {};
  }

 private:
  std::int64_t chunk_rows(const at::Tensor& h) const {
    return shape::loss_rows(h.size(0), shared_.vocabulary_rows(), h.element_size(),
                            shared_.options.loss_chunk);
  }
  struct Rows {
    std::int64_t begin = 0, size = 0;
  };
  // The logits of some rows, which become their gradient, in the first rows of that room.
  at::Tensor chunk_loss(const MicroBatch& micro, const at::Tensor& h, Rows rows,
                        const at::Tensor& room) const {
    const at::Tensor logits = room.narrow(0, 0, rows.size);
    kernels::linear(h.narrow(0, rows.begin, rows.size), head_.value(parameters()), {}, logits);
    if (micro.predictions.defined()) predict(logits, micro.predictions.narrow(0, rows.begin, rows.size));
    loss(micro, {micro.labels.narrow(0, rows.begin, rows.size), micro.holes}, logits);
    return logits;
  }
  at::Tensor gathered(const at::Tensor& local) const {
    if (!layout().rows_split()) return local;
    const at::Tensor all = at::empty({shared_.whole_rows(local.size(0)), local.size(1)}, local.options());
    layout().tensor->all_gather(local, all).wait();
    return all;
  }

  // Chunk by chunk of the rows: logits, loss, the gradients of logits, weights and h. The weights' part, where
  // it comes later, reads the gradients of all logits.
  void gradients(const MicroBatch& micro, const at::Tensor& local, const at::Tensor& h,
                 const at::Tensor& grad) const {
    const kernels::Weight weight = head_.value(parameters());
    const std::int64_t rows = h.size(0), entries = shared_.vocabulary_rows(), most = chunk_rows(h);
    const bool later = shared_.later != nullptr, trains = parameters().trains(head_.weight);
    at::Tensor room = at::empty({later ? rows : most, entries}, h.options());
    for (std::int64_t begin = 0; begin < rows; begin += most) {
      const std::int64_t size = std::min(most, rows - begin);
      const at::Tensor in = h.narrow(0, begin, size);
      const at::Tensor logits =
          chunk_loss(micro, h, {begin, size}, later ? room.narrow(0, begin, size) : room);
      if (trains && !later)
        kernels::linear_backward_weight(logits, in, false, parameters().gradients().of_product(head_.weight));
      kernels::linear_backward_input(logits, weight, grad.narrow(0, begin, size));
    }
    if (!trains) return;
    if (!later) {
      room.reset();  // the reduction that begins takes room itself
      return say_ready(parameters(), head_);
    }
    weights_part(shared_, [this, local, room] {
      kernels::linear_backward_weight(room, gathered(local), false,
                                      parameters().gradients().of_product(head_.weight));
      say_ready(parameters(), head_);
    });
  }

  // The logits of entries that there are.
  at::Tensor without_padding(const at::Tensor& logits) const {
    return padding_ > 0 ? logits.narrow(1, 0, logits.size(1) - padding_) : logits;
  }

  // The entry with the largest logit of each row. Over shares of the vocabulary: the first entry of those whose share
  // has the largest, found as the greatest distance to the end.
  void predict(const at::Tensor& logits, at::Tensor to) const {
    const at::Tensor entries = without_padding(logits);
    if (layout().tp() == 1) {
      at::argmax_out(to, entries, 1);
      return;
    }
    at::Tensor mine = at::empty({entries.size(0)}, entries.options());
    at::max_out(mine, to, entries, 1);
    const at::Tensor largest = mine.clone();
    layout().tensor->all_reduce(largest, comm::Channel::Op::kMax).wait();
    to.neg_().add_(spec().vocab_size - *first_entry(shared_)).masked_fill_(mine.ne(largest), 0);
    layout().tensor->all_reduce(to, comm::Channel::Op::kMax).wait();
    to.neg_().add_(spec().vocab_size);
  }

  // Adds the rows' loss; the logits become their gradient, of which that of padding is zero.
  void loss(const MicroBatch& micro, const kernels::Labels& labels, const at::Tensor& logits) const {
    const at::Tensor entries = without_padding(logits);
    const double scale = micro.scale * micro.weight / static_cast<double>(micro.labels.size(0));
    if (shared_.options.autocast)
      kernels::eager_cross_entropy(entries, labels, scale, micro.total);
    else if (layout().tp() == 1)
      kernels::cross_entropy(entries, labels, scale, micro.total);
    else
      joined_loss(entries, labels, scale, micro.total);
    if (padding_ > 0) logits.narrow(1, entries.size(1), padding_).zero_();
  }

  // Over the vocabulary's shares: their largest log-sum-exp, then their weights and the label's logit,
  // summed.
  void joined_loss(const at::Tensor& logits, const kernels::Labels& labels, double scale,
                   const at::Tensor& total) const {
    const std::int64_t rows = logits.size(0), first = *first_entry(shared_);
    const auto exact = logits.options().dtype(kernels::accumulate_type(logits.scalar_type()));
    const at::Tensor lse = at::empty({rows}, exact), sums = at::empty({2, rows}, exact);
    kernels::cross_entropy_share(logits, labels, first, lse, sums.select(0, 1));
    const at::Tensor largest = at::empty_like(lse);
    at::Tensor(largest).copy_(lse);
    layout().tensor->all_reduce(largest, comm::Channel::Op::kMax).wait();
    kernels::cross_entropy_weigh(lse, largest, sums);
    layout().tensor->all_reduce(sums).wait();
    kernels::cross_entropy_join(largest, sums, lse, labels, total);
    kernels::cross_entropy_backward(logits, labels, lse, scale, first);
  }

  NormLayer norm_;
  Linear head_;
  double scale_ = 1;          // factor of what the head reads
  std::int64_t padding_ = 0;  // the last columns of the logits: rows of the table that are no entry
};

}  // namespace

UnitPtr make_head(const StageContext& shared, Parameters::Id table) {
  return std::make_unique<Head>(shared, table);
}

}  // namespace sweep::model
