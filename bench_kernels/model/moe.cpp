// The mixture-of-experts half of a block (Mixtral): norm, router, top-k experts, weighted sum, residual.
// Under expert parallelism a rank owns experts / ep of them: rows travel to their experts and back by
// all-to-all, twice in forward and twice in backward. Under tensor parallelism every rank of the group routes
// all rows and holds a share of each expert, split as a dense MLP is; the router is on each of them.
#include "bench_kernels/kernels/moe.h"

#include <ATen/ATen.h>

#include <optional>
#include <utility>

#include "bench_kernels/model/routing.h"
#include "bench_kernels/model/shared_experts.h"
#include "bench_kernels/model/tensor_parallel.h"

namespace sweep::model {
namespace {

struct MoeSaved final : Saved {
  at::Tensor x;  // this rank's rows of the residual stream
  at::Tensor h;  // all rows, normalised
  at::Tensor probs, weights;
  at::Tensor rows, in, returned;  // [received, hidden], [received, 2 width], what combine() keeps
  at::Tensor load;                // [experts]: share of the global tokens' choices, for the auxiliary loss
  at::Tensor shared;              // the shared experts' values
  kernels::NormStats stats;
  RoutePtr route;
  std::vector<at::Tensor*> tensors() override {
    return {&x, &h, &probs, &weights, &stats.mean, &stats.rstd, &rows, &in, &returned, &load, &shared};
  }
};

class MoeUnit final : public Unit {
 public:
  MoeUnit(const StageContext& shared, std::int64_t layer) : Unit(shared) {
    const ModelSpec& s = spec();
    const shape::TensorNames& names = shape::family_of(s).names;
    const std::string moe = in_layer(s, layer, names.experts);
    norm_ = add_norm(shared, in_layer(s, layer, names.mlp_norm));
    add_router(moe + std::string(names.router));
    shared_experts_.emplace(shared, layer);
    gate_ = gate_of(s);
    if (gate_.sigmoid) read_choice_bias(moe + std::string(names.router) + ".e_score_correction_bias");
    std::vector<Part> in, down, in_bias, down_bias;
    const std::int64_t first = layout().expert->rank() * local_experts();
    for (std::int64_t e = first; e < first + local_experts(); ++e) {
      const std::string expert = moe + "experts." + std::to_string(e) + ".";
      const auto name = [&](std::string_view matrix) { return expert + std::string(matrix) + ".weight"; };
      const auto bias = [&](std::string_view matrix) { return expert + std::string(matrix) + ".bias"; };
      const auto share = [&](std::int64_t dimension) {
        return tensor_share(layout(), dimension, s.intermediate_size);
      };
      in.push_back({name(names.expert_gate), width(), share(0)});
      in.push_back({name(names.expert_up), width(), share(0)});
      down.push_back({name(names.expert_down), s.hidden_size, share(1)});
      in_bias.push_back({bias(names.expert_gate), width(), share(0)});
      in_bias.push_back({bias(names.expert_up), width(), share(0)});
      down_bias.push_back({bias(names.expert_down), s.hidden_size, {}});
    }
    const auto add = [&](Product& product, std::vector<Part> weights, std::int64_t inputs,
                         std::vector<Part> biases) {
      product.weight = parameters().add(std::move(weights), inputs, Init::kUniform, Role::kExpert);
      if (shared.options.quantize_base) parameters().quantize(product.weight);
      if (s.linear_bias) product.bias = parameters().add(std::move(biases), 0, Init::kZero, Role::kExpert);
    };
    add(in_, std::move(in), s.hidden_size, std::move(in_bias));
    add(down_, std::move(down), width(), std::move(down_bias));
  }

  at::Tensor forward(const MicroBatch&, at::Tensor in, SavedPtr& saved) const override {
    auto kept = std::make_unique<MoeSaved>();
    MoeSaved& s = *kept;
    s.x = std::move(in);
    s.h = at::empty_like(s.x);
    s.stats = kernels::norm(s.x, norm_of(shared_, norm_), s.h);
    s.h = all_rows(layout(), s.h);
    choose(s);
    at::Tensor rows = at::empty({sent(s), s.h.size(1)}, s.h.options());
    kernels::gather_rows(s.h, s.route->sent.tokens, rows);
    s.rows = to_experts(s, std::move(rows));
    s.in = product(s, s.rows, in_, bias_of(in_));
    rows = at::empty({s.rows.size(0), width()}, s.x.options());
    kernels::activation(activation(), s.in, rows);
    const at::Tensor bias =
        layout().tensor->rank() == 0 ? bias_of(down_) : at::Tensor();  // the ranks' are summed
    rows = send_back(s, product(s, rows, down_, bias));
    const at::Tensor out = combine(s, std::move(rows));
    saved = std::move(kept);
    return out;
  }

  at::Tensor backward(const MicroBatch& micro, at::Tensor grad, SavedPtr saved) const override {
    auto& s = static_cast<MoeSaved&>(*saved);
    const at::Tensor dweights = at::empty_like(s.weights);
    at::Tensor of_shared;  // the gradient of all rows, which the shared experts read once more
    at::Tensor drows;
    {
      const at::Tensor all = all_rows(layout(), grad);
      if (shared_experts_->there()) of_shared = all;
      drows = kernels::combine_backward(all, s.route->sent, std::move(s.returned), s.weights, dweights);
    }
    layout().tensor->all_reduce(dweights).wait();  // each rank has its share of the experts' results
    drows = send_back(s, backward_experts(s, to_experts(s, std::move(drows))));
    const at::Tensor dh = kernels::sum_sent(std::move(drows), s.route->sent, s.h.size(0));
    shared_experts_->backward(std::exchange(of_shared, {}), s.h, std::exchange(s.shared, {}), dh);
    backward_router(s, micro, dweights, dh);
    const at::Tensor dx = sum_all_rows(layout(), dh, s.x);
    backward_norm(shared_, norm_, dx, s.x, s.stats, grad, dx);
    note_load(s);
    return dx;
  }

 private:
  // The matrices of all experts here, and their biases.
  struct Product {
    Parameters::Id weight = Parameters::kNone, bias = Parameters::kNone;
  };
  // Both make the weights of quantized experts anew and free them: all experts' of a rank at once.
  at::Tensor product(const MoeSaved& s, const at::Tensor& in, const Product& experts,
                     const at::Tensor& bias) const {
    return kernels::grouped_linear(in, parameters().weight(experts.weight), s.route->groups, bias);
  }
  at::Tensor backward_input(const MoeSaved& s, const at::Tensor& dout, const Product& experts) const {
    return kernels::grouped_backward_input(dout, parameters().weight(experts.weight), s.route->groups);
  }
  at::Tensor bias_of(const Product& product) const {
    return product.bias == Parameters::kNone ? at::Tensor() : parameters()[product.bias];
  }
  kernels::Activation activation() const {
    return shape::family_of(spec()).clamped_swiglu ? kernels::Activation::kClampedSwiglu
                                                   : kernels::Activation::kSwiglu;
  }
  // Read by every token to choose experts: of a quantized base it keeps the type of the computation.
  void add_router(const std::string& name) {
    router_.weight =
        parameters().add({{name + ".weight", spec().experts, {}}}, spec().hidden_size, Init::kUniform);
    if (spec().linear_bias)
      router_.bias = parameters().add({{name + ".bias", spec().experts, {}}}, 0, Init::kZero);
  }
  std::int64_t local_experts() const { return spec().experts / layout().ep(); }
  std::int64_t width() const { return spec().intermediate_size / layout().tp(); }
  // Not trained: its authors move it after each step, against the load of the experts (V3, section 2.1.2), which is no
  // part of a step here. Zeros without a checkpoint.
  void read_choice_bias(const std::string& name) {
    const auto exact =
        at::TensorOptions(shared_.options.device).dtype(kernels::accumulate_type(shared_.options.type));
    choice_bias_ = at::zeros({spec().experts}, exact);
    if (shared_.options.source) shared_.options.source({name, spec().experts, {}}, choice_bias_);
  }
  void choose(MoeSaved& s) const {
    const std::int64_t tokens = s.h.size(0), k = spec().experts_per_token;
    const auto exact = s.h.options().dtype(kernels::accumulate_type(s.h.scalar_type()));
    s.probs = at::empty({tokens, spec().experts}, exact);
    {
      const bool exactly = shape::family_of(spec()).exact_router;
      const at::Tensor logits = at::empty({tokens, spec().experts}, exactly ? exact : s.h.options());
      if (exactly)
        kernels::scaled_product(s.h, router_.value(parameters()).w.t(), 1, logits, false);
      else
        kernels::linear(s.h, router_.value(parameters()), {}, logits);
      weigh(s, logits, at::empty({tokens, k}, exact));
    }
    if (spec().router_aux_coef > 0) global_load(s, tokens);
  }

  // Probabilities, route and weights; forced routes are known without the probabilities.
  void weigh(MoeSaved& s, const at::Tensor& logits, const at::Tensor& weights) const {
    const bool learned = shared_.options.routing == Routing::kLearned;
    if (learned) kernels::router_probabilities(logits, s.probs, gate_);
    s.route = route(shared_, s.probs, choice_bias_);
    s.weights = weights;
    if (learned)
      kernels::router_weights(s.probs, s.route->experts, s.weights, gate_);
    else
      kernels::router(logits, s.probs, s.route->experts, s.weights, gate_);
  }

  // Rows that leave this rank's tokens.
  static std::int64_t sent(const MoeSaved& s) { return s.route->sent.order.size(0); }
  // Choices that a capacity refuses count too: they are what an uneven router asks for. After the work of the backward is
  // on its way: here the host needs learned counts at the latest.
  void note_load(const MoeSaved& s) const {
    const std::int64_t tokens = s.h.size(0);
    const double mean = static_cast<double>(tokens * layout().ep() * spec().experts_per_token) /
                        static_cast<double>(spec().experts);
    const std::vector<std::int64_t>& wanted = s.route->dispatch.wanted;
    for (const std::int64_t count : wanted.empty() ? s.route->groups.counts() : wanted)
      shared_.load->worst = std::max(shared_.load->worst, static_cast<double>(count) / mean);
  }

  // f of the auxiliary loss (Fedus et al. 2021, Switch Transformer, equations 4 to 6), over all tokens of the
  // micro-batch on every data-parallel rank: experts x f x mean probability, per layer.
  void global_load(MoeSaved& s, std::int64_t tokens) const {
    s.load = at::empty({spec().experts}, s.probs.options());
    s.load.copy_(s.route->chosen).div_(static_cast<double>(tokens));
    layout().data->all_reduce(s.load, comm::Channel::Op::kAverage).wait();
  }

  // Rows of this rank's tokens to the experts' owners; what arrives is put in order of the experts.
  at::Tensor to_experts(const MoeSaved& s, at::Tensor rows) const {
    if (layout().expert->alone()) return rows;
    const Dispatch& d = s.route->dispatch;
    const at::Tensor arrived = at::empty({d.received(), rows.size(1)}, rows.options());
    layout().expert->all_to_all(rows, arrived, d.send_splits(layout().ep()), d.receive_splits()).wait();
    rows = at::empty_like(arrived);
    kernels::gather_rows(arrived, s.route->major, rows);
    return rows;
  }
  // The way back: rows in order of the experts return to the ranks and the order they were sent in.
  at::Tensor send_back(const MoeSaved& s, at::Tensor rows) const {
    if (layout().expert->alone()) return rows;
    const Dispatch& d = s.route->dispatch;
    const at::Tensor leaving = at::empty_like(rows);
    kernels::place_rows(rows, s.route->major, leaving);
    rows = at::empty({d.sent(), rows.size(1)}, rows.options());
    layout().expert->all_to_all(leaving, rows, d.receive_splits(), d.send_splits(layout().ep())).wait();
    return rows;
  }

  // The weighted sum and the residual, which a tensor group adds to the sum of its shares.
  at::Tensor combine(MoeSaved& s, at::Tensor rows) const {
    const bool alone = layout().tensor->alone();
    const at::Tensor all =
        kernels::combine(std::move(rows), s.route->sent, s.weights, alone ? s.x : at::Tensor(), s.returned);
    s.shared = shared_experts_->forward(s.h, all);
    return alone ? all : sum_all_rows(layout(), all, s.x).add_(s.x);
  }

  // Returns the gradient of the experts' inputs; drows is that of their results.
  at::Tensor backward_experts(MoeSaved& s, at::Tensor drows) const {
    {
      const at::Tensor wide = backward_input(s, drows, down_);
      kernels::activation_backward(activation(), s.in, wide);  // wide: the activation again
      backward_weights(s, down_, drows, wide);
    }
    drows.reset();
    backward_weights(s, in_, s.in, s.rows);
    s.rows.reset();
    return backward_input(s, std::exchange(s.in, {}), in_);
  }

  void backward_weights(const MoeSaved& s, const Product& product, const at::Tensor& dout,
                        const at::Tensor& in) const {
    if (!parameters().trains(product.weight)) return;
    weights_part(shared_, [this, route = s.route, &product, dout, in] {
      kernels::grouped_backward_weight(dout, in, route->groups, parameters().gradients().of(product.weight));
      parameters().gradients().ready(product.weight);
      if (product.bias == Parameters::kNone) return;
      kernels::grouped_backward_bias(dout, route->groups, parameters().gradients().of(product.bias));
      parameters().gradients().ready(product.bias);
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
    kernels::router_backward(s.probs, s.route->experts, s.weights, dweights, auxiliary, dlogits, gate_);
    if (parameters().trains(router_.weight))
      weights_part(shared_, [this, dlogits, h = s.h] {
        kernels::linear_backward_weight(dlogits, h, false,
                                        parameters().gradients().of_product(router_.weight));
        if (router_.bias != Parameters::kNone)
          kernels::bias_backward(dlogits, parameters().gradients().of(router_.bias));
        say_ready(parameters(), router_);
      });
    if (layout().tensor->rank() != 0) return;  // the same on each rank of the group, and summed over it
    kernels::scaled_product(dlogits, router_.value(parameters()).w, 1, dh, true);
  }

  NormLayer norm_;
  Linear router_;
  // Their parameters lie between those of router and experts.
  std::optional<SharedExperts> shared_experts_;
  kernels::Gate gate_;
  at::Tensor choice_bias_;  // a bias that only the choice of experts reads; undefined: the family has none
  Product in_, down_;
};

}  // namespace

UnitPtr make_moe(const StageContext& shared, std::int64_t layer) {
  return std::make_unique<MoeUnit>(shared, layer);
}

}  // namespace sweep::model
