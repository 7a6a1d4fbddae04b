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

// A piece of every rank's rows lies in `buffer` rank after rank: where each of its blocks stands among all rows,
// whose ranks hold `local` each. One block when the piece is everything, and where products take several at once.
std::vector<std::pair<at::Tensor, std::int64_t>> blocks_of(const at::Tensor& buffer, Range piece,
                                                           std::int64_t local) {
  if (piece.size == local) return {{buffer, 0}};
  if (kernels::takes_blocks(buffer)) return {{buffer.unflatten(0, {-1, piece.size}), piece.begin}};
  std::vector<std::pair<at::Tensor, std::int64_t>> blocks;
  for (std::int64_t rank = 0; rank * piece.size < buffer.size(0); ++rank)
    blocks.emplace_back(buffer.narrow(0, rank * piece.size, piece.size), rank * local + piece.begin);
  return blocks;
}

}  // namespace

at::Tensor rows_at(const at::Tensor& rows, std::int64_t begin, const at::Tensor& like) {
  if (like.dim() == 2) return rows.narrow(0, begin, like.size(0));
  return rows.unflatten(0, {like.size(0), -1}).narrow(1, begin, like.size(1));
}

WholeRows::WholeRows(const Layout& layout, const at::Tensor& local, bool in_pieces) {
  if (!layout.rows_split()) {
    pieces_.push_back({{}, {{local, 0}}});
    return;
  }
  for (const Range range : ranges_of(layout, local.size(0), in_pieces)) {
    const at::Tensor buffer = at::empty({range.size * layout.tp(), local.size(1)}, local.options());
    auto pending = layout.tensor->all_gather(local.narrow(0, range.begin, range.size), buffer);
    pieces_.push_back({std::move(pending), blocks_of(buffer, range, local.size(0))});
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
    if (pending.size() > 1) pending[pending.size() - 2].wait();  // at most two buffers are in use at a time
    const at::Tensor buffer = at::empty({range.size * layout.tp(), out.size(1)}, out.options());
    for (const auto& [rows, begin] : blocks_of(buffer, range, out.size(0))) compute(begin, rows);
    pending.push_back(layout.tensor->reduce_scatter(buffer, mine));
  }
  for (comm::Pending& each : pending) each.wait();
}

at::Tensor all_rows(const Layout& layout, const at::Tensor& rows) {
  if (!layout.rows_split()) return rows;
  const at::Tensor all = at::empty({rows.size(0) * layout.tp(), rows.size(1)}, rows.options());
  layout.tensor->all_gather(rows, all).wait();
  return all;
}

at::Tensor sum_all_rows(const Layout& layout, const at::Tensor& all, const at::Tensor& like) {
  if (layout.tensor->alone()) return all;
  const at::Tensor out = at::empty_like(like);
  sum_rows(layout, out,
           [&](std::int64_t begin, const at::Tensor& to) { at::Tensor(to).copy_(rows_at(all, begin, to)); });
  return out;
}

namespace {

// The adapters' part of a product on some rows: forward, of the low rows' gradient, and backward to the input.
class AdapterRows {
 public:
  AdapterRows(const StageContext& shared, const Linear& linear)
      : adapter_(linear.adapter), p_(*shared.parameters) {}

  bool there() const { return adapter_.there(); }
  at::Tensor room(const at::Tensor& like, std::int64_t rows) const {
    return there() ? at::empty({rows, adapter_.width()}, like.options()) : at::Tensor();
  }
  void forward(const at::Tensor& in, const at::Tensor& low, const at::Tensor& out) const {
    kernels::linear(in, {p_[adapter_.a], {}, false, false}, {}, low);
    each([&](std::int64_t low_at, std::int64_t b_at, const Adapter::Piece& piece) {
      kernels::scaled_product(low.narrow(-1, low_at, adapter_.rank),
                              p_[adapter_.b].narrow(0, b_at, piece.size).t(), adapter_.scale,
                              out.narrow(-1, piece.column, piece.size), true);
    });
  }
  void low_gradient(const at::Tensor& dout, const at::Tensor& dlow) const {
    each([&](std::int64_t low_at, std::int64_t b_at, const Adapter::Piece& piece) {
      kernels::scaled_product(dout.narrow(-1, piece.column, piece.size),
                              p_[adapter_.b].narrow(0, b_at, piece.size), adapter_.scale,
                              dlow.narrow(-1, low_at, adapter_.rank), false);
    });
  }
  void input(const at::Tensor& dlow, const at::Tensor& din) const {
    kernels::scaled_product(dlow, p_[adapter_.a], 1, din, true);
  }
  void weights(const at::Tensor& dout_blocks, const at::Tensor& in, const at::Tensor& low_blocks,
               const at::Tensor& dlow) const {
    kernels::linear_backward_weight(dlow, in, false, p_.gradients().of_product(adapter_.a));
    const at::Tensor dout = kernels::rows_of(dout_blocks), low = kernels::rows_of(low_blocks);
    const kernels::GradOut db = p_.gradients().of_product(adapter_.b);
    each([&](std::int64_t low_at, std::int64_t b_at, const Adapter::Piece& piece) {
      kernels::scaled_product(dout.narrow(-1, piece.column, piece.size).t(),
                              low.narrow(-1, low_at, adapter_.rank), adapter_.scale,
                              db.grad.narrow(0, b_at, piece.size), db.add);
    });
  }
  void ready() const { p_.gradients().ready(adapter_.b), p_.gradients().ready(adapter_.a); }

 private:
  template <class F>
  void each(const F& f) const {
    std::int64_t low_at = 0, b_at = 0;
    for (const Adapter::Piece& piece : adapter_.pieces) {
      f(low_at, b_at, piece);
      low_at += adapter_.rank, b_at += piece.size;
    }
  }
  const Adapter& adapter_;
  const Parameters& p_;
};

}  // namespace

at::Tensor column_forward(const StageContext& shared, const Linear& linear, const at::Tensor& h,
                          const at::Tensor& out) {
  const AdapterRows adapter(shared, linear);
  const at::Tensor low = adapter.room(out, out.size(0));
  const kernels::Weight weight = linear.value(*shared.parameters);
  WholeRows whole(shared.layout, h);
  whole.each([&](const at::Tensor& rows, std::int64_t begin) {
    const at::Tensor to = rows_at(out, begin, rows);
    kernels::linear(rows, weight, {}, to);
    if (adapter.there()) adapter.forward(rows, rows_at(low, begin, rows), to);
  });
  return low;
}

namespace {

// The gradients of what is trained of a column-parallel layer: its weight, or its adapters.
void column_weights(const StageContext& shared, const Linear& linear, const at::Tensor& dout,
                    const at::Tensor& h, const LowRows& low) {
  const Parameters& p = *shared.parameters;
  const AdapterRows adapter(shared, linear);
  const bool trains = p.trains(linear.weight);
  if (!trains && !adapter.there()) return;
  {
    WholeRows whole(shared.layout, h);
    whole.each([&](const at::Tensor& rows, std::int64_t begin) {
      const at::Tensor from = rows_at(dout, begin, rows);
      if (trains)
        kernels::linear_backward_weight(from, rows, linear.transposed,
                                        p.gradients().of_product(linear.weight), linear.fp8);
      else
        adapter.weights(from, rows, rows_at(low.value, begin, rows), rows_at(low.gradient, begin, rows));
    });
  }
  if (!trains) return adapter.ready();
  if (linear.bias != Parameters::kNone) kernels::bias_backward(dout, p.gradients().of(linear.bias));
  say_ready(p, linear);
}

}  // namespace

at::Tensor column_backward(const StageContext& shared, const Linear& linear, const at::Tensor& dout,
                           const at::Tensor& h, const at::Tensor& low) {
  const Parameters& p = *shared.parameters;
  const AdapterRows adapter(shared, linear);
  const LowRows rows_between{low, adapter.room(dout, dout.size(0))};
  if (adapter.there()) adapter.low_gradient(dout, rows_between.gradient);
  weights_part(shared, [&shared, &linear, dout, h, rows_between] {
    column_weights(shared, linear, dout, h, rows_between);
  });
  const at::Tensor dh = room_over(shared, h);
  const kernels::Weight weight = linear.value(p);
  sum_rows(shared.layout, dh, [&](std::int64_t begin, const at::Tensor& to) {
    kernels::linear_backward_input(rows_at(dout, begin, to), weight, to);
    if (adapter.there()) adapter.input(rows_at(rows_between.gradient, begin, to), to);
  });
  return dh;
}

namespace {

bool starts_here(const Layout& layout) {
  return !layout.rows_split() && layout.tensor->rank() == 0;
}

}  // namespace

kernels::Start row_start(const StageContext& shared, const Linear& linear, const at::Tensor& x) {
  if (linear.fp8 || shared.options.autocast || !starts_here(shared.layout)) return {};
  if (!kernels::norm_starts_product(x)) return {};
  return {linear.bias_of(*shared.parameters), at::empty_like(x)};
}

// Without sequence parallelism the first rank's product starts from bias and residual, so that the sum has
// them once and no pass over the rows is added.
at::Tensor row_forward(const StageContext& shared, const Linear& linear, const at::Tensor& in,
                       const at::Tensor& residual, const at::Tensor& out) {
  const kernels::Weight weight = linear.value(*shared.parameters);
  const bool split = shared.layout.rows_split(), starts = starts_here(shared.layout);
  const bool started = residual.is_same(out);  // the norm wrote the start, with the bias
  const kernels::Weight product{weight.w, starts && !started ? weight.bias : at::Tensor(), weight.transposed,
                                weight.fp8};
  const AdapterRows adapter(shared, linear);
  const at::Tensor low = adapter.room(in, in.size(0));
  sum_rows(shared.layout, out, [&](std::int64_t begin, const at::Tensor& to) {
    const bool adds = starts && residual.defined();
    const at::Tensor from = rows_at(in, begin, to);
    kernels::linear(from, product, started ? to : adds ? rows_at(residual, begin, to) : at::Tensor(), to);
    if (adapter.there()) adapter.forward(from, rows_at(low, begin, to), to);
  });
  if (!split) return low;
  kernels::add(out, weight.bias);
  kernels::add(out, residual);
  return low;
}

at::Tensor row_backward_input(const StageContext& shared, const Linear& linear, WholeRows& grad,
                              const at::Tensor& din) {
  const AdapterRows adapter(shared, linear);
  const at::Tensor dlow = adapter.room(din, din.size(0));
  const kernels::Weight weight = linear.value(*shared.parameters);
  grad.each([&](const at::Tensor& rows, std::int64_t begin) {
    const at::Tensor to = rows_at(din, begin, rows);
    kernels::linear_backward_input(rows, weight, to);
    if (!adapter.there()) return;
    adapter.low_gradient(rows, rows_at(dlow, begin, rows));
    adapter.input(rows_at(dlow, begin, rows), to);
  });
  return dlow;
}

void row_backward_weight(const StageContext& shared, const Linear& linear, std::shared_ptr<WholeRows> grad,
                         const at::Tensor& in, const LowRows& low) {
  const Parameters& p = *shared.parameters;
  const bool trains = p.trains(linear.weight);
  if (!trains && !linear.adapter.there()) return;
  weights_part(shared, [&shared, &p, &linear, trains, grad = std::move(grad), in, low] {
    const AdapterRows adapter(shared, linear);
    grad->each([&](const at::Tensor& rows, std::int64_t begin) {
      const at::Tensor from = rows_at(in, begin, rows);
      if (!trains)
        return adapter.weights(rows, from, rows_at(low.value, begin, rows),
                               rows_at(low.gradient, begin, rows));
      kernels::linear_backward_weight(rows, from, linear.transposed, p.gradients().of_product(linear.weight),
                                      linear.fp8);
      if (linear.bias != Parameters::kNone) kernels::bias_backward(rows, p.gradients().of(linear.bias));
    });
    if (!trains) return adapter.ready();
    say_ready(p, linear);
  });
}

at::Tensor whole_forward(const StageContext& shared, const Linear& linear, const at::Tensor& rows,
                         const at::Tensor& out) {
  const AdapterRows adapter(shared, linear);
  const at::Tensor low = adapter.room(out, out.size(0));
  kernels::linear(rows, linear.value(*shared.parameters), {}, out);
  if (adapter.there()) adapter.forward(rows, low, out);
  return low;
}

at::Tensor low_gradient(const StageContext& shared, const Linear& linear, const at::Tensor& dout) {
  const AdapterRows adapter(shared, linear);
  const at::Tensor dlow = adapter.room(dout, dout.size(0));
  if (adapter.there()) adapter.low_gradient(dout, dlow);
  return dlow;
}

void whole_backward_input(const StageContext& shared, const Linear& linear, const at::Tensor& dout,
                          const at::Tensor& dlow, const at::Tensor& din, bool add) {
  const kernels::Weight weight = linear.value(*shared.parameters);
  if (add)
    kernels::scaled_product(dout, weight.w, 1, din, true);
  else
    kernels::linear_backward_input(dout, weight, din);
  if (const AdapterRows adapter(shared, linear); adapter.there()) adapter.input(dlow, din);
}

void whole_backward_weight(const StageContext& shared, const Linear& linear, const at::Tensor& dout,
                           const at::Tensor& rows, const LowRows& low) {
  const Parameters& p = *shared.parameters;
  if (p.trains(linear.weight))
    return weights_part(shared, [&p, &linear, dout, rows] {
      kernels::linear_backward_weight(dout, rows, false, p.gradients().of_product(linear.weight));
      say_ready(p, linear);
    });
  const AdapterRows adapter(shared, linear);
  if (!adapter.there()) return;
  adapter.weights(dout, rows, low.value, low.gradient);
  adapter.ready();
}

}  // namespace sweep::model
