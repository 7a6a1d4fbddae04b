// The plain equivalents that take a softmax over long rows: attention scores and logits. They are the largest
// tensors of a step, so these work in place, and in the accumulation type on pieces only.
#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include <algorithm>
#include <cmath>

#include "bench_kernels/kernels/dispatch.h"
#include "bench_kernels/kernels/held_tokens.h"

namespace sweep::kernels::plain {
namespace {

// f(a piece of the rows, the piece's part of each of the others).
template <class F, class... Rows>
void by_pieces(const at::Tensor& logits, const F& f, const Rows&... others) {
  constexpr std::int64_t kPiece = std::int64_t{256} << 20;  // bytes, in the accumulation type
  const std::int64_t rows = logits.size(0), width = at::elementSize(accumulate_type(logits.scalar_type()));
  const std::int64_t most = std::max<std::int64_t>(1, kPiece / (logits.size(1) * width));
  for (std::int64_t begin = 0; begin < rows; begin += most) {
    const std::int64_t size = std::min(most, rows - begin);
    f(logits.narrow(0, begin, size), others.narrow(0, begin, size)...);
  }
}

// A new tensor in the accumulation type.
at::Tensor log_softmax(const at::Tensor& logits) {
  at::Tensor wider =
      logits.to(accumulate_type(logits.scalar_type()), false, /*copy=*/true, at::MemoryFormat::Contiguous);
  at::_log_softmax_out(wider, wider, -1, false);
  return wider;
}

// target = value * factor, in the target's type; the value is lost. A processor would make a temporary of an output whose
// type is not that of the computation; a GPU writes it at once.
void store(at::Tensor target, at::Tensor value, double factor) {
  if (target.is_cpu()) {
    target.copy_(value.mul_(factor));
    return;
  }
  at::mul_out(target, value, at::native::wrapped_scalar_tensor(factor));
}

// exp(logits - lse) as a new tensor of the accumulation type, and no further one for the operand of fewer digits.
at::Tensor exp_above(const at::Tensor& logits, const at::Tensor& lse) {
  if (logits.is_cpu())
    return logits.to(lse.scalar_type(), false, /*copy=*/true).sub_(lse.unsqueeze(1)).exp_();
  return logits.sub(lse.unsqueeze(1)).exp_();
}

}  // namespace

void cross_entropy(const at::Tensor& logits, const Labels& labels, double scale, const at::Tensor& total) {
  const auto piece = [&](const at::Tensor& rows, const at::Tensor& of) {
    const at::Tensor index = (labels.holes ? of.clamp_min(0) : of).unsqueeze(1);
    const at::Tensor hole = labels.holes ? of.lt(0).unsqueeze_(1) : at::Tensor();
    at::Tensor p = log_softmax(rows), found = p.gather(1, index);
    if (labels.holes) found.masked_fill_(hole, 0.0);
    at::Tensor(total).sub_(found.sum().to(total.scalar_type()));
    p.exp_().scatter_(1, index, -1.0, "add");
    if (labels.holes) p.masked_fill_(hole, 0.0);
    store(rows, p, scale);
  };
  by_pieces(logits, piece, labels.ids);
}

void cross_entropy_share(const at::Tensor& logits, const Labels& labels, std::int64_t first,
                         const at::Tensor& lse, const at::Tensor& picked) {
  const auto piece = [&](const at::Tensor& rows, const at::Tensor& of, at::Tensor sum, at::Tensor found) {
    const at::Tensor largest = rows.amax(-1).to(sum.scalar_type());
    at::sum_out(sum, exp_above(rows, largest), {-1});
    sum.log_().add_(largest);
    const HeldTokens held(of, first, rows.size(1));
    found.copy_(rows.gather(1, held.index.unsqueeze(1)).squeeze(1));
    held.clear(found);
  };
  by_pieces(logits, piece, labels.ids, lse, picked);
}

void cross_entropy_backward(const at::Tensor& logits, const Labels& labels, const at::Tensor& lse,
                            double scale, std::int64_t first) {
  const auto piece = [&](const at::Tensor& rows, const at::Tensor& of, const at::Tensor& sum) {
    const HeldTokens held(of, first, rows.size(1));
    at::Tensor p = exp_above(rows, sum);
    p.scatter_add_(1, held.index.unsqueeze(1), held.outside.to(p.scalar_type()).sub_(1.0).unsqueeze(1));
    if (labels.holes) p.masked_fill_(of.lt(0).unsqueeze_(1), 0.0);
    store(rows, p, scale);
  };
  by_pieces(logits, piece, labels.ids, lse);
}

void causal_softmax(const at::Tensor& scores, std::int64_t window, double scale, const at::Tensor& places) {
  const std::int64_t seq = scores.size(-1);
  const auto index = scores.options().dtype(at::kLong);
  const at::Tensor column = at::arange(seq, index).unsqueeze(0), row = at::arange(seq, index).unsqueeze(1);
  const at::Tensor hidden = column.gt(row).bitwise_or_(column.le(row.sub(window)));
  at::Tensor s = scores;
  s.mul_(scale).masked_fill_(hidden, -INFINITY);
  for (std::int64_t b = 0; places.defined() && b < s.size(0); ++b) {
    const at::Tensor begins = row.sub(places.narrow(0, b * seq, seq).unsqueeze(1));
    s.select(0, b).masked_fill_(column.lt(begins), -INFINITY);
  }
  at::_softmax_out(s, s, -1, false);
}

void softmax(const at::Tensor& scores, double scale) {
  at::Tensor s = scores;
  s.mul_(scale);
  at::_softmax_out(s, s, -1, false);
}

void softmax_backward(const at::Tensor& probs, const at::Tensor& dots, const at::Tensor& grad, double scale) {
  at::Tensor(grad).sub_(dots).mul_(probs).mul_(scale);
}

}  // namespace sweep::kernels::plain
