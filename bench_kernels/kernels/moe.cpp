#include "bench_kernels/kernels/moe.h"

#include <ATen/ATen.h>

#include <optional>

#include "bench_kernels/kernels/counting_allocator.h"

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

at::Tensor divided(const at::Tensor& index, std::int64_t divisor) {
  return divisor == 1 ? index : index.div(divisor, "floor");
}

}  // namespace

void router_probabilities(const at::Tensor& logits, const at::Tensor& probs) {
  if (const Work work(logits); work) at::Tensor(probs).copy_(logits.to(probs.scalar_type()).softmax(-1));
}

void choose_experts(const at::Tensor& probs, const at::Tensor& experts) {
  if (const Work work(probs); work)
    at::Tensor(experts).copy_(std::get<1>(probs.topk(experts.size(1), -1, true, true)));
}

void router_weights(const at::Tensor& probs, const at::Tensor& experts, const at::Tensor& weights) {
  const Work work(probs);
  if (!work) return;
  const at::Tensor chosen = probs.gather(1, experts);
  at::Tensor(weights).copy_(chosen / chosen.sum(-1, true));
}

void router_backward(const at::Tensor& probs, const at::Tensor& experts, const at::Tensor& weights,
                     const at::Tensor& dweights, const at::Tensor& dprobs, const at::Tensor& dlogits) {
  const Work work(probs);
  if (!work) return;
  const at::Tensor sum = probs.gather(1, experts).sum(-1, true);
  const at::Tensor dchosen = (dweights - (dweights * weights).sum(-1, true)) / sum;
  at::Tensor all = at::zeros_like(probs);
  if (dprobs.defined()) all.add_(dprobs);
  all.scatter_add_(1, experts, dchosen);
  at::Tensor(dlogits).copy_(probs * (all - (all * probs).sum(-1, true)));
}

std::vector<std::int64_t> count_choices(const at::Tensor& experts, std::int64_t count) {
  const Work work(experts);
  const at::Tensor counts = experts.flatten().bincount({}, count).to(at::kCPU).contiguous();
  const auto* data = counts.const_data_ptr<std::int64_t>();
  return {data, data + count};
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

void gather_rows(const at::Tensor& from, const at::Tensor& index, std::int64_t divisor,
                 const at::Tensor& to) {
  const Work work(from);
  if (!work) return;
  at::Tensor out = to;
  at::index_select_out(out, from, 0, divided(index, divisor));
}

void add_rows(const at::Tensor& from, const at::Tensor& index, std::int64_t divisor, const at::Tensor& to) {
  if (const Work work(from); work) at::Tensor(to).index_add_(0, divided(index, divisor), from);
}

void scale_rows(const at::Tensor& rows, const at::Tensor& weights, const at::Tensor& order) {
  if (const Work work(rows); work)
    at::Tensor(rows).mul_(weights.flatten().index_select(0, order).unsqueeze(1).to(rows.scalar_type()));
}

void weight_gradients(const at::Tensor& a, const at::Tensor& b, const at::Tensor& order,
                      const at::Tensor& dweights) {
  const Work work(a);
  if (!work) return;
  at::Tensor(dweights).zero_();
  dweights.view({-1}).index_copy_(0, order,
                                  (a.to(dweights.scalar_type()) * b.to(dweights.scalar_type())).sum(-1));
}

}  // namespace sweep::kernels
