#include "bench_kernels/model/initial_values.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/rows.h"

namespace sweep::model {
namespace {

constexpr double kStd = 0.02;  // standard deviation of every initial weight, as in GPT-2 and Llama

std::uint64_t key_of(std::uint64_t seed, const std::string& name) {
  std::uint64_t key = kernels::mix64(seed);
  for (const unsigned char c : name) key = kernels::mix64(key ^ c);
  return key;
}

}  // namespace

void InitialValues::fill(const std::vector<Stack>& stacks, const Bucket& bucket, const at::Tensor& flat,
                         std::int64_t first, const QuantizedStacks& quantized) const {
  const at::NoGradGuard no_grad;
  at::Tensor(flat).zero_();
  if (bucket.quantized) return fill_quantized(stacks, bucket, flat, first, quantized);
  if (source_) return fill_from_source(stacks, bucket, flat, first);
  for (const std::size_t id : bucket.stacks) {
    const Stack& stack = stacks[id];
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

void InitialValues::fill_from_source(const std::vector<Stack>& stacks, const Bucket& bucket,
                                     const at::Tensor& flat, std::int64_t first) const {
  const bool whole = flat.numel() == bucket.elements;
  const at::Tensor all = whole ? flat : at::zeros({bucket.elements}, flat.options());
  for (const std::size_t id : bucket.stacks)
    for (std::size_t part = 0; part < stacks[id].parts.size(); ++part)
      source_(stacks[id].parts[part], stacks[id].view(part, all));
  if (!whole) at::Tensor(flat).copy_(all.narrow(0, first, flat.numel()));
}

// A run of the rank's share, from its element `first` on. The share is rows of `held` elements, each of the
// ranges of a row of the whole tensor; split by rows it is one such row, of runs of whole rows.
void InitialValues::draw(const Part& part, std::int64_t columns, std::int64_t first, const at::Tensor& run,
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

WeightRun InitialValues::of_whole(const Part& part, std::int64_t columns, at::TensorOptions options) const {
  const Part whole = whole_of(part);
  const std::int64_t all_columns = whole_columns(part, columns);
  if (!source_)
    return [this, whole, all_columns, device = options.device()](std::int64_t first, const at::Tensor& run) {
      draw(whole, all_columns, first, run, device);
    };
  const at::Tensor values = at::empty({whole.rows, all_columns}, options);
  source_(whole, values);
  return [values](std::int64_t first, const at::Tensor& run) {
    run.copy_(values.view({-1}).narrow(0, first, run.numel()));
  };
}

void InitialValues::fill_quantized(const std::vector<Stack>& stacks, const Bucket& bucket,
                                   const at::Tensor& flat, std::int64_t first,
                                   const QuantizedStacks& quantized) const {
  if (flat.is_meta()) return;
  const memory::ScratchScope scratch;
  const auto bytes_of = [&](const Part& part, std::int64_t columns) {
    const auto codes = [&](const kernels::Nf4& whole) { return codes_ && codes_(whole_of(part), whole); };
    return quantized.packed(part, columns, codes,
                            [&] { return of_whole(part, columns, quantized.options()); });
  };
  for (const std::size_t id : bucket.stacks) {
    const Stack& stack = stacks[id];
    std::int64_t at = stack.offset;
    for (const Part& part : stack.parts) {
      const std::int64_t bytes = stack.kept(part);
      const std::int64_t begin = std::max(at, first), end = std::min(at + bytes, first + flat.numel());
      if (begin < end)
        flat.narrow(0, begin - first, end - begin)
            .copy_(bytes_of(part, stack.columns).narrow(0, begin - at, end - begin));
      at += bytes;
      if (filled_) filled_();
    }
  }
}

}  // namespace sweep::model
