#include "bench_kernels/model/attention_core.h"

#include <ATen/ATen.h>

#include "bench_kernels/model/layers.h"

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
    backward_sinks(shared_, sinks, 0, dout, shape(kept.qkv), kept.state);
    const at::Tensor dqkv = at::empty_like(kept.qkv);
    kernels::attention_backward(dout, kept.qkv, shape(kept.qkv), kept.state, dqkv, shared_.angles_of(layer_),
                                bias_gradient());
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
            !encoder,
            0,
            sinks_of(shared_, sinks, 0, shared_.heads()),
            relative() ? shared_.bias_of(layer_).values : at::Tensor(),
            !relative()};
  }
  bool relative() const { return shape::family_of(shared_.spec).relative_positions; }
  // The layers of a side add to one tensor, which the first backward makes; undefined: there is no bias.
  at::Tensor bias_gradient() const {
    if (!relative()) return {};
    ScoreBias& bias = shared_.bias_of(layer_);
    if (!bias.gradient.defined())
      bias.gradient = at::zeros_like(
          bias.values, bias.values.options().dtype(kernels::accumulate_type(bias.values.scalar_type())));
    return bias.gradient;
  }
  const StageContext& shared_;
  std::int64_t layer_;
};

}  // namespace

at::Tensor sinks_of(const StageContext& shared, Parameters::Id id, std::int64_t first, std::int64_t heads) {
  return id == Parameters::kNone ? at::Tensor() : (*shared.parameters)[id].narrow(0, first, heads);
}

void backward_sinks(const StageContext& shared, Parameters::Id id, std::int64_t first, const at::Tensor& dout,
                    const kernels::AttentionShape& shape, const kernels::AttentionState& state) {
  const Parameters& p = *shared.parameters;
  if (id == Parameters::kNone || !p.trains(id)) return;
  at::Tensor grad = kernels::sinks_backward(dout, shape, state);
  if (shape.heads < shared.heads()) {  // other ranks of the context group have the other heads
    const at::Tensor all = at::zeros({shared.heads()}, grad.options());
    all.narrow(0, first, shape.heads).copy_(grad);
    grad = all;
  }
  weights_part(shared, [&p, id, grad] {
    kernels::put(p.gradients().of(id), grad);
    p.gradients().ready(id);
  });
}

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
