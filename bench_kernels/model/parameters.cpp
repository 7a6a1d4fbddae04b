#include "bench_kernels/model/parameters.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/rows.h"

namespace sweep::model {

namespace {

constexpr double kStd = 0.02;            // standard deviation of every initial weight, as in GPT-2 and Llama
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

void Parameters::layout(const Layout& layout) {
  const at::NoGradGuard no_grad;
  const auto width = static_cast<std::int64_t>(layout.options.dtype().itemsize());
  const std::int64_t unit = std::max<std::int64_t>(1, kAlignment / width);
  std::map<std::tuple<Role, bool, bool>, std::size_t> open;
  options_ = layout.options, products_staged_ = layout.products_staged;
  for (Id id = stacks_.size(); id-- > 0;) {
    Stack& stack = stacks_[id];
    const std::int64_t elements = round_up(stack.kept(), unit), bytes = stack.quantized ? 1 : width;
    const std::tuple kind{stack.role, stack.frozen, stack.quantized};
    if (stack.quantized && !maps_.defined()) maps_ = kernels::nf4_maps(layout.options);
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
      if (!bucket.quantized) values_[id] = view(id, bucket.values);
    if (layout.place)
      layout.place(bucket);
    else
      fill(bucket, bucket.values);
  }
  written_.assign(stacks_.size(), false);
  staged_.resize(stacks_.size());
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
  const at::NoGradGuard no_grad;
  at::Tensor(flat).zero_();
  if (bucket.quantized) return fill_quantized(bucket, flat, first);
  if (source_) return fill_from_source(bucket, flat, first);
  for (const Id id : bucket.stacks) {
    const Stack& stack = stacks_[id];
    const std::int64_t columns = std::max<std::int64_t>(1, stack.columns);
    std::int64_t at = stack.offset;
    for (const Part& part : stack.parts) {
      const std::int64_t begin = std::max(at, first);
      const std::int64_t end = std::min(at + part.real_rows() * columns, first + flat.numel());
      if (begin < end && stack.init != Init::kZero) {
        const at::Tensor run = flat.narrow(0, begin - first, end - begin);
        if (stack.init == Init::kOne)
          at::Tensor(run).fill_(1.0);
        else
          draw(part, stack.columns, begin - at, run, bucket.values.device());
      }
      at += part.rows * columns;
      if (filled_) filled_();
    }
  }
}

void Parameters::fill_from_source(const Bucket& bucket, const at::Tensor& flat, std::int64_t first) const {
  const bool whole = flat.numel() == bucket.elements;
  const at::Tensor all = whole ? flat : at::zeros({bucket.elements}, flat.options());
  for (const Id id : bucket.stacks)
    for (std::size_t part = 0; part < stacks_[id].parts.size(); ++part)
      source_(stacks_[id].parts[part], view(id, part, all));
  if (!whole) at::Tensor(flat).copy_(all.narrow(0, first, flat.numel()));
}

// A run of the rank's share, from its element `first` on. The share is rows of `held` elements, each of the
// ranges of a row of the whole tensor; split by rows it is one such row, of runs of whole rows.
void Parameters::draw(const Part& part, std::int64_t columns, std::int64_t first, const at::Tensor& run,
                      at::Device device) const {
  const Slice& slice = part.slice;
  const bool by_columns = slice.whole != 0 && slice.dimension == 1;
  const std::int64_t width = std::max<std::int64_t>(1, columns), scale = by_columns ? 1 : width;
  const std::int64_t held = by_columns ? width : part.real_rows() * width;
  const auto ranges = slice.whole != 0 ? slice.ranges : decltype(slice.ranges){{0, part.real_rows()}};
  const std::uint64_t key = key_of(seed_, part.name);
  // A block of rows from `row` on, of each the elements from `column` on.
  const auto draw_block = [&](const at::Tensor& block, std::int64_t row, std::int64_t column) {
    std::int64_t at = 0;
    for (const auto& [range_begin, range_size] : ranges) {
      const std::int64_t size = range_size * scale, begin = std::max(at, column);
      const std::int64_t end = std::min(at + size, column + block.size(1));
      if (begin < end)
        kernels::fill_uniform(block.narrow(1, begin - column, end - begin), key, kStd * std::sqrt(3.0),
                              {row * slice.whole + range_begin * scale + begin - at, slice.whole}, device);
      at += size;
    }
  };
  for (std::int64_t done = 0; done < run.numel();) {
    const std::int64_t row = (first + done) / held, column = (first + done) % held;
    const std::int64_t left = run.numel() - done, rows = column == 0 ? left / held : 0;
    const std::int64_t size = rows > 0 ? rows * held : std::min(held - column, left);
    draw_block(run.narrow(0, done, size).view({std::max<std::int64_t>(1, rows), -1}), row, column);
    done += size;
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
  return view(id, flat).narrow(0, begin, stack.parts[part].real_rows());
}

kernels::GradOut Parameters::grad(Id id) const {
  const Bucket& bucket = bucket_of(id);
  TORCH_INTERNAL_ASSERT(bucket.grads.defined());
  if (bucket.grads.scalar_type() != bucket.values.scalar_type()) {
    at::Tensor& staged = staged_[id];
    const bool again = staged.defined();
    if (!again) staged = at::empty(values_[id].sizes(), values_[id].options());
    return {staged, again};
  }
  return in_buffer(id);
}

kernels::GradOut Parameters::product_grad(Id id) const {
  const Bucket& bucket = bucket_of(id);
  TORCH_INTERNAL_ASSERT(bucket.grads.defined());
  if (products_staged_ || !kernels::writes_sums(bucket.values, bucket.grads.scalar_type())) return grad(id);
  return in_buffer(id);
}

kernels::GradOut Parameters::in_buffer(Id id) const {
  const bool add = written_[id];
  written_[id] = true;
  return {view(id, bucket_of(id).grads), add};
}

void Parameters::ready(Id id) const {
  if (staged_[id].defined()) {
    const memory::ScratchScope scratch;  // the library's cast of the operand on CPU
    at::Tensor sum = view(id, bucket_of(id).grads);
    if (written_[id])
      sum.add_(staged_[id]);
    else
      sum.copy_(staged_[id]);
    written_[id] = true;
    staged_[id].reset();
  }
  if (observer_) observer_(id);
}

void Parameters::forget_gradients(const Bucket& bucket) {
  for (const Id id : bucket.stacks) written_[id] = false;
}

std::vector<Parameters::Named> Parameters::all() const {
  std::vector<Named> named;
  for (Id id = 0; id < stacks_.size(); ++id)
    for (std::size_t part = 0; part < stacks_[id].parts.size(); ++part)
      named.push_back({stacks_[id].parts[part].name, id, part});
  return named;
}

}  // namespace sweep::model
