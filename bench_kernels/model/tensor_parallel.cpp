#include "bench_kernels/model/tensor_parallel.h"

#include <ATen/ATen.h>

namespace sweep::model {
namespace {

constexpr std::int64_t kPieces = 4;  // pieces of an overlapped exchange

struct Range {
  std::int64_t begin, size;
};

std::vector<Range> ranges_of(const Layout& layout, std::int64_t rows, bool in_pieces) {
  const std::int64_t count =
      in_pieces && layout.tensor_overlap && layout.tp() > 1 ? std::min(kPieces, rows) : 1;
  std::vector<Range> ranges;
  for (std::int64_t i = 0; i < count; ++i)
    ranges.push_back({rows * i / count, rows * (i + 1) / count - rows * i / count});
  return ranges;
}

// A piece of every rank's rows lies in `buffer` rank after rank: where each run stands among all rows, whose
// ranks hold `local` each. One run when the piece is everything.
std::vector<std::pair<at::Tensor, std::int64_t>> runs_of(const at::Tensor& buffer, Range piece,
                                                         std::int64_t local) {
  if (piece.size == local) return {{buffer, 0}};
  std::vector<std::pair<at::Tensor, std::int64_t>> runs;
  for (std::int64_t rank = 0; rank * piece.size < buffer.size(0); ++rank)
    runs.emplace_back(buffer.narrow(0, rank * piece.size, piece.size), rank * local + piece.begin);
  return runs;
}

}  // namespace

WholeRows::WholeRows(const Layout& layout, const at::Tensor& local, bool in_pieces) {
  if (!layout.rows_split()) {
    pieces_.push_back({{}, {{local, 0}}});
    return;
  }
  for (const Range range : ranges_of(layout, local.size(0), in_pieces)) {
    const at::Tensor buffer = at::empty({range.size * layout.tp(), local.size(1)}, local.options());
    auto pending = layout.tensor->all_gather(local.narrow(0, range.begin, range.size), buffer);
    pieces_.push_back({std::move(pending), runs_of(buffer, range, local.size(0))});
  }
}

void sum_rows(const Layout& layout, const at::Tensor& out, const PartialRows& compute, bool in_pieces) {
  std::vector<comm::Pending> pending;
  for (const Range range : ranges_of(layout, out.size(0), in_pieces)) {
    const at::Tensor mine = out.narrow(0, range.begin, range.size);
    if (!layout.rows_split()) {
      compute(range.begin, mine);
      pending.push_back(layout.tensor->all_reduce(mine));
      continue;
    }
    if (pending.size() > 1) pending[pending.size() - 2].wait();  // at most two buffers at a time
    const at::Tensor buffer = at::empty({range.size * layout.tp(), out.size(1)}, out.options());
    for (const auto& [rows, begin] : runs_of(buffer, range, out.size(0))) compute(begin, rows);
    pending.push_back(layout.tensor->reduce_scatter(buffer, mine));
  }
  for (comm::Pending& each : pending) each.wait();
}

void column_forward(const StageContext& shared, const Linear& linear, const at::Tensor& h,
                    const at::Tensor& out) {
  WholeRows whole(shared.layout, h);
  whole.each([&](const at::Tensor& rows, std::int64_t begin) {
    kernels::linear(rows, linear.value(*shared.parameters), {}, out.narrow(0, begin, rows.size(0)));
  });
}

at::Tensor column_backward(const StageContext& shared, const Linear& linear, const at::Tensor& dout,
                           const at::Tensor& h) {
  const Parameters& p = *shared.parameters;
  weights_part(shared, [&shared, &p, &linear, dout, h] {
    {
      WholeRows whole(shared.layout, h);
      whole.each([&](const at::Tensor& rows, std::int64_t begin) {
        kernels::linear_backward_weight(dout.narrow(0, begin, rows.size(0)), rows, linear.transposed,
                                        p.grad(linear.weight), linear.fp8);
      });
    }
    if (linear.bias != Parameters::kNone) kernels::bias_backward(dout, p.grad(linear.bias));
    say_ready(p, linear);
  });
  const at::Tensor dh = room_over(shared, h);
  sum_rows(shared.layout, dh, [&](std::int64_t begin, const at::Tensor& to) {
    kernels::linear_backward_input(dout.narrow(0, begin, to.size(0)), linear.value(p), to);
  });
  return dh;
}

namespace {

bool starts_here(const Layout& layout) {
  return !layout.rows_split() && layout.tensor->rank() == 0;
}

}  // namespace

kernels::Start row_start(const StageContext& shared, const Linear& linear, const at::Tensor& x) {
  if (linear.fp8 || !starts_here(shared.layout) || !kernels::norm_starts_product(x)) return {};
  return {linear.value(*shared.parameters).bias, at::empty_like(x)};
}

// Without sequence parallelism the first rank's product starts from bias and residual, so that the sum has
// them once and no pass over the rows is added.
void row_forward(const StageContext& shared, const Linear& linear, const at::Tensor& in,
                 const at::Tensor& residual, const at::Tensor& out) {
  const kernels::Weight weight = linear.value(*shared.parameters);
  const bool split = shared.layout.rows_split(), starts = starts_here(shared.layout);
  const bool started = residual.is_same(out);  // by the norm, with the bias
  const kernels::Weight product{weight.w, starts && !started ? weight.bias : at::Tensor(), weight.transposed,
                                weight.fp8};
  sum_rows(shared.layout, out, [&](std::int64_t begin, const at::Tensor& to) {
    const std::int64_t rows = to.size(0);
    const bool adds = starts && residual.defined();
    const at::Tensor from = started ? to : adds ? residual.narrow(0, begin, rows) : at::Tensor();
    kernels::linear(in.narrow(0, begin, rows), product, from, to);
  });
  if (!split) return;
  kernels::add(out, weight.bias);
  kernels::add(out, residual);
}

void row_backward_input(const StageContext& shared, const Linear& linear, WholeRows& grad,
                        const at::Tensor& din) {
  grad.each([&](const at::Tensor& rows, std::int64_t begin) {
    kernels::linear_backward_input(rows, linear.value(*shared.parameters),
                                   din.narrow(0, begin, rows.size(0)));
  });
}

void row_backward_weight(const StageContext& shared, const Linear& linear, std::shared_ptr<WholeRows> grad,
                         const at::Tensor& in) {
  const Parameters& p = *shared.parameters;
  weights_part(shared, [&p, &linear, grad = std::move(grad), in] {
    grad->each([&](const at::Tensor& rows, std::int64_t begin) {
      kernels::linear_backward_weight(rows, in.narrow(0, begin, rows.size(0)), linear.transposed,
                                      p.grad(linear.weight), linear.fp8);
      if (linear.bias != Parameters::kNone) kernels::bias_backward(rows, p.grad(linear.bias));
    });
    say_ready(p, linear);
  });
}

}  // namespace sweep::model
