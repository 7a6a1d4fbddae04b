#include "bench_kernels/kernels/grouped.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

#include "bench_kernels/kernels/device_experts.h"

namespace sweep::kernels {

Arriving::Arriving(const at::Tensor& numbers)
    : host_(numbers.to(at::kCPU, numbers.scalar_type(), /*non_blocking=*/true)) {
  if (numbers.is_cpu()) return;
  there_.emplace(numbers.device().type());
  there_->record(c10::impl::VirtualGuardImpl(numbers.device().type()).getStream(numbers.device()));
}

const std::vector<std::int64_t>& Arriving::get() {
  if (!host_.defined()) return values_;
  if (there_ && !there_->query()) there_->synchronize();
  const auto* first = host_.const_data_ptr<std::int64_t>();
  values_.assign(first, first + host_.numel());
  host_.reset();
  return values_;
}

namespace {

std::int64_t experts_of(const Groups& groups) {
  return groups.ends.size(0);
}

// One expert's part of what is stacked along the first dimension.
at::Tensor of_expert(const at::Tensor& stack, const Groups& groups, std::int64_t expert) {
  const std::int64_t size = stack.size(0) / experts_of(groups);
  return stack.narrow(0, expert * size, size);
}

// f(expert, where its rows begin, how many they are).
template <class F>
void each_group(const Groups& groups, const F& f) {
  std::int64_t begin = 0, expert = 0;
  for (const std::int64_t count : groups.counts()) {
    f(expert++, begin, count);
    begin += count;
  }
}

at::Tensor stacked(const at::Tensor& weight, const Groups& groups) {
  return weight.view({experts_of(groups), -1, weight.size(1)});
}

// All experts have as many rows.
bool balanced(const Groups& groups) {
  const auto& counts = groups.counts();
  const std::int64_t first = counts.empty() ? 0 : counts.front();
  return first > 0 && std::ranges::all_of(counts, [&](std::int64_t count) { return count == first; });
}

}  // namespace

at::Tensor grouped_linear(const at::Tensor& in, const at::Tensor& weight, const Groups& groups,
                          const at::Tensor& bias) {
  const auto of_bias = [&](std::int64_t expert) {
    return bias.defined() ? of_expert(bias, groups, expert) : bias;
  };
  if (groups.at_once && !in.is_meta()) {
    const at::Tensor out = at::_grouped_mm(in, stacked(weight, groups).transpose(1, 2), groups.ends);
    if (!bias.defined()) return out;
    if (has_expert_kernels(out)) {
      device::add_group_bias(out, groups.ends, bias);
      return out;
    }
    each_group(groups, [&](std::int64_t expert, std::int64_t begin, std::int64_t count) {
      if (count > 0) out.narrow(0, begin, count).add_(of_bias(expert));
    });
    return out;
  }
  const at::Tensor out = at::empty({in.size(0), weight.size(0) / experts_of(groups)}, in.options());
  each_group(groups, [&](std::int64_t expert, std::int64_t begin, std::int64_t count) {
    if (count > 0)
      linear(in.narrow(0, begin, count), {of_expert(weight, groups, expert), of_bias(expert)}, {},
             out.narrow(0, begin, count));
  });
  return out;
}

at::Tensor grouped_backward_input(const at::Tensor& dout, const at::Tensor& weight, const Groups& groups) {
  if (groups.at_once && !dout.is_meta()) return at::_grouped_mm(dout, stacked(weight, groups), groups.ends);
  const at::Tensor din = at::empty({dout.size(0), weight.size(1)}, dout.options());
  each_group(groups, [&](std::int64_t expert, std::int64_t begin, std::int64_t count) {
    if (count > 0)
      linear_backward_input(dout.narrow(0, begin, count), {of_expert(weight, groups, expert), {}},
                            din.narrow(0, begin, count));
  });
  return din;
}

void grouped_backward_weight(const at::Tensor& dout, const at::Tensor& in, const Groups& groups,
                             const GradOut& dw) {
  if (dout.is_cuda() && balanced(groups)) {
    const at::Tensor left = stacked(dout, groups).transpose(1, 2), right = stacked(in, groups);
    at::Tensor grad = stacked(dw.grad, groups);
    if (dw.add)
      at::baddbmm_out(grad, grad, left, right);
    else
      at::bmm_out(grad, left, right);
    return;
  }
  each_group(groups, [&](std::int64_t expert, std::int64_t begin, std::int64_t count) {
    at::Tensor grad = of_expert(dw.grad, groups, expert);
    if (count > 0)
      linear_backward_weight(dout.narrow(0, begin, count), in.narrow(0, begin, count), false, {grad, dw.add});
    else if (!dw.add)
      grad.zero_();
  });
}

void grouped_backward_bias(const at::Tensor& dout, const Groups& groups, const GradOut& db) {
  if (has_expert_kernels(dout)) return device::sum_group_bias(dout, groups.ends, db);
  each_group(groups, [&](std::int64_t expert, std::int64_t begin, std::int64_t count) {
    at::Tensor grad = of_expert(db.grad, groups, expert);
    if (count > 0)
      bias_backward(dout.narrow(0, begin, count), {grad, db.add});
    else if (!db.add)
      grad.zero_();
  });
}

}  // namespace sweep::kernels
