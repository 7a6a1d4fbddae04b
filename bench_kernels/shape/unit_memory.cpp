#include "bench_kernels/shape/unit_memory.h"

#include <algorithm>

#include "bench_kernels/shape/splits.h"

namespace sweep::shape {
namespace moments {

double statistics(const StepSizes& s) {
  return (s.block.rms ? 1 : 2) * block(s.sums(s.rows.residual));
}

double angles(const StepSizes& s) {
  const double tables = s.block.local_angles ? 4 : 2;
  return tables * (block(2 * s.rows.local_seq * s.dims.head_dim) +
                   (s.rows.packed ? block(2 * s.rows.whole * s.dims.head_dim) : 0));
}

double micro_batch(const StepSizes& s) {
  return 2 * block(8 * s.rows.whole) + block(8 * s.rows.batch * s.rows.encoder_seq) +
         (s.rows.packed ? block(8 * s.rows.whole) + block(4 * (s.rows.documents + 1)) : 0);
}

namespace {
double norm_temporaries(const StepSizes& s) {
  return s.kernels.plain_norm ? (s.wide(1) + (s.block.rms ? 1 : 2)) * s.sums(s.rows.residual * s.dims.hidden)
                              : 0;
}
}  // namespace

void norm(const StepSizes& s, Moments& m) {
  m.take(kKept, s.residual());
  m.take(kKept, statistics(s));
  const double wide = s.sums(s.rows.residual * s.dims.hidden);
  if (s.kernels.autocast) {
    m.take(kKept, wide);  // x, and for a moment y
    m.moment(kPassing, wide * (1 + (!s.kernels.plain_norm ? 0 : s.block.rms ? 1 : 2)));
  } else {
    m.moment(kPassing, norm_temporaries(s));
  }
}

double norm_gradients(const StepSizes& s, double rows, double columns) {
  constexpr double kMostParts = 256;  // blocks that each add up weights' gradients (device/args.h of kernels)
  if (s.kernels.plain_norm) return (5 + (s.kernels.autocast ? 0 : s.wide(1))) * s.sums(rows * columns);
  return s.kernels.gpu ? s.sums(std::min(rows, kMostParts) * (s.block.rms ? 1 : 2) * columns) : 0;
}

void norm_backward(const StepSizes& s, Moments& m) {
  const double wide =
      s.kernels.autocast ? s.sums(s.rows.residual * s.dims.hidden) : 0;    // dy, which becomes dx
  const double unread = s.weights.frozen ? s.element * s.dims.hidden : 0;  // gradients of a frozen norm
  m.moment({{kPassing, norm_gradients(s, s.rows.residual, s.dims.hidden)},
            {kPassing, wide},
            {kPassing, unread},
            {kPassing, s.block.rms ? 0 : unread}});
}

void post_norm(const StepSizes& s, Moments& m) {
  if (!s.block.post_norms) return;
  m.take(kKept, s.residual()), m.take(kKept, statistics(s));
  m.moment({{kKept, s.residual()}, {kPassing, norm_temporaries(s)}});
}

void post_norm_backward(const StepSizes& s, Moments& m) {
  if (!s.block.post_norms) return;
  m.take(kPassing, s.residual());
  norm_backward(s, m);
  m.give(kKept, s.residual()), m.give(kKept, statistics(s));
}

void end_post_norm_backward(const StepSizes& s, Moments& m) {
  if (s.block.post_norms && !s.weights.later) m.give(kPassing, s.residual());
}

double bias_backward(const StepSizes& s) {
  return block(s.sums(s.score_bias())) + (s.kernels.gpu ? block(2 * s.sums(s.score_bias())) : 0);
}

double gathered_rows(const StepSizes& s) {
  return s.group.rows_split ? s.gathered() : 0;
}

double scattered_rows(const StepSizes& s) {
  return s.group.rows_split ? s.group.pieces * s.gathered() : 0;
}

// Both factors in eight bits, and a result that is still to be added (fp8.cpp of kernels).
double factors(const StepSizes& s, double left, double right, double added) {
  if (!s.kernels.fp8 || !s.kernels.gpu) return 0;
  return left + right + s.element * added;
}

double dequantized(const StepSizes& s, double elements) {
  return s.weights.quantized ? s.element * elements : 0;
}

double staged(const StepSizes& s, double elements) {
  return s.weights.staged ? s.element * elements : 0;
}

double staged_product(const StepSizes& s, double elements) {
  return s.weights.staged_products ? s.element * elements : 0;
}

double staged_product(const StepSizes& s, double weight, double adapters) {
  return staged_product(s, s.weights.frozen ? adapters : weight);
}

double regathered_rows(const StepSizes& s, double low_columns) {
  return s.weights.frozen && low_columns == 0 ? 0 : gathered_rows(s);
}

}  // namespace moments

using namespace moments;

namespace {

// column_backward() of tensor_parallel.cpp: the weights' gradient, then that of the rows, over h.
void column_backward(const StepSizes& s, Moments& m, double columns, const UnitWeights& w) {
  m.take(kPassing, s.of_rows(s.low.in));  // the gradient of the low rows
  if (!s.weights.later)
    m.moment({{kBuffer, regathered_rows(s, s.low.in)},
              {kPassing, factors(s, s.rows.whole * columns, s.rows.whole * s.dims.hidden)},
              {kBuffer, staged_product(s, w.in, w.in_adapters)}});
  if (s.weights.later) m.take(kPassing, s.residual());  // not over h, which the weights' part reads
  m.moment({{kBuffer, dequantized(s, w.in)},
            {kBuffer, scattered_rows(s)},
            {kPassing, factors(s, s.rows.whole * columns, w.in)}});
  m.give(kPassing, s.of_rows(s.low.in));
}

// The MLP's activation, of so many elements (GPU): forward and backward.
double activation(const StepSizes& s, double elements) {
  return s.kernels.plain_mlp ? (s.wide(1) + 1) * s.sums(elements) : 0;
}
double activation_backward(const StepSizes& s, double elements) {
  if (!s.kernels.plain_mlp) return 0;
  if (!s.block.gated) return ((s.block.relu ? 2 : s.block.exact_gelu ? 3 : 4) + s.wide(2)) * s.sums(elements);
  return (s.block.gelu_gate ? 5 + s.wide(3) : 4 + s.wide(3)) * s.sums(elements);
}

// eager_activation() of kernels/autocast.h, of so many elements: `in` is there, and the result is kept.
void eager_activation(const StepSizes& s, double n, Moments& m) {
  const double half = s.element * n, wide = s.sums(n);
  m.take(kKept, half);  // half of in, or the gate
  if (!s.block.gated) {
    m.take(kKept, wide);
    m.give(kKept, half);
    m.take(kKept, wide), m.take(kKept, wide);
    m.moment({{kPassing, wide}, {kKept, half}});
  }
  m.take(kKept, half);
}
// Beside the gradient of the result; that of `in` takes the place of what was kept, and the result is left.
void eager_activation_backward(const StepSizes& s, double n, Moments& m) {
  const double half = s.element * n, wide = s.sums(n);
  if (s.block.gated) {
    m.moment(kPassing, 4 * half);
    m.give(kKept, half);
  } else {
    m.moment(kPassing, 2 * wide + half);
    for (int i = 0; i < 3; ++i) m.give(kKept, wide);
  }
  m.give(kKept, half);
}

void mlp_forward(const StepSizes& s, const UnitWeights& w, Moments& m) {
  const double in = s.block.gated ? 2 * s.dims.width : s.dims.width;
  m.take(kKept, s.residual());
  norm(s, m);
  const double out = s.residual();
  if (s.kernels.norm_starts) m.take(kKept, out);
  m.take(kKept, s.of_rows(in));
  m.take(kKept, s.of_rows(s.low.in));
  m.moment({{kBuffer, dequantized(s, w.in)},
            {kBuffer, gathered_rows(s)},
            {kPassing, factors(s, s.rows.whole * s.dims.hidden, w.in)}});
  if (s.kernels.autocast) {
    eager_activation(s, s.rows.whole * s.dims.width, m);
  } else {
    m.take(kPassing, s.of_rows(s.dims.width));
    m.moment(kPassing, activation(s, s.rows.whole * s.dims.width));
  }
  m.take(kKept, s.of_rows(s.low.down));
  m.moment({{kKept, s.kernels.norm_starts ? 0 : out},
            {kBuffer, dequantized(s, w.down)},
            {kBuffer, scattered_rows(s)},
            {kPassing, factors(s, s.rows.whole * s.dims.width, w.down)}});
  if (!s.kernels.autocast) m.give(kPassing, s.of_rows(s.dims.width));
  if (s.kernels.norm_starts || s.kernels.autocast) m.give(kKept, out);
  post_norm(s, m);
}

void mlp_backward(const StepSizes& s, const UnitWeights& w, Moments& m) {
  const double wide = s.of_rows(s.dims.width), in = s.block.gated ? 2 * s.dims.width : s.dims.width;
  m.take(kPassing, s.residual());  // the gradient that comes in
  m.take(kPassing, wide);
  post_norm_backward(s, m);
  m.take(kBuffer, gathered_rows(s));
  m.take(kPassing, s.of_rows(s.low.down));
  m.moment({{kBuffer, dequantized(s, w.down)}, {kPassing, factors(s, s.rows.whole * s.dims.hidden, w.down)}});
  if (s.kernels.autocast)
    eager_activation_backward(s, s.rows.whole * s.dims.width, m);
  else
    m.moment(kPassing, activation_backward(s, s.rows.whole * s.dims.width));
  if (!s.weights.later) {
    m.moment({{kBuffer, staged_product(s, w.down, w.down_adapters)},
              {kPassing, factors(s, s.rows.whole * s.dims.hidden, s.rows.whole * s.dims.width)}});
    m.give(kBuffer, gathered_rows(s)), m.give(kPassing, wide);
  }
  end_post_norm_backward(s, m);
  m.give(kPassing, s.of_rows(s.low.down)), m.give(kKept, s.of_rows(s.low.down));
  column_backward(s, m, in, w);
  if (!s.weights.later) m.give(kKept, s.of_rows(in));
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
  if (!s.weights.later) return out;
  // h, the gradient of the input layer's result, the activation, and the rows of the gradient that came in.
  const double in = s.block.gated ? 2 * s.dims.width : s.dims.width;
  out.later[kKept] = block(s.residual()) + block(s.of_rows(in)) + block(s.of_rows(s.dims.width)) +
                     block(s.group.rows_split ? s.gathered() : s.residual());
  out.weights[kBuffer] = block(gathered_rows(s)) + block(staged_product(s, std::max(w.in, w.down)));
  return out;
}

UnitMemory dense_mlp_memory(const StepSizes& sizes, const UnitWeights& weights) {
  StepSizes s = sizes;
  UnitWeights w = weights;
  s.dims.width = s.dims.dense_width, w.in = w.dense_in, w.down = w.dense_down;
  return mlp_memory(s, w);
}

UnitMemory embedding_memory(const StepSizes& s, const UnitWeights& w) {
  UnitMemory out;
  const double outside =
      s.kernels.gpu && s.group.tp > 1 ? s.gathered() : 0;  // rows of tokens that are not held are cleared
  out.forward[kKept] = block(s.residual()) + block(s.element * s.score_bias());
  out.forward[kBuffer] = block(s.group.rows_split ? s.gathered() : 0);
  if (s.kernels.gpu && s.rows.packed && w.positions > 0)
    out.forward[kPassing] = block(s.gathered());  // each row's position
  out.backward[kPassing] = block(s.residual()) + block(s.weights.frozen ? 0 : outside);
  if (s.weights.frozen) return out;
  out.backward[kBuffer] = block(gathered_rows(s)) + block(staged(s, w.table)) + block(staged(s, w.positions));
  // Before the gradient of the table is made, that of relative positions.
  out.backward[kPassing] += std::max(0.0, bias_backward(s) - out.backward[kBuffer]);
  out.later[kKept] = block(s.residual());
  out.weights = out.backward, out.weights[kPassing] = block(outside);
  return out;
}

namespace {

// A chunk's loss on so many rows takes beside its logits the sums of a share of the vocabulary, and by library operators
// a piece in fp32; the fused kernel of a GPU takes two numbers a row.
double loss_room(const StepSizes& s, double rows) {
  if (s.kernels.autocast) return 3 * block(s.sums(rows * s.dims.vocabulary));
  const double line = block(s.sums(rows));
  const double shares = s.group.tp > 1 ? 2 * line + block(2 * s.sums(rows)) : 0;
  const double piece =
      real(std::min(i64(rows), std::max<i64>(1, kLossChunk / i64(s.sums(s.dims.vocabulary)))));
  if (s.kernels.plain_loss) return shares + block(s.sums(piece * s.dims.vocabulary));
  return shares + (s.kernels.gpu && s.group.tp == 1 ? 2 * line : 0);
}

double chunk_rows(const StepSizes& s) {
  return s.kernels.autocast ? s.rows.whole
                            : real(loss_rows(i64(s.rows.whole), i64(s.dims.vocabulary), i64(s.element)));
}

void head_backward(const StepSizes& s, const UnitWeights& w, Moments& m) {
  const MemoryPart logits = MemoryPart::kLogits;
  const double most = chunk_rows(s);
  const double entries = (s.weights.later ? s.rows.whole : most) * s.dims.vocabulary;
  m.take(kBuffer, gathered_rows(s));
  if (s.weights.later && !s.group.rows_split) m.take(kPassing, s.residual());
  m.take(logits, s.element * entries);
  m.moment(logits, loss_room(s, most));
  if (!s.weights.later)
    m.moment(
        {{kBuffer, staged_product(s, w.table, 0)}, {logits, most < s.rows.whole ? loss_room(s, most) : 0}});
  if (!s.weights.later) m.give(logits, s.element * entries);
  if (s.weights.later && s.group.rows_split) m.take(kPassing, s.residual());
  norm_backward(s, m);
}

}  // namespace

UnitMemory head_memory(const StepSizes& s, const UnitWeights& w) {
  UnitMemory out = of_passes(
      [&](Moments& m) {
        m.take(kKept, s.residual());
        norm(s, m);
        if (s.kernels.autocast) m.give(kKept, s.residual());
      },
      [&](Moments& m) { head_backward(s, w, m); });
  if (!s.weights.later) return out;
  out.later[kKept] = block(s.residual());
  out.later[MemoryPart::kLogits] = block(s.of_rows(s.dims.vocabulary));
  out.weights[kBuffer] = block(gathered_rows(s)) + block(staged_product(s, w.table));
  return out;
}

PartBytes evaluated_head_memory(const StepSizes& s) {
  Moments normed, loss;
  normed.take(kKept, s.residual());
  norm(s, normed);
  normed.moment(kBuffer, gathered_rows(s));
  loss.take(s.group.rows_split ? kBuffer : kKept, s.group.rows_split ? gathered_rows(s) : s.residual());
  loss.take(MemoryPart::kLogits, s.element * chunk_rows(s) * s.dims.vocabulary);
  loss.moment(MemoryPart::kLogits, loss_room(s, chunk_rows(s)));
  PartBytes most = normed.top();
  keep_larger(most, loss.top());
  return most;
}

}  // namespace sweep::shape
