#include "bench_kernels/model/quantized_stacks.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/device/args.h"
#include "bench_kernels/shape/quantized_base.h"

namespace sweep::model {

Part whole_of(const Part& part) {
  return {part.name, part.slice.whole != 0 && part.slice.dimension == 0 ? part.slice.whole : part.rows, {}};
}

std::int64_t whole_columns(const Part& part, std::int64_t columns) {
  return part.slice.whole != 0 && part.slice.dimension == 1 ? part.slice.whole : columns;
}

namespace {

using shape::kNf4Block;
// The plan counts the blocks that the kernels use.
static_assert(kNf4Block == device::kNf4Block && shape::kNf4ScaleBlock == device::kNf4ScaleBlock);

constexpr std::int64_t kPiece = std::int64_t{1} << 20;  // weights that are quantized at once

shape::Nf4Extent extent_of(const Part& part, std::int64_t columns) {
  return {part.rows * columns, whole_of(part).rows * whole_columns(part, columns)};
}

std::vector<kernels::Nf4Run> runs_of(const Part& part, std::int64_t columns) {
  const Slice& slice = part.slice;
  if (slice.whole == 0) return {{1, part.rows * columns / kNf4Block, 0, 0, 0, 0}};
  std::vector<kernels::Nf4Run> runs;
  std::int64_t at = 0;
  const bool by_columns = slice.dimension == 1;
  const std::int64_t unit = by_columns ? 1 : columns, rows = by_columns ? part.rows : 1;
  for (const auto& [begin, size] : slice.ranges) {
    const std::int64_t blocks = size * unit / kNf4Block;
    runs.push_back(
        {rows, blocks, at, columns / kNf4Block, begin * unit / kNf4Block, slice.whole / kNf4Block});
    at += blocks;
  }
  return runs;
}

kernels::Nf4 view_of(const Part& part, std::int64_t columns, const at::Tensor& bytes, std::int64_t begin) {
  const shape::Nf4Extent e = extent_of(part, columns);
  const auto fp32 = [&](std::int64_t at, std::int64_t size) {
    return bytes.narrow(0, begin + at, 4 * size).view(at::kFloat);
  };
  return {bytes.narrow(0, begin, e.held / 2), bytes.narrow(0, begin + e.scale_codes_at(), e.blocks()),
          fp32(e.scales_at(), e.scales()), fp32(e.offset_at(), 1), runs_of(part, columns)};
}

// The run's blocks of so many bytes each, of the whole tensor into the part.
void copy_blocks(const at::Tensor& whole, const at::Tensor& part, const kernels::Nf4Run& run,
                 std::int64_t width) {
  const auto blocks = [&](const at::Tensor& flat, std::int64_t first, std::int64_t stride) {
    return flat.as_strided({run.rows, run.blocks * width}, {stride * width, 1},
                           flat.storage_offset() + first * width);
  };
  blocks(part, run.part, run.part_stride).copy_(blocks(whole, run.whole, run.whole_stride));
}

}  // namespace

std::int64_t whole_weights(const Part& part, std::int64_t columns) {
  return extent_of(part, columns).whole;
}

std::int64_t quantized_bytes(const Part& part, std::int64_t columns) {
  return extent_of(part, columns).bytes();
}

QuantizedStacks::QuantizedStacks(at::TensorOptions options)
    : options_(options), maps_(kernels::nf4_maps(options)) {}

at::Tensor QuantizedStacks::dequantized(const Stack& stack, const at::Tensor& flat) const {
  const at::Tensor values = at::empty({stack.rows(), stack.columns}, options_);
  std::int64_t row = 0;
  for (std::size_t part = 0; part < stack.parts.size(); ++part) {
    const std::int64_t rows = stack.parts[part].rows;
    dequantize(stack, part, flat, values.narrow(0, row, rows));
    row += rows;
  }
  return values;
}

at::Tensor QuantizedStacks::dequantized(const Stack& stack, std::size_t part, const at::Tensor& flat) const {
  const at::Tensor values = at::empty({stack.parts[part].rows, stack.columns}, options_);
  dequantize(stack, part, flat, values);
  return values;
}

void QuantizedStacks::dequantize(const Stack& stack, std::size_t part, const at::Tensor& flat,
                                 const at::Tensor& values) const {
  const at::NoGradGuard no_grad;
  std::int64_t begin = stack.offset;
  for (std::size_t i = 0; i < part; ++i) begin += stack.kept(stack.parts[i]);
  kernels::nf4_dequantize(view_of(stack.parts[part], stack.columns, flat, begin), maps_, values.view({-1}));
}

void QuantizedStacks::quantize_whole(const WeightRun& weights, std::int64_t size,
                                     const kernels::Nf4& whole) const {
  const at::Tensor largest = at::empty({size / kNf4Block}, options_.dtype(at::kFloat));
  const at::Tensor room = at::empty({std::min(kPiece, size)}, options_);
  for (std::int64_t first = 0; first < size; first += kPiece) {
    const std::int64_t n = std::min(kPiece, size - first);
    const at::Tensor run = room.narrow(0, 0, n);
    weights(first, run);
    kernels::nf4_quantize(run, maps_, whole.codes.narrow(0, first / 2, n / 2),
                          largest.narrow(0, first / kNf4Block, n / kNf4Block));
  }
  kernels::nf4_quantize_scales(largest, maps_, whole.scale_codes, whole.scales, whole.offset);
}

at::Tensor QuantizedStacks::packed(const Part& part, std::int64_t columns,
                                   const std::function<bool(const kernels::Nf4&)>& make,
                                   const std::function<WeightRun()>& weights) const {
  const at::NoGradGuard no_grad;
  const memory::ScratchScope scratch;  // a tensor at a time, before the first step
  const shape::Nf4Extent e = extent_of(part, columns);
  const auto bytes_of = [this](std::int64_t n) { return at::zeros({n}, options_.dtype(at::kByte)); };
  const at::Tensor bytes = bytes_of(e.bytes());
  const kernels::Nf4 kept = view_of(part, columns, bytes, 0);
  const kernels::Nf4 whole{bytes_of(e.whole / 2), bytes_of(e.whole_blocks()), kept.scales, kept.offset, {}};
  if (!make || !make(whole)) quantize_whole(weights(), e.whole, whole);
  for (const kernels::Nf4Run& run : kept.runs) {
    copy_blocks(whole.codes, kept.codes, run, kNf4Block / 2);
    copy_blocks(whole.scale_codes, kept.scale_codes, run, 1);
  }
  return bytes;
}

at::Tensor QuantizedStacks::quantized(const Part& part, std::int64_t columns,
                                      const WeightRun& weights) const {
  return packed(part, columns, nullptr, [&] { return weights; });
}

}  // namespace sweep::model
