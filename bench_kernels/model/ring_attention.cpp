#include <ATen/ATen.h>

#include "bench_kernels/kernels/attention_block.h"
#include "bench_kernels/model/attention_core.h"

namespace sweep::model {
namespace {

// A tensor on its way to the next rank of the ring, and the previous rank's on its way here.
class Shift {
 public:
  Shift() = default;
  Shift(comm::Channel& ring, at::Tensor tensor, int tag)
      : arriving_(at::empty_like(tensor)), moving_(ring.shift(tensor, arriving_, /*stride=*/1, tag)) {}
  at::Tensor finish() {
    moving_.wait();
    return std::move(arriving_);
  }

 private:
  at::Tensor arriving_;
  comm::Exchange moving_;
};

constexpr int kKeysAndValues = 1, kGradients = 2;  // tags

class RingAttention final : public AttentionCore {
 public:
  RingAttention(const StageContext& shared, std::int64_t layer) : shared_(shared), layer_(layer) {}

  Kept forward(at::Tensor qkv) const override {
    const at::Tensor q = queries(qkv);
    at::Tensor kv = packed(qkv);
    Shift moving(ring(), kv, kKeysAndValues);
    kernels::AttentionBlock sum = kernels::attention_block(q, half(kv, 0), half(kv, 1), true, scale());
    sum.out = sum.out.to(kernels::accumulate_type(qkv.scalar_type()));
    for (int step = 1; step < ring().size(); ++step) {
      kv = moving.finish();
      if (step + 1 < ring().size()) moving = Shift(ring(), kv, kKeysAndValues);
      const Pair pair = pair_of(step, kv.size(1));
      const auto part = kernels::attention_block(of(q, pair.queries), half(of(kv, pair.keys), 0),
                                                 half(of(kv, pair.keys), 1), false, scale());
      kernels::merge_blocks(
          {of(sum.out, pair.queries), sum.lse.narrow(2, pair.queries.begin, pair.queries.size)}, part);
    }
    const at::Tensor out = sum.out.to(qkv.scalar_type()).view({qkv.size(0), -1});
    return {std::move(qkv), {}, {out, sum.lse, {}}};
  }
  void recall(Kept& kept) const override { kept = forward(std::move(kept.qkv)); }

  // A rank's gradients of its keys and values start at the next rank and come home from the previous one.
  at::Tensor backward(at::Tensor dout, Kept kept) const override {
    const at::Tensor dqkv = at::empty_like(kept.qkv);
    const at::Tensor q = queries(kept.qkv), dq = queries(dqkv), dkv = keys_values(dqkv);
    const kernels::AttentionBlock all{heads_of(kept.state.out), kept.state.saved};
    const at::Tensor grad = heads_of(dout);
    at::Tensor kv = packed(kept.qkv);
    Shift moving(ring(), kv, kKeysAndValues), home;
    kernels::attention_block_backward({grad, q, half(kv, 0), half(kv, 1), all, true, scale()},
                                      {dq, half(dkv, 0), half(dkv, 1), false});
    for (int step = 1; step < ring().size(); ++step) {
      kv = moving.finish();
      if (step + 1 < ring().size()) moving = Shift(ring(), kv, kKeysAndValues);
      const Pair pair = pair_of(step, kv.size(1));
      const at::Tensor mine = at::zeros_like(kv), keys = of(kv, pair.keys), to = of(mine, pair.keys);
      const kernels::AttentionBlock known{of(all.out, pair.queries),
                                          all.lse.narrow(2, pair.queries.begin, pair.queries.size)};
      kernels::attention_block_backward(
          {of(grad, pair.queries), of(q, pair.queries), half(keys, 0), half(keys, 1), known, false, scale()},
          {of(dq, pair.queries), half(to, 0), half(to, 1), true});
      if (step > 1) kernels::add(mine, home.finish());
      home = Shift(ring(), mine, kGradients);
    }
    kernels::add(dkv, home.finish());
    turn(shared_, layer_, dqkv, true);
    return dqkv;
  }

 private:
  struct Run {
    std::int64_t begin, size;
  };
  struct Pair {
    Run queries, keys;
  };
  // Returns which of this rank's queries see which of the keys that arrive with the step. Keys of an earlier
  // rank: all queries see the early half. Keys of a later rank: the late queries see all.
  Pair pair_of(int step, std::int64_t positions) const {
    const std::int64_t piece = positions / 2;
    if (ring().rank() >= step) return {{0, positions}, {0, piece}};
    return {{piece, piece}, {0, positions}};
  }
  static at::Tensor of(const at::Tensor& t, Run run) { return t.narrow(1, run.begin, run.size); }

  comm::Channel& ring() const { return *shared_.layout.context; }
  double scale() const { return 1.0 / std::sqrt(static_cast<double>(shared_.spec.head_dim)); }
  // [B, S, heads, head_dim] of rows.
  at::Tensor heads_of(const at::Tensor& rows) const {
    return rows.view({-1, shared_.local_seq(), rows.size(1) / shared_.spec.head_dim, shared_.spec.head_dim});
  }
  at::Tensor queries(const at::Tensor& qkv) const { return heads_of(qkv).narrow(2, 0, shared_.heads()); }
  at::Tensor keys_values(const at::Tensor& qkv) const {
    return heads_of(qkv).narrow(2, shared_.heads(), 2 * shared_.kv_heads());
  }
  at::Tensor packed(const at::Tensor& qkv) const { return keys_values(qkv).contiguous(); }
  // The keys (0) or the values (1).
  at::Tensor half(const at::Tensor& kv, std::int64_t which) const {
    return kv.narrow(2, which * shared_.kv_heads(), shared_.kv_heads());
  }

  const StageContext& shared_;
  std::int64_t layer_;
};

}  // namespace

std::unique_ptr<AttentionCore> make_ring_attention(const StageContext& shared, std::int64_t layer) {
  return std::make_unique<RingAttention>(shared, layer);
}

}  // namespace sweep::model
