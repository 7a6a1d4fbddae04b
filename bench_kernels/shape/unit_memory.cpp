#include "bench_kernels/shape/unit_memory.h"

namespace sweep::shape {
namespace moments {

double statistics(const StepSizes& s) {
  return (s.rms ? 1 : 2) * block(s.sums(s.rows));
}

void norm(const StepSizes& s, Moments& m) {
  m.take(kKept, s.residual());
  m.take(kKept, statistics(s));
  if (s.plain_norm) m.moment(kPassing, (s.wide(1) + (s.rms ? 1 : 2)) * s.sums(s.rows * s.hidden));
}

void norm_backward(const StepSizes& s, Moments& m) {
  constexpr double kMostParts = 256;  // blocks that each add up weights' gradients (device/args.h of kernels)
  if (s.plain_norm)
    m.moment(kPassing, (5 + s.wide(1)) * s.sums(s.rows * s.hidden));
  else if (s.gpu)
    m.moment(kPassing, s.sums(std::min(s.rows, kMostParts) * (s.rms ? 1 : 2) * s.hidden));
}

double gathered_rows(const StepSizes& s) {
  return s.rows_split ? s.gathered() : 0;
}

double scattered_rows(const StepSizes& s) {
  return s.rows_split ? s.pieces * s.gathered() : 0;
}

// A factor is divided by its scale, rounded, and laid out anew: the right one in any case (fp8.cpp of
// kernels).
double factors(const StepSizes& s, double left, double right, double added) {
  if (!s.fp8 || !s.gpu) return 0;
  return std::max({(s.element + 1) * left, left + (s.element + 1) * right, left + right + s.element * added});
}

double staged(const StepSizes& s, double elements) {
  return s.staged ? s.element * elements : 0;
}

}  // namespace moments

using namespace moments;

namespace {

// column_backward() of tensor_parallel.cpp: the weights' gradient, then that of the rows, over h.
void column_backward(const StepSizes& s, Moments& m, double columns, double weight) {
  if (!s.later)
    m.moment({{kBuffer, gathered_rows(s)},
              {kPassing, factors(s, s.whole * columns, s.whole * s.hidden)},
              {kBuffer, staged(s, weight)}});
  if (s.later) m.take(kPassing, s.residual());  // not over h, which the weights' part reads
  m.moment({{kBuffer, scattered_rows(s)}, {kPassing, factors(s, s.whole * columns, weight)}});
}

// The MLP's activation, of so many elements (GPU): forward and backward.
double activation(const StepSizes& s, double elements) {
  return s.plain_mlp ? (s.wide(1) + 1) * s.sums(elements) : 0;
}
double activation_backward(const StepSizes& s, double elements) {
  if (!s.plain_mlp) return 0;
  if (!s.gated) return (4 + s.wide(2)) * s.sums(elements);
  return (s.gelu_gate ? 5 + s.wide(3) : 4 + s.wide(3)) * s.sums(elements);
}

void mlp_forward(const StepSizes& s, const UnitWeights& w, Moments& m) {
  const double in = s.gated ? 2 * s.width : s.width;
  m.take(kKept, s.residual());
  norm(s, m);
  const double out = s.residual();
  if (s.norm_starts) m.take(kKept, out);
  m.take(kKept, s.element * s.whole * in);
  m.moment({{kBuffer, gathered_rows(s)}, {kPassing, factors(s, s.whole * s.hidden, w.in)}});
  m.take(kPassing, s.element * s.whole * s.width);
  m.moment(kPassing, activation(s, s.whole * s.width));
  m.moment({{kKept, s.norm_starts ? 0 : out},
            {kBuffer, scattered_rows(s)},
            {kPassing, factors(s, s.whole * s.width, w.down)}});
  m.give(kPassing, s.element * s.whole * s.width);
  if (s.norm_starts) m.give(kKept, out);
}

void mlp_backward(const StepSizes& s, const UnitWeights& w, Moments& m) {
  const double wide = s.element * s.whole * s.width, in = s.gated ? 2 * s.width : s.width;
  m.take(kPassing, s.residual());  // the gradient that comes in
  m.take(kPassing, wide);
  m.take(kBuffer, gathered_rows(s));
  m.moment(kPassing, factors(s, s.whole * s.hidden, w.down));
  m.moment(kPassing, activation_backward(s, s.whole * s.width));
  if (!s.later) {
    m.moment({{kBuffer, staged(s, w.down)}, {kPassing, factors(s, s.whole * s.hidden, s.whole * s.width)}});
    m.give(kBuffer, gathered_rows(s)), m.give(kPassing, wide);
  }
  column_backward(s, m, in, w.in);
  if (!s.later) m.give(kKept, s.element * s.whole * in);
  norm_backward(s, m);
}

}  // namespace

UnitMemory mlp_memory(const StepSizes& s, const UnitWeights& w) {
  UnitMemory out;
  Moments forward;
  mlp_forward(s, w, forward);
  out.saved = forward.now(), out.forward = forward.top();
  Moments backward;
  backward.take(kKept, out.saved.total());
  mlp_backward(s, w, backward);
  out.backward = backward.top();
  if (!s.later) return out;
  // h, the gradient of the input layer's result, the activation, and the rows of the gradient that came in.
  const double in = s.gated ? 2 * s.width : s.width;
  out.later[kKept] = block(s.residual()) + block(s.element * s.whole * in) +
                     block(s.element * s.whole * s.width) + block(s.rows_split ? s.gathered() : s.residual());
  out.weights[kBuffer] = block(gathered_rows(s)) + block(staged(s, std::max(w.in, w.down)));
  return out;
}

UnitMemory embedding_memory(const StepSizes& s, const UnitWeights& w) {
  UnitMemory out;
  const double outside =
      s.gpu && s.tp > 1 ? s.gathered() : 0;  // rows of tokens that are not held are cleared
  out.forward[kKept] = block(s.residual());
  out.forward[kBuffer] = block(s.rows_split ? s.gathered() : 0);
  out.backward[kPassing] = block(s.residual()) + block(outside);
  out.backward[kBuffer] = block(gathered_rows(s)) + block(staged(s, w.table)) + block(staged(s, w.positions));
  out.later[kKept] = block(s.residual());
  out.weights = out.backward, out.weights[kPassing] = block(outside);
  return out;
}

UnitMemory head_memory(const StepSizes& s, const UnitWeights& w) {
  const MemoryPart logits = MemoryPart::kLogits;
  const double entries = s.whole * s.vocabulary, rows = s.sums(s.whole);
  UnitMemory out;
  Moments forward;
  forward.take(kKept, s.residual());
  norm(s, forward);
  forward.take(logits, s.element * entries);
  forward.moment(kBuffer, gathered_rows(s));
  forward.take(kKept, rows);
  if (s.tp > 1) forward.moment({{logits, 3 * rows}});
  if (s.gpu)
    forward.moment({{logits, (1 + s.wide(1)) * s.sums(entries)}, {logits, (s.tp > 1 ? 5 : 2) * rows}});
  out.saved = forward.now(), out.forward = forward.top();
  Moments backward;
  backward.take(kKept, out.saved.total() - block(s.element * entries));
  backward.take(logits, s.element * entries);
  if (s.gpu) backward.moment(logits, 2 * s.sums(entries));
  if (!s.later) backward.moment({{kBuffer, gathered_rows(s)}, {kBuffer, staged(s, w.table)}});
  if (s.later) backward.take(kPassing, s.residual());
  backward.moment(kBuffer, scattered_rows(s));
  if (!s.later) backward.give(logits, s.element * entries);
  norm_backward(s, backward);
  out.backward = backward.top();
  out.later[kKept] = block(s.residual()), out.later[logits] = block(s.element * entries);
  out.weights[kBuffer] = block(gathered_rows(s)) + block(staged(s, w.table));
  return out;
}

}  // namespace sweep::shape
