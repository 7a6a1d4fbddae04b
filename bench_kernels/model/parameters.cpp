#include "bench_kernels/model/parameters.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <map>

#include "bench_kernels/kernels/rows.h"

namespace sweep::model {

namespace {

constexpr double kStd = 0.02;            // of every weight, as GPT-2 and Llama start
constexpr std::int64_t kAlignment = 64;  // bytes: vector loads like aligned stacks

std::uint64_t key_of(std::uint64_t seed, const std::string& name) {
  std::uint64_t key = kernels::mix64(seed);
  for (const unsigned char c : name) key = kernels::mix64(key ^ c);
  return key;
}

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

std::int64_t Parameters::Stack::rows() const {
  std::int64_t sum = 0;
  for (const Part& part : parts) sum += part.rows;
  return sum;
}

Parameters::Id Parameters::add(std::vector<Part> parts, std::int64_t columns, Init init, Role role) {
  TORCH_CHECK(buckets_.empty() && groups_ > 0, "stacks are added in a group, before layout()");
  stacks_.push_back({std::move(parts), columns, init, role, groups_ - 1});
  return stacks_.size() - 1;
}

void Parameters::layout(const Layout& layout) {
  const at::NoGradGuard no_grad;
  const auto width = static_cast<std::int64_t>(layout.options.dtype().itemsize());
  const std::int64_t unit = std::max<std::int64_t>(1, kAlignment / width);
  std::map<Role, std::size_t> open;
  for (Id id = stacks_.size(); id-- > 0;) {
    Stack& stack = stacks_[id];
    const std::int64_t elements = round_up(stack.elements(), unit);
    auto found = open.find(stack.role);
    const Bucket* last = found == open.end() ? nullptr : &buckets_[found->second];
    if (last == nullptr || (last->elements + elements) * width > layout.bucket_bytes ||
        (layout.within_groups && last->group != stack.group)) {
      found = open.insert_or_assign(stack.role, buckets_.size()).first;
      buckets_.push_back({stack.role, stack.group, {}, 0, {}, {}});
    }
    Bucket& bucket = buckets_[found->second];
    stack.bucket = found->second;
    stack.offset = bucket.elements;
    bucket.group = std::min(bucket.group, stack.group);
    bucket.stacks.push_back(id);
    bucket.elements += elements;
  }
  for (Bucket& bucket : buckets_) {
    bucket.elements = round_up(bucket.elements, std::max<std::int64_t>(unit, layout.multiple));
    bucket.values = at::empty({bucket.elements}, layout.options);
    fill(bucket, bucket.values);
  }
  for (Id id = 0; id < stacks_.size(); ++id) values_.push_back(view(id, bucket_of(id).values));
  written_.assign(stacks_.size(), false);
}

void Parameters::fill(const Bucket& bucket, const at::Tensor& flat) const {
  const at::NoGradGuard no_grad;
  at::Tensor(flat).zero_();
  for (const Id id : bucket.stacks) {
    const Stack& stack = stacks_[id];
    for (std::size_t part = 0; part < stack.parts.size(); ++part)
      fill_part(stack.parts[part], stack.init, view(id, part, flat));
  }
}

// Each range of the rank's share takes the values that the whole tensor has there.
void Parameters::fill_part(const Part& part, Init init, const at::Tensor& out) const {
  if (init != Init::kUniform) {
    at::Tensor(out).fill_(init == Init::kOne ? 1.0 : 0.0);
    return;
  }
  const std::uint64_t key = key_of(seed_, part.name);
  const double bound = kStd * std::sqrt(3.0);
  const Slice& slice = part.slice;
  if (slice.whole == 0) return kernels::fill_uniform(out, key, bound, {});
  const std::int64_t columns =
      slice.dimension == 1 ? slice.whole : (out.dim() > 1 ? out.size(1) : 1);  // of the whole tensor
  std::int64_t at = 0;
  for (const auto& [begin, size] : slice.ranges) {
    const std::int64_t first = slice.dimension == 1 ? begin : begin * columns;
    kernels::fill_uniform(out.narrow(slice.dimension, at, size), key, bound, {first, columns});
    at += size;
  }
}

at::Tensor Parameters::view(Id id, const at::Tensor& flat) const {
  const Stack& stack = stacks_[id];
  const at::Tensor run = flat.narrow(0, stack.offset, stack.elements());
  return stack.columns ? run.view({stack.rows(), stack.columns}) : run;
}

at::Tensor Parameters::view(Id id, std::size_t part, const at::Tensor& flat) const {
  const Stack& stack = stacks_[id];
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < part; ++i) begin += stack.parts[i].rows;
  return view(id, flat).narrow(0, begin, stack.parts[part].rows);
}

kernels::GradOut Parameters::grad(Id id) const {
  const Bucket& bucket = bucket_of(id);
  TORCH_INTERNAL_ASSERT(bucket.grads.defined());
  const bool add = written_[id];
  written_[id] = true;
  return {view(id, bucket.grads), add};
}

void Parameters::forget_gradients(const Bucket& bucket) {
  for (const Id id : bucket.stacks) written_[id] = false;
}

void Parameters::forget_gradients() {
  for (const Bucket& bucket : buckets_) forget_gradients(bucket);
}

void Parameters::allocate_gradients() {
  for (Bucket& bucket : buckets_) bucket.grads = at::zeros({bucket.elements}, bucket.values.options());
}

std::vector<Parameters::Named> Parameters::all() const {
  std::vector<Named> named;
  for (Id id = 0; id < stacks_.size(); ++id)
    for (std::size_t part = 0; part < stacks_[id].parts.size(); ++part)
      named.push_back({stacks_[id].parts[part].name, id, part});
  return named;
}

}  // namespace sweep::model
