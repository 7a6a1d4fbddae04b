// The mixture-of-experts half of a block: model/moe.cpp.
#include <algorithm>

#include "bench_kernels/shape/unit_memory.h"

namespace sweep::shape {

using namespace moments;

namespace {

class Experts {
 public:
  Experts(const StepSizes& s, const UnitWeights& w) : s_(s), w_(w) {}

  UnitMemory memory() const {
    Moments rest;
    UnitMemory out = of_passes([this](Moments& m) { forward(m); },
                               [&](Moments& m) { backward_of_experts(m), rest = m.from_here(); });
    rest_of_backward(rest);
    out.leaving = rest.top();
    if (!s_.weights.later) return out;
    out.later[kKept] =
        block(s_.gathered()) + 2 * block(rows(s_.experts.received)) + block(in()) + block(in() / 2);
    // The shared experts have the gradient of what they read, what they read of it, and all rows of the gradient.
    if (s_.dims.shared_width > 0)
      out.later[kKept] +=
          block(shared()) + block(shared() / 2) + block(s_.group.rows_split ? s_.gathered() : s_.residual());
    out.weights[kBuffer] =
        block(std::max(staged(s_, std::max(w_.in, w_.down)), staged_product(s_, w_.shared_in)));
    return out;
  }

 private:
  double rows(double n) const { return s_.element * n * s_.dims.hidden; }
  double in() const { return s_.element * s_.experts.received * 2 * s_.dims.width; }
  double logits() const { return s_.rows.whole * s_.experts.count; }
  // Rows of all choices, served or not.
  double by_choice() const { return rows(s_.rows.whole * s_.experts.choices); }
  // Temporaries of an activation of so many elements by library operators, forward and backward.
  double activation(double elements) const {
    if (!s_.kernels.plain_mlp) return 0;
    return (s_.block.clamped ? 3 : 1 + s_.wide(1)) * s_.sums(elements);
  }
  double activation_backward(double elements) const {
    if (!s_.kernels.plain_mlp) return 0;
    return (s_.block.clamped ? 6 + s_.wide(1) : 4 + s_.wide(3)) * s_.sums(elements);
  }
  // The fused kernels of a GPU read and write rows in sending order; library operators need them by choice.
  bool fused() const { return s_.kernels.gpu && !s_.kernels.plain_mlp; }
  double returned() const { return fused() ? rows(s_.experts.sent) : by_choice(); }
  // Gate and up of the shared experts, for all rows.
  double shared() const { return s_.of_rows(2 * s_.dims.shared_width); }
  bool travels() const { return s_.group.ep > 1; }

  // Rows to the experts' owners, or back: what leaves is held until what arrived is in order.
  void travel(Moments& m) const {
    if (travels())
      m.moment(kBuffer, rows(s_.experts.received) + rows(std::max(s_.experts.received, s_.experts.sent)));
  }

  void forward(Moments& m) const {
    m.take(kKept, s_.residual());
    norm(s_, m);
    if (s_.group.rows_split) m.take(kKept, s_.gathered()), m.give(kKept, s_.residual());
    m.take(kKept, s_.sums(logits()));
    m.moment(kPassing, s_.experts.exact_router ? s_.sums(logits()) : s_.element * logits());
    if (s_.experts.learned) m.take(kKept, moments::routes(s_));
    m.take(kKept, 4 * s_.rows.whole * s_.experts.choices);
    m.take(kKept, s_.sums(s_.experts.count));
    if (travels()) m.moment({{kKept, rows(s_.experts.sent)}, {kBuffer, 2 * rows(s_.experts.received)}});
    m.take(kKept, rows(s_.experts.received));
    m.take(kKept, in());
    m.moment(kBuffer, dequantized(s_, w_.in));
    m.take(kPassing, in() / 2);
    m.moment(kPassing, activation(s_.experts.received * s_.dims.width));
    m.moment({{kPassing, rows(s_.experts.received)}, {kBuffer, dequantized(s_, w_.down)}});  // the results
    if (travels()) m.moment({{kPassing, 2 * rows(s_.experts.received)}, {kBuffer, rows(s_.experts.sent)}});
    m.moment({{kPassing, rows(s_.experts.sent)}, {kKept, fused() ? 0 : by_choice()}});
    m.give(kPassing, in() / 2);
    m.take(kKept, returned());
    m.take(kPassing, s_.gathered());
    m.take(kKept, shared());
    m.moment({{kPassing, shared() / 2}, {kPassing, activation(s_.rows.whole * s_.dims.shared_width)}});
    m.give(kPassing, s_.gathered());
    if (s_.group.tp > 1) m.moment({{kPassing, s_.gathered() + s_.residual()}, {kBuffer, scattered_rows(s_)}});
  }

  // Until the gradients of the experts' weights are made.
  void backward_of_experts(Moments& m) const {
    m.take(kPassing, s_.residual());  // the gradient that comes in
    if (!fused()) m.take(kPassing, rows(s_.experts.sent));
    m.moment(kBuffer, gathered_rows(s_));
    if (s_.dims.shared_width > 0) m.take(kBuffer, gathered_rows(s_));
    m.give(kKept, returned());
    if (fused()) m.take(kPassing, rows(s_.experts.sent));  // these rows take the place of what was kept
    travel(m);
    m.give(kPassing, rows(s_.experts.sent)), m.take(kPassing, rows(s_.experts.received));
    m.take(kPassing, in() / 2);
    m.moment(kBuffer, dequantized(s_, w_.down));
    m.moment(kPassing, activation_backward(s_.experts.received * s_.dims.width));
    if (!s_.weights.later) m.moment(kBuffer, s_.weights.frozen ? 0 : staged(s_, std::max(w_.in, w_.down)));
    if (!s_.weights.later) m.give(kPassing, in() / 2), m.give(kPassing, rows(s_.experts.received));
  }

  void rest_of_backward(Moments& m) const {
    if (!s_.weights.later) m.give(kKept, rows(s_.experts.received));
    m.take(kPassing, rows(s_.experts.received));
    m.moment(kBuffer, dequantized(s_, w_.in));
    if (!s_.weights.later) m.give(kKept, in());
    travel(m);
    m.give(kPassing, rows(s_.experts.received)), m.take(kPassing, rows(s_.experts.sent));
    if (!fused()) m.take(kPassing, by_choice()), m.give(kPassing, rows(s_.experts.sent));
    m.take(kPassing, s_.gathered());
    m.give(kPassing, fused() ? rows(s_.experts.sent) : by_choice());
    shared_backward(m);
    m.moment(kPassing, s_.element * logits());
    if (s_.group.tp > 1) m.moment({{kPassing, s_.residual()}, {kBuffer, scattered_rows(s_)}});
    norm_backward(s_, m);
  }

  void shared_backward(Moments& m) const {
    if (s_.dims.shared_width == 0) return;
    m.take(kPassing, shared() / 2);
    m.moment(kPassing, activation_backward(s_.rows.whole * s_.dims.shared_width));
    if (!s_.weights.later) m.moment(kBuffer, staged_product(s_, std::max(w_.shared_in, w_.shared_down), 0));
    if (s_.weights.later) return;
    m.give(kPassing, shared() / 2);
    m.give(kBuffer, gathered_rows(s_)), m.give(kKept, shared());
  }

  const StepSizes& s_;
  const UnitWeights& w_;
};

}  // namespace

namespace moments {
double routes(const StepSizes& s) {
  return 2 * block(8 * s.rows.whole * s.experts.choices) + 2 * block(8 * s.experts.sent) +
         block(s.group.ep > 1 ? 8 * s.experts.received : 0) + block(4 * s.experts.local);
}
}  // namespace moments

UnitMemory experts_memory(const StepSizes& s, const UnitWeights& w) {
  return Experts(s, w).memory();
}

}  // namespace sweep::shape
