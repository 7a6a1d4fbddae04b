// The attention half of a block with multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): a
// token's keys and values come from one latent of few numbers, its queries from another or from the residual stream;
// the rest is causal attention as elsewhere. Over a tensor group heads are split; every rank makes the latents of all
// rows, and their gradient is summed. The rotary part of keys, one for all heads, counts to the latents.
#include <ATen/ATen.h>

#include <iterator>
#include <optional>

#include "bench_kernels/kernels/latent.h"
#include "bench_kernels/model/attention_core.h"
#include "bench_kernels/model/tensor_parallel.h"

namespace sweep::model {
namespace {

// A latent before and after its norm, [rows, rank].
struct Latent {
  at::Tensor before, after;
  kernels::NormStats stats;
};

struct LatentSaved final : Saved {
  at::Tensor x, h;  // h: all rows
  Latent query, key_value;
  at::Tensor low_latents, low_query, low_key_value, low_out;  // between the matrices of adapters
  AttentionCore::Kept core;
  at::Tensor values;  // the heads' results, without the padding of values
  kernels::NormStats stats;
  std::vector<at::Tensor*> tensors() override {
    std::vector<at::Tensor*> all{&x,        &h,        &values,         &stats.mean,      &stats.rstd,
                                 &core.qkv, &core.out, &core.state.out, &core.state.saved};
    for (at::Tensor* low : {&low_latents, &low_query, &low_key_value, &low_out}) all.push_back(low);
    for (Latent* latent : {&query, &key_value})
      for (at::Tensor* tensor : {&latent->before, &latent->after, &latent->stats.rstd}) all.push_back(tensor);
    return all;
  }
};

class LatentAttentionUnit final : public Unit {
 public:
  // Stacks are added so that backward completes them in the reverse order.
  LatentAttentionUnit(const StageContext& shared, std::int64_t layer)
      : Unit(shared), core_(make_attention_core(shared, layer)), layer_(layer) {
    const ModelSpec& s = spec();
    const shape::TensorNames& names = shape::family_of(s).names;
    const auto name = [&](std::string_view module) { return in_layer(s, layer, module); };
    const std::int64_t plain = s.head_dim - s.rope_head_dim;
    norm_ = add_norm(shared, name(names.attention_norm));
    std::vector<LinearPart> latents;
    const bool adapted = shared.options.adapters.attention_out;  // all four products, or none
    if (has_query_latent()) latents.push_back({name(names.query_down), {s.q_lora_rank}, adapted});
    latents.push_back({name(names.key_value_down), {s.kv_lora_rank + s.rope_head_dim}, adapted});
    down_ = add_linear(shared, latents, s.hidden_size, false, false, Split::kNone);
    if (has_query_latent())
      query_norm_ = add_latent_norm(shared, name(names.query_latent_norm), s.q_lora_rank);
    key_value_norm_ = add_latent_norm(shared, name(names.key_value_latent_norm), s.kv_lora_rank);
    const std::string_view query = has_query_latent() ? names.query_up : names.query;
    query_ = add_linear(shared, {{name(query), {s.heads * s.head_dim}, adapted}},
                        has_query_latent() ? s.q_lora_rank : s.hidden_size, false, false, Split::kColumns);
    key_value_ = add_linear(shared, {{name(names.key_value_up), {s.heads * (plain + s.v_head_dim)}, adapted}},
                            s.kv_lora_rank, false, false, Split::kColumns);
    out_ = add_linear(shared, {{name(names.attention_out), {s.hidden_size}, adapted}}, s.heads * s.v_head_dim,
                      false, false, Split::kRows);
  }

  at::Tensor forward(const MicroBatch&, at::Tensor in, SavedPtr& saved) const override {
    auto kept = std::make_unique<LatentSaved>();
    LatentSaved& s = *kept;
    s.x = std::move(in);
    s.h = at::empty_like(s.x);
    const kernels::Start start = row_start(shared_, out_, s.x);
    s.stats = kernels::norm(s.x, norm_of(shared_, norm_), s.h, start);
    s.h = all_rows(layout(), s.h);
    at::Tensor qkv = heads_of(s);
    turn(shared_, layer_, qkv, false);
    s.core = core_->forward(std::move(qkv));
    take_values(s);
    const at::Tensor out = start.out.defined() ? start.out : at::empty_like(s.x);
    s.low_out = row_forward(shared_, out_, s.values, start.out.defined() ? out : s.x, out);
    if (shared_.options.recompute == Recompute::kSelective) {
      s.core = {std::move(s.core.qkv), {}, {}};
      s.values.reset();
    }
    saved = std::move(kept);
    return out;
  }

  at::Tensor backward(const MicroBatch&, at::Tensor grad, SavedPtr saved) const override {
    auto& s = static_cast<LatentSaved&>(*saved);
    if (!s.values.defined()) {
      core_->recall(s.core);
      take_values(s);
    }
    at::Tensor dout = backward_values(s, grad);
    at::Tensor dqkv = core_->backward(std::move(dout), std::move(s.core));
    const at::Tensor dx = backward_latents(s, std::move(dqkv));
    backward_norm(shared_, norm_, dx, s.x, s.stats, grad, dx);
    return dx;
  }

 private:
  bool has_query_latent() const { return spec().q_lora_rank > 0; }
  kernels::LatentHeads heads() const {
    return {shared_.heads(), spec().head_dim - spec().rope_head_dim, spec().rope_head_dim, spec().v_head_dim};
  }
  std::int64_t expanded() const { return heads().heads * (heads().plain + heads().value); }
  at::Tensor room(const at::Tensor& like, std::int64_t columns) const {
    return at::empty({like.size(0), columns}, like.options());
  }
  at::Tensor product(const at::Tensor& rows, const Linear& linear, const at::Tensor& out) const {
    return whole_forward(shared_, linear, rows, out);
  }

  // Columns of the latents: the queries', the keys' and values', and the rotary part of keys.
  at::Tensor columns_of_query(const at::Tensor& latents) const {
    return latents.narrow(1, 0, spec().q_lora_rank);
  }
  at::Tensor columns_of_key_value(const at::Tensor& latents) const {
    return latents.narrow(1, spec().q_lora_rank, spec().kv_lora_rank);
  }
  at::Tensor columns_of_rotary(const at::Tensor& latents) const {
    return latents.narrow(1, spec().q_lora_rank + spec().kv_lora_rank, spec().rope_head_dim);
  }
  std::int64_t latent_columns() const {
    return spec().q_lora_rank + spec().kv_lora_rank + spec().rope_head_dim;
  }

  void normalise(Latent& latent, const at::Tensor& columns, const NormLayer& norm) const {
    latent.before = at::empty(columns.sizes(), columns.options());
    latent.before.copy_(columns);
    latent.after = at::empty_like(latent.before);
    latent.stats = kernels::norm(latent.before, norm_of(shared_, norm), latent.after);
  }

  // The packed q, k and v of all rows, before they turn to their positions.
  at::Tensor heads_of(LatentSaved& s) const {
    const at::Tensor latents = room(s.h, latent_columns());
    s.low_latents = product(s.h, down_, latents);
    normalise(s.key_value, columns_of_key_value(latents), key_value_norm_);
    if (has_query_latent()) normalise(s.query, columns_of_query(latents), *query_norm_);
    const at::Tensor q = room(s.h, heads().heads * spec().head_dim), kv = room(s.h, expanded());
    s.low_query = product(has_query_latent() ? s.query.after : s.h, query_, q);
    s.low_key_value = product(s.key_value.after, key_value_, kv);
    at::Tensor qkv = room(s.h, 3 * q.size(1));
    kernels::join_latent_heads({q, kv, columns_of_rotary(latents)}, heads(), qkv);
    return qkv;
  }

  void take_values(LatentSaved& s) const {
    s.values = room(s.core.result(), heads().heads * heads().value);
    kernels::cut_values(s.core.result(), heads(), s.values);
  }

  // The gradient of the core's result from that of the unit's.
  at::Tensor backward_values(LatentSaved& s, const at::Tensor& grad) const {
    const at::Tensor dvalues = at::empty_like(s.values);
    {
      auto whole = std::make_shared<WholeRows>(layout(), grad);
      const LowRows low{std::move(s.low_out), row_backward_input(shared_, out_, *whole, dvalues)};
      row_backward_weight(shared_, out_, std::move(whole), s.values, low);
    }
    s.values.reset();
    at::Tensor dout = room(dvalues, heads().heads * spec().head_dim);
    kernels::pad_values(dvalues, heads(), dout);
    return dout;
  }

  // Through a product from a latent: its gradient by this rank's heads, which goes to its columns of all latents'.
  at::Tensor backward_up(const Linear& linear, at::Tensor dout, const Latent& latent, at::Tensor low,
                         const at::Tensor& to) const {
    const LowRows rows{std::move(low), low_gradient(shared_, linear, dout)};
    whole_backward_weight(shared_, linear, dout, latent.after, rows);
    const at::Tensor dlatent = at::empty_like(latent.after);
    whole_backward_input(shared_, linear, dout, rows.gradient, dlatent);
    at::Tensor(to).copy_(dlatent);
    return dlatent;
  }
  // Through a latent's norm, in its columns; `room` is there already.
  void backward_latent_norm(const NormLayer& norm, const Latent& latent, const at::Tensor& columns,
                            const at::Tensor& room) const {
    at::Tensor(room).copy_(columns);
    backward_norm(shared_, norm, room, latent.before, latent.stats, {}, room);
    at::Tensor(columns).copy_(room);
  }

  // The gradient of the norm's rows that this rank holds of the residual stream, from that of the packed heads.
  at::Tensor backward_latents(LatentSaved& s, at::Tensor dqkv) const {
    const at::Tensor dlatents = room(dqkv, latent_columns());
    at::Tensor dq = room(dqkv, heads().heads * spec().head_dim), dkv = room(dqkv, expanded());
    kernels::split_latent_heads(dqkv, heads(), {dq, dkv, columns_of_rotary(dlatents)});
    dqkv.reset();
    LowRows low_query{std::move(s.low_query), {}};
    {
      const at::Tensor key_value_room =
          backward_up(key_value_, std::move(dkv), s.key_value, std::move(s.low_key_value),
                      columns_of_key_value(dlatents));
      at::Tensor query_room;
      if (has_query_latent()) {
        query_room = backward_up(query_, std::move(dq), s.query, std::move(low_query.value),
                                 columns_of_query(dlatents));
      } else {
        low_query.gradient = low_gradient(shared_, query_, dq);
        whole_backward_weight(shared_, query_, dq, s.h, low_query);
        low_query.value.reset();
      }
      layout().tensor->all_reduce(dlatents).wait();
      backward_latent_norm(key_value_norm_, s.key_value, columns_of_key_value(dlatents), key_value_room);
      if (has_query_latent())
        backward_latent_norm(*query_norm_, s.query, columns_of_query(dlatents), query_room);
    }
    LowRows low{std::move(s.low_latents), low_gradient(shared_, down_, dlatents)};
    whole_backward_weight(shared_, down_, dlatents, s.h, low);
    low.value.reset();
    if (has_query_latent()) return from_latents(s, dlatents, low.gradient);
    return from_latents_and_queries(s, {dlatents, low.gradient}, {dq, low_query.gradient});
  }

  // The same on every rank of a tensor group, so that each makes its own rows and nothing is summed.
  at::Tensor from_latents(const LatentSaved& s, const at::Tensor& dlatents, const at::Tensor& dlow) const {
    const std::int64_t rows = s.x.size(0), first = layout().rows_split() ? layout().tensor->rank() * rows : 0;
    const at::Tensor dx = layout().rows_split() ? at::empty_like(s.x) : room_over(shared_, s.h);
    whole_backward_input(shared_, down_, dlatents.narrow(0, first, rows),
                         dlow.defined() ? dlow.narrow(0, first, rows) : dlow, dx);
    return dx;
  }
  // The gradient of a product's result, and of its low rows.
  struct Gradient {
    at::Tensor out, low;
  };
  // The latents' part once, the queries' by each rank's heads.
  at::Tensor from_latents_and_queries(const LatentSaved& s, const Gradient& latents,
                                      const Gradient& queries) const {
    const at::Tensor dh = room_over(shared_, s.h);
    whole_backward_input(shared_, query_, queries.out, queries.low, dh);
    if (layout().tensor->rank() == 0)
      whole_backward_input(shared_, down_, latents.out, latents.low, dh, true);
    return sum_all_rows(layout(), dh, s.x);
  }

  std::unique_ptr<AttentionCore> core_;
  std::int64_t layer_;
  NormLayer norm_, key_value_norm_;
  std::optional<NormLayer> query_norm_;
  Linear down_, query_, key_value_, out_;
};

}  // namespace

UnitPtr make_latent_attention(const StageContext& shared, std::int64_t layer) {
  return std::make_unique<LatentAttentionUnit>(shared, layer);
}

}  // namespace sweep::model
