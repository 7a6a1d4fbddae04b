#include "bench_kernels/model/parameters.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace sweep::model {
namespace {

constexpr std::int64_t kAlignment = 64;  // bytes: vector loads like aligned stacks

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

Parameters::Id Parameters::add_trained(std::vector<Part> parts, std::int64_t columns, Init init, Role role) {
  TORCH_CHECK(buckets_.empty() && groups_ > 0, "stacks are added in a group, before layout()");
  stacks_.push_back({std::move(parts), columns, init, role, false, false, groups_ - 1});
  return stacks_.size() - 1;
}

// A frozen stack has no gradient to sum over others: of its role only the ranks that hold it matter.
Parameters::Id Parameters::add(std::vector<Part> parts, std::int64_t columns, Init init, Role role) {
  const bool shared = base_frozen_ && role != Role::kExpert;
  const Id id = add_trained(std::move(parts), columns, init, shared ? Role::kDense : role);
  stacks_[id].frozen = base_frozen_;
  return id;
}

void Parameters::quantize(Id id) {
  TORCH_CHECK(stacks_[id].frozen && buckets_.empty(), "what is frozen is quantized, before layout()");
  stacks_[id].quantized = true;
}

void Parameters::layout(const Layout& layout) {
  const at::NoGradGuard no_grad;
  const auto width = static_cast<std::int64_t>(layout.options.dtype().itemsize());
  const std::int64_t unit = std::max<std::int64_t>(1, kAlignment / width);
  std::map<std::tuple<Role, bool, bool>, std::size_t> open;
  if (std::ranges::any_of(stacks_, &Stack::quantized)) codes_ = QuantizedStacks(layout.options);
  for (Id id = stacks_.size(); id-- > 0;) {
    Stack& stack = stacks_[id];
    const std::int64_t elements = round_up(stack.kept(), unit), bytes = stack.quantized ? 1 : width;
    const std::tuple kind{stack.role, stack.frozen, stack.quantized};
    auto found = open.find(kind);
    const Bucket* last = found == open.end() ? nullptr : &buckets_[found->second];
    if (last == nullptr || (last->elements + elements) * bytes > layout.bucket_bytes ||
        (layout.within_groups && last->group != stack.group)) {
      found = open.insert_or_assign(kind, buckets_.size()).first;
      buckets_.push_back({stack.role, stack.frozen, stack.quantized, stack.group, {}, 0, {}, {}});
    }
    Bucket& bucket = buckets_[found->second];
    stack.bucket = found->second;
    stack.offset = bucket.elements;
    bucket.group = std::min(bucket.group, stack.group);
    bucket.stacks.push_back(id);
    bucket.elements += elements;
  }
  values_.resize(stacks_.size());
  for (Bucket& bucket : buckets_) {
    bucket.elements = round_up(bucket.elements, std::max<std::int64_t>(unit, layout.multiple));
    bucket.values =
        at::empty({bucket.elements}, bucket.quantized ? layout.options.dtype(at::kByte) : layout.options);
    for (const Id id : bucket.stacks)
      if (!bucket.quantized) values_[id] = stacks_[id].view(bucket.values);
    if (layout.place)
      layout.place(bucket);
    else
      fill(bucket, bucket.values);
  }
  gradients_.begin(stacks_.size(), layout.products_staged);
}

std::vector<std::size_t> Parameters::buckets_read_by(std::size_t group) const {
  std::set<std::size_t> read;
  for (const Stack& stack : stacks_)
    if (stack.group == group) read.insert(stack.bucket);
  for (const auto& [reader, id] : also_read_)
    if (reader == group) read.insert(stacks_[id].bucket);
  return {read.begin(), read.end()};
}

void Parameters::fill(const Bucket& bucket, const at::Tensor& flat, std::int64_t first) const {
  initial_.fill(stacks_, bucket, flat, first, codes_);
}

at::Tensor Parameters::value(const Named& n, const at::Tensor& flat) const {
  const Stack& stack = stacks_[n.stack];
  return stack.quantized ? codes_.dequantized(stack, n.part, flat) : stack.view(n.part, flat);
}

std::vector<Parameters::Named> Parameters::all() const {
  std::vector<Named> named;
  for (Id id = 0; id < stacks_.size(); ++id)
    for (std::size_t part = 0; part < stacks_[id].parts.size(); ++part)
      named.push_back({stacks_[id].parts[part].name, id, part});
  return named;
}

}  // namespace sweep::model
