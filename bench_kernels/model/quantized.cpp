// Stacks that are kept in 4 bits: their parts lie one after another in the bytes of a bucket, each as
// shape::Nf4Extent says. A tensor is quantized whole, so that the codes do not depend on how it is split.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/device/args.h"
#include "bench_kernels/model/parameters.h"
#include "bench_kernels/shape/quantized_base.h"

namespace sweep::model {
namespace {

using shape::kNf4Block;
// The plan counts the blocks that the kernels use.
static_assert(kNf4Block == device::kNf4Block && shape::kNf4ScaleBlock == device::kNf4ScaleBlock);

constexpr std::int64_t kPiece = std::int64_t{1} << 20;  // weights that are quantized at once

// The tensor that the part is a share of.
Parameters::Part whole_of(const Parameters::Part& part) {
  return {part.name, part.slice.whole != 0 && part.slice.dimension == 0 ? part.slice.whole : part.rows, {}};
}
std::int64_t whole_columns(const Parameters::Part& part, std::int64_t columns) {
  return part.slice.whole != 0 && part.slice.dimension == 1 ? part.slice.whole : columns;
}

shape::Nf4Extent extent_of(const Parameters::Part& part, std::int64_t columns) {
  return {part.rows * columns, whole_of(part).rows * whole_columns(part, columns)};
}

std::vector<kernels::Nf4Run> runs_of(const Parameters::Part& part, std::int64_t columns) {
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

kernels::Nf4 view_of(const Parameters::Part& part, std::int64_t columns, const at::Tensor& bytes,
                     std::int64_t begin) {
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

std::int64_t Parameters::Stack::kept(const Part& part) const {
  if (quantized) return extent_of(part, columns).bytes();
  return part.rows * std::max<std::int64_t>(1, columns);
}

std::int64_t Parameters::Stack::kept() const {
  std::int64_t sum = 0;
  for (const Part& part : parts) sum += kept(part);
  return sum;
}

void Parameters::quantize(Id id) {
  TORCH_CHECK(stacks_[id].frozen && buckets_.empty(), "what is frozen is quantized, before layout()");
  stacks_[id].quantized = true;
}

at::Tensor Parameters::dequantized(Id id, const at::Tensor& flat) const {
  const Stack& stack = stacks_[id];
  const at::Tensor values = at::empty({stack.rows(), stack.columns}, options_);
  std::int64_t row = 0;
  for (std::size_t part = 0; part < stack.parts.size(); ++part) {
    const std::int64_t rows = stack.parts[part].rows;
    dequantize(id, part, flat, values.narrow(0, row, rows));
    row += rows;
  }
  return values;
}

void Parameters::dequantize(Id id, std::size_t part, const at::Tensor& flat, const at::Tensor& values) const {
  const at::NoGradGuard no_grad;
  const Stack& stack = stacks_[id];
  std::int64_t begin = stack.offset;
  for (std::size_t i = 0; i < part; ++i) begin += stack.kept(stack.parts[i]);
  kernels::nf4_dequantize(view_of(stack.parts[part], stack.columns, flat, begin), maps_, values.view({-1}));
}

at::Tensor Parameters::value(const Named& n, const at::Tensor& flat) const {
  const Stack& stack = stacks_[n.stack];
  if (!stack.quantized) return view(n.stack, n.part, flat);
  const at::Tensor values = at::empty({stack.parts[n.part].rows, stack.columns}, options_);
  dequantize(n.stack, n.part, flat, values);
  return values;
}

std::int64_t Parameters::whole_weights(Id id, std::size_t part) const {
  return extent_of(stacks_[id].parts[part], stacks_[id].columns).whole;
}

Parameters::WeightRun Parameters::initial_weights(Id id, std::size_t part) const {
  const Part whole = whole_of(stacks_[id].parts[part]);
  const std::int64_t columns = whole_columns(stacks_[id].parts[part], stacks_[id].columns);
  if (!source_)
    return [this, whole, columns](std::int64_t first, const at::Tensor& run) {
      draw(whole, columns, first, run, options_.device());
    };
  const at::Tensor values = at::empty({whole.rows, columns}, options_);
  source_(whole, values);
  return [values](std::int64_t first, const at::Tensor& run) {
    run.copy_(values.view({-1}).narrow(0, first, run.numel()));
  };
}

void Parameters::quantize_whole(const WeightRun& weights, std::int64_t size,
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

// The part's bytes, of the codes and scales that are made of the whole tensor.
at::Tensor Parameters::packed(Id id, std::size_t number,
                              const std::function<void(const kernels::Nf4&)>& make) const {
  const at::NoGradGuard no_grad;
  const memory::ScratchScope scratch;  // a tensor at a time, before the first step
  const Part& part = stacks_[id].parts[number];
  const shape::Nf4Extent e = extent_of(part, stacks_[id].columns);
  const auto bytes_of = [this](std::int64_t n) { return at::zeros({n}, options_.dtype(at::kByte)); };
  const at::Tensor bytes = bytes_of(e.bytes());
  const kernels::Nf4 kept = view_of(part, stacks_[id].columns, bytes, 0);
  const kernels::Nf4 whole{bytes_of(e.whole / 2), bytes_of(e.whole_blocks()), kept.scales, kept.offset, {}};
  make(whole);
  for (const kernels::Nf4Run& run : kept.runs) {
    copy_blocks(whole.codes, kept.codes, run, kNf4Block / 2);
    copy_blocks(whole.scale_codes, kept.scale_codes, run, 1);
  }
  return bytes;
}

at::Tensor Parameters::quantized(Id id, std::size_t part, const WeightRun& weights) const {
  return packed(id, part,
                [&](const kernels::Nf4& whole) { quantize_whole(weights, whole_weights(id, part), whole); });
}

at::Tensor Parameters::initial_codes(Id id, std::size_t part) const {
  return packed(id, part, [&](const kernels::Nf4& whole) {
    if (!codes_ || !codes_(whole_of(stacks_[id].parts[part]), whole))
      quantize_whole(initial_weights(id, part), whole_weights(id, part), whole);
  });
}

void Parameters::fill_quantized(const Bucket& bucket, const at::Tensor& flat, std::int64_t first) const {
  if (flat.is_meta()) return;
  const memory::ScratchScope scratch;
  for (const Id id : bucket.stacks) {
    std::int64_t at = stacks_[id].offset;
    for (std::size_t part = 0; part < stacks_[id].parts.size(); ++part) {
      const std::int64_t bytes = stacks_[id].kept(stacks_[id].parts[part]);
      const std::int64_t begin = std::max(at, first), end = std::min(at + bytes, first + flat.numel());
      if (begin < end)
        flat.narrow(0, begin - first, end - begin)
            .copy_(initial_codes(id, part).narrow(0, begin - at, end - begin));
      at += bytes;
      if (filled_) filled_();
    }
  }
}

}  // namespace sweep::model
