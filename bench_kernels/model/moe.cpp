// The mixture-of-experts half of a block (Mixtral): norm, router, top-k experts, weighted sum, residual.
// Under expert parallelism a rank owns experts / ep of them: rows travel to their experts and back by
// all-to-all, twice in forward and twice in backward. Under tensor parallelism every rank of the group routes
// all rows and holds a share of each expert, split as a dense MLP is; the router is on each of them.
#include "bench_kernels/kernels/moe.h"

#include <ATen/ATen.h>

#include "bench_kernels/model/routing.h"
#include "bench_kernels/model/tensor_parallel.h"

namespace sweep::model {
namespace {

struct MoeSaved final : Saved {
  at::Tensor x;  // this rank's rows of the residual stream
  at::Tensor h;  // all rows, normalised
  at::Tensor probs, experts, weights, order;
  at::Tensor major;               // undefined: rows arrive expert by expert already
  at::Tensor rows, in, returned;  // [received, hidden], [received, 2 width], [sent, hidden]
  at::Tensor load;                // [experts]: share of the global tokens' choices, for the auxiliary loss
  kernels::NormStats stats;
  Dispatch dispatch;
  std::vector<at::Tensor*> tensors() override {
    return {&x,          &h,          &probs, &experts, &weights,  &order, &major,
            &stats.mean, &stats.rstd, &rows,  &in,      &returned, &load};
  }
};

class MoeUnit final : public Unit {
 public:
  MoeUnit(const StageContext& shared, std::int64_t layer) : Unit(shared) {
    const ModelSpec& s = spec();
    const shape::TensorNames& names = shape::family_of(s).names;
    const std::string moe = in_layer(s, layer, names.experts);
    norm_ = add_norm(shared, in_layer(s, layer, names.mlp_norm));
    router_ = add_linear(shared, {{moe + "gate", {s.experts}}}, s.hidden_size, false, false, Split::kNone);
    std::vector<Parameters::Part> in, down;
    const std::int64_t first = layout().expert->rank() * local_experts();
    for (std::int64_t e = first; e < first + local_experts(); ++e) {
      const std::string expert = moe + "experts." + std::to_string(e) + ".";
      const auto share = [&](std::int64_t dimension) {
        return tensor_share(layout(), dimension, s.intermediate_size);
      };
      in.push_back({expert + "w1.weight", width(), share(0)});
      in.push_back({expert + "w3.weight", width(), share(0)});
      down.push_back({expert + "w2.weight", s.hidden_size, share(1)});
    }
    in_ = parameters().add(in, s.hidden_size, Parameters::Init::kUniform, Role::kExpert);
    down_ = parameters().add(down, width(), Parameters::Init::kUniform, Role::kExpert);
  }

  at::Tensor forward(const MicroBatch&, at::Tensor in, SavedPtr& saved) const override {
    auto kept = std::make_unique<MoeSaved>();
    MoeSaved& s = *kept;
    s.x = std::move(in);
    s.h = at::empty_like(s.x);
    s.stats = kernels::norm(s.x, norm_of(shared_, norm_), s.h);
    s.h = whole(s.h);
    choose(s);
    dispatch(s);
    s.in = at::empty({s.rows.size(0), 2 * width()}, s.x.options());
    const at::Tensor results = at::empty_like(s.rows);
    {
      const at::Tensor activated = at::empty({s.rows.size(0), width()}, s.x.options());
      for_each_expert(s.dispatch, [&](std::int64_t begin, std::int64_t count, std::int64_t e) {
        kernels::linear(s.rows.narrow(0, begin, count), {weight(in_, e), {}, false}, {},
                        s.in.narrow(0, begin, count));
      });
      kernels::activation(kernels::Activation::kSwiglu, s.in, activated);
      for_each_expert(s.dispatch, [&](std::int64_t begin, std::int64_t count, std::int64_t e) {
        kernels::linear(activated.narrow(0, begin, count), {weight(down_, e), {}, false}, {},
                        results.narrow(0, begin, count));
      });
    }
    s.returned = send_back(s, results);
    const at::Tensor out = combine(s);
    saved = std::move(kept);
    return out;
  }

  at::Tensor backward(const MicroBatch& micro, at::Tensor grad, SavedPtr saved) const override {
    auto& s = static_cast<MoeSaved&>(*saved);
    const at::Tensor dweights = at::empty_like(s.weights);
    at::Tensor drows = at::empty_like(s.returned);  // gradient of the returned rows, in sending order
    kernels::gather_rows(whole(grad), s.order, spec().experts_per_token, drows);
    kernels::weight_gradients(drows, s.returned, s.order, dweights);
    layout().tensor->all_reduce(dweights).wait();  // each rank has its share of the experts' results
    s.returned.reset();
    kernels::scale_rows(drows, s.weights, s.order);
    drows = to_experts(s, drows);
    drows = send_back(s, backward_experts(s, drows));
    const at::Tensor dh = at::zeros_like(s.h);
    kernels::add_rows(drows, s.order, spec().experts_per_token, dh);
    drows.reset();
    backward_router(s, micro, dweights, dh);
    const at::Tensor dx = summed(dh, s.x);
    backward_norm(shared_, norm_, dx, s.x, s.stats, grad, dx);
    return dx;
  }

 private:
  std::int64_t local_experts() const { return spec().experts / layout().ep(); }
  std::int64_t width() const { return spec().intermediate_size / layout().tp(); }
  // All rows of which the residual stream holds `rows`.
  at::Tensor whole(const at::Tensor& rows) const {
    if (!layout().rows_split()) return rows;
    const at::Tensor all = at::empty({shared_.whole_rows(rows.size(0)), rows.size(1)}, rows.options());
    layout().tensor->all_gather(rows, all).wait();
    return all;
  }
  // The sum over the tensor group of all rows, of which this rank keeps what it holds of the residual stream.
  at::Tensor summed(const at::Tensor& all, const at::Tensor& like) const {
    if (layout().tensor->alone()) return all;
    const at::Tensor out = at::empty_like(like);
    sum_rows(layout(), out, [&](std::int64_t begin, const at::Tensor& to) {
      at::Tensor(to).copy_(all.narrow(0, begin, to.size(0)));
    });
    return out;
  }
  // The rows of one local expert in a stack, of the values or of a gradient.
  at::Tensor part(const at::Tensor& stack, std::int64_t e) const {
    const std::int64_t rows = stack.size(0) / local_experts();
    return stack.narrow(0, e * rows, rows);
  }
  at::Tensor weight(Parameters::Id id, std::int64_t e) const { return part(parameters()[id], e); }

  template <class F>
  void for_each_expert(const Dispatch& rows, const F& f) const {
    std::int64_t begin = 0;
    for (std::int64_t e = 0; e < local_experts(); ++e) {
      const std::int64_t count = rows.rows_of(static_cast<std::size_t>(e));
      f(begin, count, e);
      begin += count;
    }
  }

  void choose(MoeSaved& s) const {
    const std::int64_t tokens = s.h.size(0), k = spec().experts_per_token;
    const auto exact = s.h.options().dtype(kernels::accumulate_type(s.h.scalar_type()));
    s.probs = at::empty({tokens, spec().experts}, exact);
    {
      const at::Tensor logits = at::empty({tokens, spec().experts}, s.h.options());
      kernels::linear(s.h, router_.value(parameters()), {}, logits);
      kernels::router_probabilities(logits, s.probs);
    }
    s.experts = at::empty({tokens, k}, s.h.options().dtype(at::kLong));
    s.dispatch = route(shared_, s.probs, s.experts);
    s.weights = at::empty({tokens, k}, exact);
    kernels::router_weights(s.probs, s.experts, s.weights);
    s.order = at::empty({s.dispatch.sent()}, s.experts.options());
    kernels::order_choices(s.experts, s.dispatch.chosen, s.dispatch.kept, s.order);
    note_load(s, tokens);
    if (spec().router_aux_coef > 0) global_load(s, tokens);
  }

  void note_load(const MoeSaved& s, std::int64_t tokens) const {
    if (shared_.load == nullptr) return;
    const double mean = static_cast<double>(tokens * layout().ep() * spec().experts_per_token) /
                        static_cast<double>(spec().experts);
    for_each_expert(s.dispatch, [&](std::int64_t, std::int64_t count, std::int64_t) {
      shared_.load->worst = std::max(shared_.load->worst, static_cast<double>(count) / mean);
    });
    shared_.load->dropped += tokens * spec().experts_per_token - s.dispatch.sent();
  }

  // f of the auxiliary loss (Fedus et al. 2021, Switch Transformer, equations 4 to 6), over all tokens of the
  // micro-batch on every data-parallel rank: experts x f x mean probability, per layer.
  void global_load(MoeSaved& s, std::int64_t tokens) const {
    s.load = at::empty({spec().experts}, s.probs.options());
    if (!s.load.is_meta())
      s.load.copy_(at::from_blob(s.dispatch.chosen.data(), {spec().experts}, at::kLong), kReadAtOnce)
          .div_(static_cast<double>(tokens));
    layout().data->all_reduce(s.load, comm::Channel::Op::kAverage).wait();
  }

  // Rows of this rank's tokens to the experts' owners; what arrives is put in order of the experts.
  at::Tensor to_experts(const MoeSaved& s, at::Tensor rows) const {
    if (layout().expert->alone()) return rows;
    at::Tensor arrived = at::empty({s.dispatch.received(), rows.size(1)}, rows.options());
    layout()
        .expert->all_to_all(rows, arrived, s.dispatch.send_splits(layout().ep()), s.dispatch.receive_splits())
        .wait();
    rows = at::empty_like(arrived);
    kernels::gather_rows(arrived, s.major, 1, rows);
    return rows;
  }
  // The way back: rows in order of the experts return to the ranks and the order they were sent in.
  at::Tensor send_back(const MoeSaved& s, at::Tensor rows) const {
    if (layout().expert->alone()) return rows;
    const at::Tensor leaving = at::zeros_like(rows);
    kernels::add_rows(rows, s.major, 1, leaving);
    rows = at::empty({s.dispatch.sent(), rows.size(1)}, rows.options());
    layout()
        .expert->all_to_all(leaving, rows, s.dispatch.receive_splits(), s.dispatch.send_splits(layout().ep()))
        .wait();
    return rows;
  }

  void dispatch(MoeSaved& s) const {
    at::Tensor rows = at::empty({s.dispatch.sent(), s.h.size(1)}, s.h.options());
    kernels::gather_rows(s.h, s.order, spec().experts_per_token, rows);
    if (!layout().expert->alone()) {
      s.major = at::empty({s.dispatch.received()}, s.order.options());
      auto major = s.dispatch.expert_major();
      if (!s.major.is_meta())
        s.major.copy_(at::from_blob(major.data(), {static_cast<std::int64_t>(major.size())}, at::kLong),
                      kReadAtOnce);
    }
    s.rows = to_experts(s, std::move(rows));
  }

  at::Tensor combine(const MoeSaved& s) const {
    const at::Tensor all = at::zeros_like(s.h), weighted = at::empty_like(s.returned);
    at::Tensor(weighted).copy_(s.returned);
    kernels::scale_rows(weighted, s.weights, s.order);
    kernels::add_rows(weighted, s.order, spec().experts_per_token, all);
    return summed(all, s.x).add_(s.x);
  }

  // Returns the gradient of the experts' inputs; drows is that of their results.
  at::Tensor backward_experts(MoeSaved& s, const at::Tensor& drows) const {
    const at::Tensor wide = at::empty({drows.size(0), width()}, drows.options());
    for_each_expert(s.dispatch, [&](std::int64_t begin, std::int64_t count, std::int64_t e) {
      kernels::linear_backward_input(drows.narrow(0, begin, count), {weight(down_, e), {}, false},
                                     wide.narrow(0, begin, count));
    });
    kernels::activation_backward(kernels::Activation::kSwiglu, s.in, wide);  // wide is the activation again
    backward_weights(s, down_, drows, wide);
    backward_weights(s, in_, s.in, s.rows);
    const at::Tensor din = room_over(shared_, drows);
    for_each_expert(s.dispatch, [&](std::int64_t begin, std::int64_t count, std::int64_t e) {
      kernels::linear_backward_input(s.in.narrow(0, begin, count), {weight(in_, e), {}, false},
                                     din.narrow(0, begin, count));
    });
    s.in.reset();
    s.rows.reset();
    return din;
  }

  void backward_weights(const MoeSaved& s, Parameters::Id id, const at::Tensor& dout,
                        const at::Tensor& in) const {
    if (!parameters().trains(id)) return;
    weights_part(shared_, [this, rows = s.dispatch, id, dout, in] {
      const kernels::GradOut all = parameters().grad(id);
      for_each_expert(rows, [&](std::int64_t begin, std::int64_t count, std::int64_t e) {
        const at::Tensor grad = part(all.grad, e);
        if (count > 0)
          kernels::linear_backward_weight(dout.narrow(0, begin, count), in.narrow(0, begin, count), false,
                                          {grad, all.add});
        else if (!all.add)
          at::Tensor(grad).zero_();
      });
      parameters().ready(id);
    });
  }

  void backward_router(MoeSaved& s, const MicroBatch& micro, const at::Tensor& dweights,
                       const at::Tensor& dh) const {
    const at::Tensor dlogits = at::empty(s.probs.sizes(), s.h.options());
    at::Tensor auxiliary;
    if (s.load.defined()) {
      const double scale = spec().router_aux_coef * micro.scale * static_cast<double>(spec().experts) /
                           static_cast<double>(s.h.size(0));
      auxiliary = s.load.mul_(scale);
    }
    kernels::router_backward(s.probs, s.experts, s.weights, dweights, auxiliary, dlogits);
    if (parameters().trains(router_.weight))
      weights_part(shared_, [this, dlogits, h = s.h] {
        kernels::linear_backward_weight(dlogits, h, false, parameters().grad(router_.weight));
        say_ready(parameters(), router_);
      });
    if (layout().tensor->rank() != 0) return;  // the same on each rank of the group, and summed over it
    const at::Tensor through_router = room_over(shared_, s.h);
    kernels::linear_backward_input(dlogits, router_.value(parameters()), through_router);
    at::Tensor(dh).add_(through_router);
  }

  NormLayer norm_;
  Linear router_;
  Parameters::Id in_ = Parameters::kNone, down_ = Parameters::kNone;
};

}  // namespace

UnitPtr make_moe(const StageContext& shared, std::int64_t layer) {
  return std::make_unique<MoeUnit>(shared, layer);
}

}  // namespace sweep::model
