#include <ATen/ATen.h>

#include <numeric>

#include "bench_kernels/model/attention_core.h"

namespace sweep::model {
namespace {

// Rows of columns in sections (q, k, v heads), of each of which every rank of the group takes an equal share:
// from all columns of this rank's positions to a share of the columns of all positions, and back.
class Exchange {
 public:
  Exchange(comm::Channel& group, std::int64_t local_seq, std::vector<std::int64_t> sections)
      : group_(group), local_seq_(local_seq), sections_(std::move(sections)) {}

  // [B * local_seq, columns] -> [B * seq, columns / ranks], in the order of the positions.
  at::Tensor to_heads(const at::Tensor& rows) const {
    const at::Tensor packed = at::empty({ranks(), rows.size(0), width()}, rows.options());
    each_share(packed, rows,
               [](const at::Tensor& share, const at::Tensor& columns) { copy(share, columns); });
    const at::Tensor received = at::empty_like(packed);
    group_.all_to_all(packed, received).wait();
    each_piece(received, packed,
               [](const at::Tensor& piece, const at::Tensor& ordered) { copy(ordered, piece); });
    return packed.view({rows.size(0) * ranks(), width()});
  }
  // The reverse.
  at::Tensor to_positions(const at::Tensor& ordered) const {
    const std::int64_t rows = ordered.size(0) / ranks();
    const at::Tensor packed = at::empty({ranks(), rows, width()}, ordered.options());
    each_piece(packed, ordered, [](const at::Tensor& piece, const at::Tensor& from) { copy(piece, from); });
    const at::Tensor received = at::empty_like(packed);
    group_.all_to_all(packed, received).wait();
    const at::Tensor out = packed.view({rows, width() * ranks()});
    each_share(received, out,
               [](const at::Tensor& share, const at::Tensor& columns) { copy(columns, share); });
    return out;
  }

 private:
  static void copy(at::Tensor to, const at::Tensor& from) { to.copy_(from); }
  std::int64_t ranks() const { return group_.size(); }
  std::int64_t width() const {
    return std::accumulate(sections_.begin(), sections_.end(), std::int64_t{0}) / ranks();
  }
  // f(what of `shares` belongs to a rank, the columns of `rows` that it is).
  template <class F>
  void each_share(const at::Tensor& shares, const at::Tensor& rows, F&& f) const {
    for (std::int64_t rank = 0; rank < ranks(); ++rank) {
      std::int64_t at = 0, begin = 0;
      for (const std::int64_t section : sections_) {
        const std::int64_t size = section / ranks();
        f(shares.select(0, rank).narrow(1, at, size), rows.narrow(1, begin + rank * size, size));
        at += size, begin += section;
      }
    }
  }
  // f(an early or late piece of a rank's positions, the same positions in order): positions.h.
  template <class F>
  void each_piece(const at::Tensor& by_rank, const at::Tensor& ordered, F&& f) const {
    const std::int64_t piece = local_seq_ / 2;
    const at::Tensor from = by_rank.view({ranks(), -1, 2, piece, width()});
    const at::Tensor to = ordered.view({-1, 2 * ranks(), piece, width()});
    for (std::int64_t rank = 0; rank < ranks(); ++rank) {
      f(from.select(0, rank).select(1, 0), to.select(1, rank));
      f(from.select(0, rank).select(1, 1), to.select(1, 2 * ranks() - 1 - rank));
    }
  }

  comm::Channel& group_;
  std::int64_t local_seq_;
  std::vector<std::int64_t> sections_;
};

class HeadExchange final : public AttentionCore {
 public:
  HeadExchange(const StageContext& shared, std::int64_t layer) : shared_(shared), layer_(layer) {}

  Kept forward(at::Tensor rows) const override {
    Kept kept{qkv_exchange().to_heads(rows), {}, {}};
    rows.reset();
    recall(kept);
    return kept;
  }
  void recall(Kept& kept) const override {
    kept.state = kernels::attention(kept.qkv, shape(kept.qkv), shared_.mask_of(layer_));
    kept.out = out_exchange().to_positions(kept.state.out);
  }
  at::Tensor backward(at::Tensor dout, Kept kept) const override {
    kept.out.reset();
    const at::Tensor grad = out_exchange().to_heads(dout);
    dout.reset();
    backward_sinks(shared_, sinks, first_head(), grad, shape(kept.qkv), kept.state);
    const at::Tensor dqkv = at::empty_like(kept.qkv);
    kernels::attention_backward(grad, kept.qkv, shape(kept.qkv), kept.state, dqkv);
    const at::Tensor rows = qkv_exchange().to_positions(dqkv);
    turn(shared_, layer_, rows, true);
    return rows;
  }

 private:
  std::int64_t columns(std::int64_t heads) const { return heads * shared_.spec.head_dim; }
  Exchange qkv_exchange() const {
    const std::int64_t kv = columns(shared_.kv_heads());
    return {*shared_.layout.context, shared_.local_seq(), {columns(shared_.heads()), kv, kv}};
  }
  Exchange out_exchange() const {
    return {*shared_.layout.context, shared_.local_seq(), {columns(shared_.heads())}};
  }
  kernels::AttentionShape shape(const at::Tensor& rows) const {
    const std::int64_t seq = shared_.options.seq_len, cp = shared_.layout.cp();
    kernels::AttentionShape shape{rows.size(0) / seq,         seq,
                                  shared_.heads() / cp,       shared_.kv_heads() / cp,
                                  shared_.spec.head_dim,      shared_.options.attention,
                                  shared_.spec.window(layer_)};
    shape.sinks = sinks_of(shared_, sinks, first_head(), shared_.heads() / cp);
    return shape;
  }
  // The first head of this rank's share, while it has all positions.
  std::int64_t first_head() const {
    return shared_.layout.context->rank() * shared_.heads() / shared_.layout.cp();
  }

  const StageContext& shared_;
  std::int64_t layer_;
};

}  // namespace

std::unique_ptr<AttentionCore> make_head_exchange(const StageContext& shared, std::int64_t layer) {
  return std::make_unique<HeadExchange>(shared, layer);
}

}  // namespace sweep::model
