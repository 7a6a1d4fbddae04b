#include "bench_kernels/model/parameters.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>

#include "bench_kernels/kernels/rows.h"

namespace sweep::model {

namespace {

constexpr double kStd = 0.02;  // of every weight, as GPT-2 and Llama start

std::uint64_t key_of(std::uint64_t seed, const std::string& name) {
  std::uint64_t key = kernels::mix64(seed);
  for (const unsigned char c : name) key = kernels::mix64(key ^ c);
  return key;
}

// Are a and then b neighbours in one storage? By storage and offset, so that it holds on meta tensors too.
bool follows(const at::Tensor& a, const at::Tensor& b) {
  return a.is_alias_of(b) && b.storage_offset() == a.storage_offset() + a.numel();
}

}  // namespace

Parameters::Id Parameters::add(std::string name, at::IntArrayRef shape, Init init) {
  list_.emplace_back(std::move(name), at::empty(shape, options_).set_requires_grad(true));
  stacks_.push_back({{list_.size() - 1}, list_.back().second});
  fill(list_.size() - 1, init);
  return list_.size() - 1;
}

Parameters::Stack Parameters::add_stack(const std::vector<Part>& parts, std::int64_t columns, Init init) {
  std::int64_t rows = 0;
  for (const Part& part : parts) rows += part.rows;
  Stack stack;
  stack.whole = columns ? at::empty({rows, columns}, options_) : at::empty({rows}, options_);
  stack.parts.resize(parts.size());
  // Listed last part first: gradient buckets are filled from the end of the list, so that the parts'
  // gradients lie in a bucket in the order of the stack, and one product can write them all.
  std::int64_t end = rows;
  for (std::size_t i = parts.size(); i-- > 0;) {
    end -= parts[i].rows;
    list_.emplace_back(parts[i].name,
                       stack.whole.narrow(0, end, parts[i].rows).detach().set_requires_grad(true));
    stack.parts[i] = list_.size() - 1;
    fill(stack.parts[i], init);
  }
  stacks_.push_back(stack);
  return stack;
}

void Parameters::fill(Id id, Init init) {
  const at::NoGradGuard no_grad;
  at::Tensor tensor = list_[id].second;
  if (init == Init::kUniform)
    kernels::fill_uniform(tensor, key_of(seed_, list_[id].first), kStd * std::sqrt(3.0));
  else
    tensor.fill_(init == Init::kOne ? 1.0 : 0.0);
}

void Parameters::allocate_gradients() {
  for (const Stack& stack : stacks_) {
    const at::Tensor whole = at::empty(stack.whole.sizes(), options_);
    std::int64_t begin = 0;
    for (const Id id : stack.parts) {
      const std::int64_t rows = list_[id].second.size(0);
      list_[id].second.mutable_grad() = stack.parts.size() == 1 ? whole : whole.narrow(0, begin, rows);
      begin += rows;
    }
  }
}

std::vector<Parameters::GradRows> Parameters::grads(const Stack& stack, bool add) const {
  std::vector<GradRows> runs;
  std::int64_t begin = 0;
  at::Tensor last;
  for (const Id id : stack.parts) {
    const at::Tensor grad = list_[id].second.grad();
    const std::int64_t rows = grad.size(0);
    if (last.defined() && follows(last, grad)) {
      GradRows& run = runs.back();
      run.rows += rows;
      auto sizes = grad.sizes().vec();
      sizes[0] = run.rows;
      run.out.grad = run.out.grad.as_strided(sizes, grad.strides());
    } else {
      runs.push_back({{grad, add}, begin, rows});
    }
    last = grad;
    begin += rows;
  }
  return runs;
}

void Parameters::ready(Id id) const {
  const at::Tensor& tensor = list_[id].second;
  const auto& hook = torch::autograd::impl::post_acc_grad_hooks(tensor);
  if (hook) (*hook)(tensor);
}

void Parameters::ready(const Stack& stack) const {
  for (const Id id : stack.parts) ready(id);
}

}  // namespace sweep::model
