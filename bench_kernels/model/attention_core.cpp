#include "bench_kernels/model/attention_core.h"

#include <ATen/ATen.h>

namespace sweep::model {
namespace {

// All positions are here.
class WholeAttention final : public AttentionCore {
 public:
  WholeAttention(const StageContext& shared, std::int64_t layer) : shared_(shared), layer_(layer) {}

  Kept forward(at::Tensor qkv) const override {
    kernels::AttentionState state = kernels::attention(qkv, shape(qkv), shared_.mask_of(layer_));
    return {std::move(qkv), {}, std::move(state)};
  }
  void recall(Kept& kept) const override { kept = forward(std::move(kept.qkv)); }
  at::Tensor backward(at::Tensor dout, Kept kept) const override {
    const at::Tensor dqkv = at::empty_like(kept.qkv);
    kernels::attention_backward(dout, kept.qkv, shape(kept.qkv), kept.state, dqkv, shared_.angles_of(layer_));
    return dqkv;
  }

 private:
  kernels::AttentionShape shape(const at::Tensor& rows) const {
    const bool encoder = layer_ < shared_.spec.encoder_layers;
    const std::int64_t seq = encoder ? shared_.options.encoder_seq_len : shared_.local_seq();
    return {rows.size(0) / seq,
            seq,
            shared_.heads(),
            shared_.kv_heads(),
            shared_.spec.head_dim,
            shared_.options.attention,
            shared_.spec.window(layer_),
            shared_.documents,
            shared_.options.autocast,
            !encoder};
  }
  const StageContext& shared_;
  std::int64_t layer_;
};

}  // namespace

void turn(const StageContext& shared, std::int64_t layer, const at::Tensor& rows, bool back) {
  const kernels::Angles& angles = shared.angles_of(layer);
  if (shared.spec.rope)
    kernels::rope(rows, shared.heads() + shared.kv_heads(), shared.spec.head_dim, angles.cos, angles.sin,
                  back);
}

std::unique_ptr<AttentionCore> make_attention_core(const StageContext& shared, std::int64_t layer) {
  if (shared.layout.cp() == 1) return std::make_unique<WholeAttention>(shared, layer);
  return shared.layout.context_all_to_all ? make_head_exchange(shared, layer)
                                          : make_ring_attention(shared, layer);
}

}  // namespace sweep::model
