// The attention half of a block: norm, q k v, rotary positions, causal attention, output, residual.
#include <ATen/ATen.h>

#include "bench_kernels/model/layers.h"

namespace sweep::model {
namespace {

struct AttentionSaved final : Saved {
  at::Tensor x, h, qkv;
  kernels::NormStats stats;
  kernels::AttentionState state;
};

class AttentionUnit final : public Unit {
 public:
  AttentionUnit(const Shared& shared, std::int64_t layer) : Unit(shared) {
    const ModelSpec& s = spec();
    const auto name = [&](const char* llama, const char* gpt2) { return in_block(s, layer, llama, gpt2); };
    const std::int64_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
    norm_ = add_norm(shared, name("input_layernorm", "ln_1"));
    const bool conv = is_gpt2(s);  // one fused q, k, v tensor, weights [in, out]
    if (conv) {
      qkv_ = add_linear(parameters(), {{name("", "attn.c_attn"), q + 2 * kv, {}}}, s.hidden_size,
                        s.attention_bias, true);
    } else {
      qkv_ = add_linear(parameters(),
                        {{name("self_attn.q_proj", ""), q, {}},
                         {name("self_attn.k_proj", ""), kv, {}},
                         {name("self_attn.v_proj", ""), kv, {}}},
                        s.hidden_size, s.attention_bias, false);
    }
    out_ = add_linear(parameters(), {{name("self_attn.o_proj", "attn.c_proj"), s.hidden_size, {}}}, q,
                      s.linear_bias, conv);
  }

  at::Tensor forward(const MicroStep&, at::Tensor in, SavedPtr& saved) const override {
    auto kept = std::make_unique<AttentionSaved>();
    AttentionSaved& s = *kept;
    s.x = std::move(in);
    s.h = at::empty_like(s.x);
    s.stats = kernels::norm(s.x, norm_of(shared_, norm_), s.h);
    s.qkv = at::empty({s.x.size(0), (spec().heads + 2 * spec().kv_heads) * spec().head_dim}, s.x.options());
    kernels::linear(s.h, qkv_.value(parameters()), {}, s.qkv);
    rotate(s.qkv, false);
    s.state = kernels::attention(s.qkv, shape(s.x), shared_.mask);
    const at::Tensor out = at::empty_like(s.x);
    kernels::linear(s.state.out, out_.value(parameters()), s.x, out);
    saved = std::move(kept);
    return out;
  }

  at::Tensor backward(const MicroStep&, at::Tensor grad, SavedPtr saved) const override {
    auto& s = static_cast<AttentionSaved&>(*saved);
    const at::Tensor dqkv = at::empty_like(s.qkv);
    {
      const at::Tensor dout = at::empty_like(s.state.out);
      kernels::linear_backward_input(grad, out_.value(parameters()), dout);
      backward_weight(parameters(), out_, grad, s.state.out);
      kernels::attention_backward(dout, s.qkv, shape(s.x), s.state, dqkv);
      s.state = {};
      s.qkv.reset();
    }
    rotate(dqkv, true);
    backward_weight(parameters(), qkv_, dqkv, s.h);
    kernels::linear_backward_input(dqkv, qkv_.value(parameters()), s.h);
    backward_norm(shared_, norm_, s.h, s.x, s.stats, grad, s.h);
    return std::move(s.h);
  }

 private:
  kernels::AttentionShape shape(const at::Tensor& x) const {
    const std::int64_t seq = shared_.local_seq();
    return {x.size(0) / seq,      seq,
            spec().heads,         spec().kv_heads,
            spec().head_dim,      shared_.options.attention == Attention::kFlash,
            spec().sliding_window};
  }
  void rotate(const at::Tensor& rows, bool back) const {
    if (spec().rope)
      kernels::rope(rows, spec().heads + spec().kv_heads, spec().head_dim, shared_.cos, shared_.sin, back);
  }

  NormLayer norm_;
  Linear qkv_, out_;
};

}  // namespace

UnitPtr make_attention(const Shared& shared, std::int64_t layer) {
  return std::make_unique<AttentionUnit>(shared, layer);
}

}  // namespace sweep::model
