#include "bench_kernels/kernels/moe.h"

#include <ATen/ATen.h>

#include <limits>
#include <optional>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/device_experts.h"
#include "bench_kernels/kernels/dispatch.h"

namespace sweep::kernels {
namespace {

// Nothing runs on meta tensors; on the CPU whatever an operator allocates is scratch.
class Work {
 public:
  explicit Work(const at::Tensor& t) : runs_(!t.is_meta()) {
    if (t.is_cpu()) scratch_.emplace();
  }
  explicit operator bool() const { return runs_; }

 private:
  bool runs_;
  std::optional<memory::ScratchScope> scratch_;
};

// [T, k, n] of the rows of all choices.
at::Tensor by_token(const at::Tensor& rows, std::int64_t tokens) {
  return rows.view({tokens, -1, rows.size(1)});
}

bool casts(const at::Tensor& t) {
  return t.is_cpu() && at::isReducedFloatingType(t.scalar_type());
}

}  // namespace

bool has_expert_kernels(const at::Tensor& t) {
  return way(t, Fused::kMlp) == FusedWay::kDevice;
}

void router_probabilities(const at::Tensor& logits, const at::Tensor& probs, const Gate& gate) {
  const Work work(logits);
  if (!work) return;
  if (has_expert_kernels(logits)) return device::router(logits, {probs, {}, {}}, gate);
  at::Tensor out = probs;
  if (gate.sigmoid)
    at::sigmoid_out(out, logits.to(probs.scalar_type()));
  else
    at::_softmax_out(out, logits.to(probs.scalar_type()), -1, false);
}

namespace {

// Scores of which those outside of a token's best groups are below all others.
at::Tensor within_groups(const at::Tensor& scores, const Gate& gate) {
  const at::Tensor grouped = scores.unflatten(1, {gate.groups, -1});
  const at::Tensor best = std::get<0>(grouped.topk(gate.sigmoid ? 2 : 1, -1)).sum(-1);
  const at::Tensor chosen = std::get<1>(best.topk(gate.groups_per_token, -1));
  const at::Tensor outside = at::ones_like(best, at::kBool).scatter_(1, chosen, false);
  return grouped.masked_fill(outside.unsqueeze(-1), -std::numeric_limits<double>::infinity()).flatten(1);
}

}  // namespace

void choose_experts(const at::Tensor& probs, const at::Tensor& experts, const Gate& gate,
                    const at::Tensor& bias) {
  const Work work(probs);
  if (!work) return;
  at::Tensor scores = bias.defined() ? probs + bias : probs;
  if (gate.groups > 0) scores = within_groups(scores, gate);
  at::Tensor values = at::empty(experts.sizes(), probs.options()), chosen = experts;
  at::topk_out(values, chosen, scores, experts.size(1), -1, true, true);
}

void router(const at::Tensor& logits, const at::Tensor& probs, const at::Tensor& experts,
            const at::Tensor& weights, const Gate& gate) {
  if (has_expert_kernels(logits)) return device::router(logits, {probs, experts, weights}, gate);
  router_probabilities(logits, probs, gate);
  router_weights(probs, experts, weights, gate);
}

void router_weights(const at::Tensor& probs, const at::Tensor& experts, const at::Tensor& weights,
                    const Gate& gate) {
  const Work work(probs);
  if (!work) return;
  at::Tensor out = weights;
  if (!gate.normalized) {
    at::gather_out(out, probs, 1, experts);
  } else {
    const at::Tensor chosen = probs.gather(1, experts);
    at::div_out(out, chosen, chosen.sum(-1, true));
  }
  if (gate.scale != 1) out.mul_(gate.scale);
}

namespace {

// The gradient of the chosen probabilities.
at::Tensor chosen_gradient(const at::Tensor& probs, const at::Tensor& experts, const at::Tensor& weights,
                           const at::Tensor& dweights, const Gate& gate) {
  if (!gate.normalized) return dweights.mul(gate.scale);
  const at::Tensor sum = probs.gather(1, experts).sum(-1, true);
  return dweights.mul(gate.scale).sub_((dweights * weights).sum(-1, true)).div_(sum);
}

}  // namespace

void router_backward(const at::Tensor& probs, const at::Tensor& experts, const at::Tensor& weights,
                     const at::Tensor& dweights, const at::Tensor& dprobs, const at::Tensor& dlogits,
                     const Gate& gate) {
  const Work work(probs);
  if (!work) return;
  if (has_expert_kernels(dlogits))
    return device::router_backward({probs, experts, weights}, dweights, dprobs, dlogits, gate);
  const at::Tensor dchosen = chosen_gradient(probs, experts, weights, dweights, gate);
  at::Tensor all = dprobs.defined() ? dprobs.expand(probs.sizes()).clone() : at::zeros_like(probs);
  all.scatter_add_(1, experts, dchosen);
  if (gate.sigmoid)
    all.mul_(probs).mul_(1 - probs);
  else
    at::_softmax_backward_data_out(all, all, probs, -1, probs.scalar_type());
  at::Tensor(dlogits).copy_(all);
}

void count_choices(const at::Tensor& experts, const at::Tensor& counts) {
  const Work work(experts);
  if (!work) return;
  const at::Tensor flat = experts.flatten();
  at::Tensor(counts).zero_().scatter_(0, flat, 1, "add");
}

void end_choices(const at::Tensor& counts, const at::Tensor& ends) {
  const Work work(counts);
  if (!work) return;
  at::Tensor out = ends;
  at::cumsum_out(out, counts, 0, at::kInt);
}

void order_choices(const at::Tensor& experts, const std::vector<std::int64_t>& chosen,
                   const std::vector<std::int64_t>& kept, const at::Tensor& order) {
  const Work work(experts);
  if (!work) return;
  const at::Tensor sorted = std::get<1>(experts.flatten().sort(/*stable=*/true, 0, false));
  if (order.numel() == sorted.numel()) {  // all are kept
    at::Tensor(order).copy_(sorted);
    return;
  }
  std::int64_t from = 0, to = 0;
  for (std::size_t e = 0; e < kept.size(); ++e) {
    order.narrow(0, to, kept[e]).copy_(sorted.narrow(0, from, kept[e]));
    from += chosen[e];
    to += kept[e];
  }
}

void gather_rows(const at::Tensor& from, const at::Tensor& index, const at::Tensor& to) {
  const Work work(from);
  if (!work) return;
  at::Tensor out = to;
  at::index_select_out(out, from, 0, index);
}

void place_rows(const at::Tensor& from, const at::Tensor& index, const at::Tensor& to) {
  const Work work(from);
  if (!work) return;
  at::Tensor out = to;
  if (from.size(0) < to.size(0)) out.zero_();
  out.index_copy_(0, index, from);
}

void scale_rows(const at::Tensor& rows, const at::Tensor& weights, const at::Tensor& order) {
  if (const Work work(rows); work)
    at::Tensor(rows).mul_(weights.flatten().index_select(0, order).unsqueeze(1).to(rows.scalar_type()));
}

void weighted_sum(const at::Tensor& rows, const at::Tensor& weights, const at::Tensor& base,
                  const at::Tensor& to) {
  const Work work(rows);
  if (!work) return;
  const at::Tensor all = by_token(rows, to.size(0)), factors = weights.unsqueeze(1);
  if (casts(rows)) {
    const at::Tensor sum = at::bmm(factors, all.to(weights.scalar_type())).squeeze(1);
    at::Tensor(to).copy_(base.defined() ? sum.add(base) : sum);
    return;
  }
  at::Tensor out = to.unsqueeze(1);
  if (base.defined())
    at::baddbmm_out(out, base.unsqueeze(1), factors.to(rows.scalar_type()), all);
  else
    at::bmm_out(out, factors.to(rows.scalar_type()), all);
}

void sum_choices(const at::Tensor& rows, const at::Tensor& to) {
  const Work work(rows);
  if (!work) return;
  at::Tensor out = to;
  at::sum_out(out, by_token(rows, to.size(0)), {1});
}

void weight_gradients(const at::Tensor& grad, const at::Tensor& rows, const at::Tensor& dweights) {
  const Work work(rows);
  if (!work) return;
  const at::Tensor all = by_token(rows, grad.size(0)), column = grad.unsqueeze(2);
  at::Tensor out = dweights.unsqueeze(2);
  if (rows.is_cuda() && rows.scalar_type() != dweights.scalar_type())
    at::bmm_out(out, all, column, dweights.scalar_type());
  else
    at::bmm_out(out, all.to(dweights.scalar_type()), column.to(dweights.scalar_type()));
}

namespace {

// Rows in sending order, each put where its choice stands: [T * k, n]. Zeros for choices not served.
at::Tensor by_choice(const at::Tensor& rows, const Choices& choices) {
  const at::Tensor all = at::empty({choices.places.numel(), rows.size(1)}, rows.options());
  place_rows(rows, choices.order, all);
  return all;
}

}  // namespace

at::Tensor combine(at::Tensor rows, const Choices& choices, const at::Tensor& weights, const at::Tensor& base,
                   at::Tensor& kept) {
  const bool fused = has_expert_kernels(rows);
  kept = fused ? rows : by_choice(rows, choices);
  rows.reset();
  const at::Tensor sum = at::empty({weights.size(0), kept.size(1)}, kept.options());
  if (fused)
    device::combine(kept, choices.places, weights, base, sum);
  else
    weighted_sum(kept, weights, base, sum);
  return sum;
}

at::Tensor combine_backward(const at::Tensor& grad, const Choices& choices, at::Tensor kept,
                            const at::Tensor& weights, const at::Tensor& dweights) {
  if (has_expert_kernels(kept)) {
    device::combine_backward(grad, choices.places, weights, kept, dweights);
    return kept;
  }
  const at::Tensor drows = at::empty({choices.order.size(0), kept.size(1)}, kept.options());
  weight_gradients(grad, kept, dweights);
  kept.reset();
  gather_rows(grad, choices.tokens, drows);
  scale_rows(drows, weights, choices.order);
  return drows;
}

at::Tensor sum_sent(at::Tensor rows, const Choices& choices, std::int64_t tokens) {
  const bool fused = has_expert_kernels(rows);
  if (!fused) rows = by_choice(rows, choices);
  const at::Tensor sum = at::empty({tokens, rows.size(1)}, rows.options());
  if (fused)
    device::combine(rows, choices.places, {}, {}, sum);
  else
    sum_choices(rows, sum);
  return sum;
}

}  // namespace sweep::kernels
