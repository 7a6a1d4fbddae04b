#include "bench_kernels/shape/kernel_work.h"

#include <cmath>

#include "bench_kernels/shape/family.h"

namespace sweep::shape {
namespace {

constexpr double kWide = 4;  // bytes of a number in fp32, which sums are made in

// Bytes of an element and launches of one pass, by the bytes of the stored type. `casts`: copies to or from fp32, which
// are none where that is the stored type; `copies`: results stored by a copy in any type.
struct Operators {
  double wide_bytes = 0, stored = 0;  // bytes in fp32; accesses in the stored type
  double casts = 0, copies = 0, others = 0;
  KernelWork on(double elements, double element) const {
    const bool narrow = element < kWide;
    const double moved =
        wide_bytes + stored * element + (narrow ? casts : 0) * (element + kWide) + copies * (element + kWide);
    return {elements * moved, others + copies + (narrow ? casts : 0)};
  }
};

struct TwoPasses {
  Operators forward, backward;
  PassWork on(double elements, double element) const {
    return {forward.on(elements, element), backward.on(elements, element)};
  }
};

// {bytes in fp32, accesses in the stored type, casts, copies, other launches}, forward and backward.
// The fused norm also writes what the block's last product starts from.
constexpr TwoPasses kFusedNorm{{0, 3, 0, 0, 1}, {0, 4, 0, 0, 2}};
constexpr TwoPasses kRms{{28, 0, 1, 1, 7}, {84, 1, 2, 1, 11}};
constexpr TwoPasses kLayerNorm{{48, 0, 1, 1, 11}, {108, 1, 2, 1, 16}};
// Around a norm in fp32: the copy that is kept, and the result; backward the gradient, and a residual in 16 bits.
constexpr TwoPasses kNormCopies{{0, 0, 1, 1, 1}, {0, 3, 1, 1, 4}};

constexpr TwoPasses kFusedGate{{0, 3, 0, 0, 1}, {0, 6, 0, 0, 1}};
constexpr TwoPasses kGate{{28, 1, 1, 1, 3}, {100, 0, 3, 3, 9}};
constexpr TwoPasses kEagerGate{{0, 5, 0, 0, 2}, {0, 11, 0, 0, 4}};
constexpr TwoPasses kFusedGelu{{0, 2, 0, 0, 1}, {0, 4, 0, 0, 1}};
constexpr TwoPasses kGelu{{72, 0, 1, 1, 8}, {192, 0, 2, 2, 21}};
constexpr TwoPasses kEagerGelu{{64, 2, 0, 3, 8}, {104, 5, 0, 4, 13}};

constexpr TwoPasses kRope{{28, 0, 2, 1, 9}, {28, 0, 2, 1, 10}};

constexpr TwoPasses kScores{{0, 6, 0, 0, 9}, {0, 7, 0, 0, 3}};
constexpr TwoPasses kEagerScores{{24, 0, 0, 2, 9}, {44, 0, 0, 2, 5}};

constexpr Operators kFusedLoss{0, 3, 0, 0, 2};
constexpr Operators kLoss{16, 0, 0, 2, 7};
constexpr Operators kEagerLoss{24, 0, 0, 2, 8};

PassWork norm_work(const ModelSpec& m, const KernelChoice& k, double elements, double element) {
  const TwoPasses& alone = k.fused.norm ? kFusedNorm : m.rmsnorm ? kRms : kLayerNorm;
  if (!k.autocast) return alone.on(elements, element);
  PassWork out = alone.on(elements, kWide);
  return out += kNormCopies.on(elements, element);
}

PassWork activation_work(const ModelSpec& m, const KernelChoice& k, double elements, double element) {
  if (k.autocast) return (m.swiglu ? kEagerGate : kEagerGelu).on(elements, element);
  if (k.fused.mlp) return (m.swiglu ? kFusedGate : kFusedGelu).on(elements, element);
  return (m.swiglu ? kGate : kGelu).on(elements, element);
}

// Forward in place. Backward the gradients of queries, keys and values become one tensor: one kernel does that and turns
// them back, or three copies do.
PassWork position_work(const ModelSpec& m, const KernelChoice& k, const LayerColumns& c) {
  const double turned = c.tokens * (c.query + c.key_value), all = turned + c.tokens * c.key_value;
  const bool at_once = k.fused.rope && !k.math;
  PassWork out;
  out.backward = {2 * c.element * all, at_once ? 1.0 : 3.0};
  if (!m.rope) return out;
  if (!k.fused.rope) return out += kRope.on(turned, c.element);
  out.forward = {2 * c.element * turned, 1};
  if (!at_once) out.backward += {2 * c.element * turned, 1};
  return out;
}

KernelWork bias_work(const ModelSpec& m, const LayerColumns& c) {
  KernelWork out;
  if (m.attention_bias) out += {c.tokens * c.element * (c.query + 2 * c.key_value), 1};
  if (m.linear_bias) out += {c.tokens * c.element * (2 * c.hidden + c.mlp), 3};
  return out;
}

// Each factor of a layer's products is read for its largest number, and again to be rounded: input and weight forward, the
// factors of two products backward.
PassWork rounding_work(const ModelSpec& m, const LayerColumns& c, double parameters) {
  const double gates = m.swiglu ? 2 : 1;
  const double in = 2 * c.hidden + c.query + c.mlp;
  const double out = c.query + 2 * c.key_value + 2 * c.hidden + gates * c.mlp;
  const double each = 2 * c.element + 1, products = 4;
  return {{each * (c.tokens * in + parameters), products * 4},
          {each * (c.tokens * (in + 2 * out) + parameters), products * 8}};
}

}  // namespace

KernelChoice kernel_choice(const Trial& t) {
  const KernelPath path = kernel_path(t);
  return {fused_groups(t, path),
          attention_kind(t, path) == AttentionKind::kMath,
          autocasts(t),
          state_types(t).casts(),
          t.precision == Precision::kFp8,
          t.cuda_graph};
}

bool is_default(const KernelChoice& k) {
  const FusedGroups& f = k.fused;
  return f.norm && f.rope && f.mlp && f.loss && !k.math && !k.autocast && !k.casts && !k.fp8 && !k.graph;
}

PassWork layer_work(const ModelSpec& m, const KernelChoice& k, const LayerColumns& c, double parameters) {
  const double stream = c.norm_tokens * c.hidden;
  PassWork out;
  for (int each = 0; each < (family_of(m).post_norms() ? 4 : 2); ++each)
    out += norm_work(m, k, stream, c.element);
  if (family_of(m).qk_norm) out += norm_work(m, k, c.tokens * (c.query + c.key_value), c.element);
  out += position_work(m, k, c);
  out += activation_work(m, k, c.tokens * c.mlp, c.element);
  out.backward += bias_work(m, c);
  if (k.casts) out += {{parameters * (kWide + c.element), 2}, {parameters * (kWide + c.element), 2}};
  if (k.fp8) out += rounding_work(m, c, parameters);
  return out;
}

PassWork attention_work(const ModelSpec& m, const KernelChoice& k, const LayerColumns& c) {
  const bool shared = m.kv_heads < m.heads;
  const double sums = shared ? 2 * c.element * c.tokens * (c.query + c.key_value) : 0;
  if (!k.math) return {{0, 1}, {sums, 3.0 + (shared ? 2 : 0)}};
  PassWork out = (k.autocast ? kEagerScores : kScores).on(c.tokens * c.keys * c.heads, c.element);
  const double copy = 2 * c.element * c.tokens * c.query;  // bytes of copying one tensor of all heads
  out += {{4 * copy, 4 + 2}, {5 * copy + sums, 5.0 + 4 + (shared ? 2 : 0)}};  // and two products, four
  return out;
}

KernelWork loss_work(const KernelChoice& k, double rows, double entries, double element) {
  constexpr double kPiece = 256 << 20;  // bytes of a chunk's logits; of library operators, in fp32
  const double width = k.fused.loss && !k.autocast ? element : kWide;
  const double pieces = k.autocast ? 1 : std::ceil(rows * entries * width / kPiece);
  KernelWork out = (k.autocast ? kEagerLoss : k.fused.loss ? kFusedLoss : kLoss).on(rows * entries, element);
  out.launches *= pieces;
  return out;
}

}  // namespace sweep::shape
