#include "bench_kernels/model/attention_core.h"

#include <ATen/ATen.h>

namespace sweep::model {
namespace {

// All positions are here.
class WholeAttention final : public AttentionCore {
 public:
  WholeAttention(const StageContext& shared, bool encoder) : shared_(shared), encoder_(encoder) {}

  Kept forward(at::Tensor qkv) const override {
    kernels::AttentionState state = kernels::attention(qkv, shape(qkv), shared_.mask);
    return {std::move(qkv), {}, std::move(state)};
  }
  void recall(Kept& kept) const override { kept = forward(std::move(kept.qkv)); }
  at::Tensor backward(at::Tensor dout, Kept kept) const override {
    const at::Tensor dqkv = at::empty_like(kept.qkv);
    kernels::attention_backward(dout, kept.qkv, shape(kept.qkv), kept.state, dqkv,
                                {shared_.cos, shared_.sin});
    return dqkv;
  }

 private:
  kernels::AttentionShape shape(const at::Tensor& rows) const {
    const std::int64_t seq = encoder_ ? shared_.options.encoder_seq_len : shared_.local_seq();
    return {rows.size(0) / seq,
            seq,
            shared_.heads(),
            shared_.kv_heads(),
            shared_.spec.head_dim,
            shared_.options.attention,
            shared_.spec.sliding_window,
            shared_.documents,
            !encoder_};
  }
  const StageContext& shared_;
  bool encoder_;
};

}  // namespace

void turn(const StageContext& shared, const at::Tensor& rows, bool back) {
  if (shared.spec.rope)
    kernels::rope(rows, shared.heads() + shared.kv_heads(), shared.spec.head_dim, shared.cos, shared.sin,
                  back);
}

std::unique_ptr<AttentionCore> make_attention_core(const StageContext& shared, bool encoder) {
  if (shared.layout.cp() == 1) return std::make_unique<WholeAttention>(shared, encoder);
  return shared.layout.context_all_to_all ? make_head_exchange(shared) : make_ring_attention(shared);
}

}  // namespace sweep::model
