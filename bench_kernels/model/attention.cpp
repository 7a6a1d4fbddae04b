// The attention half of a block: norm, q k v, rotary positions, attention (causal, but in an encoder), output, residual.
#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>

#include "bench_kernels/model/attention_core.h"
#include "bench_kernels/model/post_norm.h"
#include "bench_kernels/model/qk_norm.h"
#include "bench_kernels/model/tensor_parallel.h"

namespace sweep::model {
namespace {

// Key-value heads that several tensor-parallel ranks read (tp > kv_heads): each of those ranks computes an
// equal piece of the head's columns of k and v, and all have the whole head for their own queries: gathered
// in forward, its gradient summed and scattered in backward. So weights, gradients and optimizer state are
// divided over tp as all others are, and nothing is held twice but the head's activations (as in Megatron-LM
// core's attention.py, which gathers the queries too). Where a rank has heads of its own nothing is sent, and
// rows pass as they are.
struct Columns {
  std::int64_t q, kv, piece, ranks;
};

Columns columns_of(const StageContext& shared) {
  const std::int64_t size = shared.spec.head_dim, kv = shared.kv_heads() * size;
  const std::int64_t ranks = shared.layout.key_value->size();
  return {shared.heads() * size, kv, kv / ranks, ranks};
}

// k and v of [rows, q | k | v] as [rank, row, k or v, column of its piece], a view.
at::Tensor pieces_of(const at::Tensor& rows, const Columns& c) {
  return rows.narrow(1, c.q, 2 * c.kv).unflatten(1, {2, c.ranks, c.piece}).permute({2, 0, 1, 3});
}

// [rows, q | a piece of k | a piece of v] becomes [rows, q | k | v].
at::Tensor gather_key_values(const StageContext& shared, at::Tensor rows) {
  comm::Channel& group = *shared.layout.key_value;
  if (group.alone()) return rows;
  const Columns c = columns_of(shared);
  const std::int64_t n = rows.size(0);
  const at::Tensor gathered = at::empty({c.ranks * n, 2 * c.piece}, rows.options());
  const at::Tensor mine = gathered.narrow(0, group.rank() * n, n);
  mine.copy_(rows.narrow(1, c.q, 2 * c.piece));
  const at::Tensor whole = at::empty({n, c.q + 2 * c.kv}, rows.options());
  comm::Pending pending = group.all_gather(mine, gathered);
  whole.narrow(1, 0, c.q).copy_(rows.narrow(1, 0, c.q));
  pending.wait();
  pieces_of(whole, c).copy_(gathered.view({c.ranks, n, 2, c.piece}));
  return whole;
}

// The reverse, of gradients: a piece's is the sum over the ranks that read it.
at::Tensor scatter_key_values(const StageContext& shared, at::Tensor grad) {
  comm::Channel& group = *shared.layout.key_value;
  if (group.alone()) return grad;
  const Columns c = columns_of(shared);
  const std::int64_t n = grad.size(0);
  const at::Tensor packed = at::empty({c.ranks * n, 2 * c.piece}, grad.options());
  packed.view({c.ranks, n, 2, c.piece}).copy_(pieces_of(grad, c));
  const at::Tensor summed = at::empty({n, 2 * c.piece}, grad.options());
  const at::Tensor mine = at::empty({n, c.q + 2 * c.piece}, grad.options());
  comm::Pending pending = group.reduce_scatter(packed, summed);
  mine.narrow(1, 0, c.q).copy_(grad.narrow(1, 0, c.q));
  pending.wait();
  mine.narrow(1, c.q, 2 * c.piece).copy_(summed);
  return mine;
}

struct AttentionSaved final : Saved {
  at::Tensor x, h, low_qkv, low_out;
  kernels::NormStats stats;
  AttentionCore::Kept core;
  QkNorm::Kept heads;
  PostNorm::Kept post;
  std::vector<at::Tensor*> tensors() override {
    std::vector<at::Tensor*> all{
        &x,          &h,          &low_qkv,        &low_out,          &core.qkv,         &core.out,
        &stats.mean, &stats.rstd, &core.state.out, &core.state.saved, &core.state.narrow};
    std::ranges::copy(heads.tensors(), std::back_inserter(all));
    std::ranges::copy(post.tensors(), std::back_inserter(all));
    return all;
  }
};

class AttentionUnit final : public Unit {
 public:
  AttentionUnit(const StageContext& shared, std::int64_t layer)
      : Unit(shared), core_(make_attention_core(shared, layer)), layer_(layer) {
    const ModelSpec& s = spec();
    const shape::TensorNames& names = shape::family_of(s).names;
    const auto name = [&](std::string_view module) { return in_layer(s, layer, module); };
    const std::int64_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
    const shape::Adapters& adapters = shared.options.adapters;
    norm_ = add_norm(shared, name(names.attention_norm));
    std::vector<LinearPart> parts;
    if (!names.fused_query_key_value.empty()) {
      parts.push_back({name(names.fused_query_key_value), {q, kv, kv}, adapters.query});
    } else {
      parts.push_back({name(names.query), {q}, adapters.query});
      parts.push_back({name(names.key), {kv}, adapters.key});
      parts.push_back({name(names.value), {kv}, adapters.value});
    }
    qkv_ = add_linear(shared, parts, s.hidden_size, s.attention_bias, names.transposed, Split::kColumns);
    qk_norm_.emplace(shared, layer);
    if (!names.sinks.empty())
      core_->sinks = parameters().add(
          {{name(names.sinks), shared.heads(), tensor_share(shared.layout, 0, s.heads)}}, 0, Init::kZero);
    out_ = add_linear(shared, {{name(names.attention_out), {s.hidden_size}, adapters.attention_out}}, q,
                      s.linear_bias, names.transposed, Split::kRows);
    qkv_.fp8 = out_.fp8 = shared.options.fp8;
    post_norm_.emplace(shared, layer, names.attention_post_norm);
  }

  at::Tensor forward(const MicroBatch&, at::Tensor in, SavedPtr& saved) const override {
    auto kept = std::make_unique<AttentionSaved>();
    AttentionSaved& s = *kept;
    s.x = std::move(in);
    const at::Tensor x = s.x;
    s.h = at::empty_like(x);
    const kernels::Start start = post_norm_->there() ? kernels::Start() : row_start(shared_, out_, x);
    s.stats = forward_norm(shared_, norm_, s.x, s.h, start);
    at::Tensor qkv = at::empty({shared_.whole_rows(x.size(0)), columns()}, x.options());
    s.low_qkv = column_forward(shared_, qkv_, s.h, qkv);
    qkv = gather_key_values(shared_, std::move(qkv));
    s.heads = qk_norm_->forward(qkv);
    turn(shared_, layer_, qkv, false);
    s.core = core_->forward(std::move(qkv));
    at::Tensor out = start.out.defined() ? start.out : at::empty_like(x);
    const at::Tensor residual = post_norm_->there() ? at::Tensor() : start.out.defined() ? out : x;
    s.low_out = row_forward(shared_, out_, s.core.result(), residual, out);
    out = post_norm_->forward(std::move(out), x, s.post);
    if (shared_.options.recompute == Recompute::kSelective) s.core = {std::move(s.core.qkv), {}, {}};
    saved = std::move(kept);
    return out;
  }

  at::Tensor backward(const MicroBatch&, at::Tensor grad, SavedPtr saved) const override {
    auto& s = static_cast<AttentionSaved&>(*saved);
    if (!s.core.result().defined()) core_->recall(s.core);
    at::Tensor dout = at::empty_like(s.core.result());
    {
      auto whole = std::make_shared<WholeRows>(layout(), post_norm_->backward(grad, s.post));
      LowRows low{std::move(s.low_out), row_backward_input(shared_, out_, *whole, dout)};
      row_backward_weight(shared_, out_, std::move(whole), s.core.result(), low);
    }
    at::Tensor dqkv = core_->backward(std::move(dout), std::move(s.core));
    qk_norm_->backward(dqkv, s.heads);
    s.heads = {};
    dqkv = scatter_key_values(shared_, std::move(dqkv));
    const at::Tensor dh = column_backward(shared_, qkv_, dqkv, s.h, s.low_qkv);
    backward_norm(shared_, norm_, dh, s.x, s.stats, grad, dh);
    return dh;
  }

 private:
  // Number of columns that this rank's weights give.
  std::int64_t columns() const {
    return (spec().heads + 2 * spec().kv_heads) * spec().head_dim / layout().tp();
  }

  std::unique_ptr<AttentionCore> core_;
  std::int64_t layer_;
  NormLayer norm_;
  // Its parameters lie between those of the products.
  std::optional<QkNorm> qk_norm_;
  Linear qkv_, out_;
  std::optional<PostNorm> post_norm_;
};

}  // namespace

UnitPtr make_attention(const StageContext& shared, std::int64_t layer) {
  return std::make_unique<AttentionUnit>(shared, layer);
}

}  // namespace sweep::model
