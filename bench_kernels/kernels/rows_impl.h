// The loops behind RowKernels, compiled once per instruction set into its own namespace (SWEEP_ISA).
// Everything here is internal to one translation unit, so that no inline function built for a wide
// instruction set can be shared by the linker with code that must run on a narrow one; for the same reason no
// standard header with inline functions is used.
#include <cstdint>

#include "bench_kernels/kernels/rows.h"

namespace sweep::kernels {
namespace {

using Index = std::int64_t;
#define SWEEP_INLINE inline __attribute__((always_inline))
// Iterations touch the same index of every array only, so arrays may coincide but never overlap shifted.
#if defined(__clang__)
#define SWEEP_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define SWEEP_INDEPENDENT _Pragma("GCC ivdep")
#endif

SWEEP_INLINE float load(const float* p) {
  return *p;
}
SWEEP_INLINE double load(const double* p) {
  return *p;
}
SWEEP_INLINE float load(const Bf16* p) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(p->bits) << 16);
}
SWEEP_INLINE float load(const Fp16* p) {
  return static_cast<float>(__builtin_bit_cast(_Float16, p->bits));
}
SWEEP_INLINE void store(Fp16* p, float v) {
  p->bits = __builtin_bit_cast(std::uint16_t, static_cast<_Float16>(v));
}
SWEEP_INLINE void store(float* p, float v) {
  *p = v;
}
SWEEP_INLINE void store(double* p, double v) {
  *p = v;
}
SWEEP_INLINE void store(Bf16* p, float v) {  // round to nearest even; NaN stays NaN
  const auto u = __builtin_bit_cast(std::uint32_t, v);
  const std::uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  p->bits = static_cast<std::uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}

// exp to about 1 ulp without a call, so that loops vectorise: 2^k * p(r), r in [-ln2/2, ln2/2] (Cody and
// Waite 1980; coefficients of Cephes expf). Below -87.3 the result is the smallest normal number, above 88 it
// stays finite; NaN stays NaN.
SWEEP_INLINE float exponential(float x) {
  float c = x < -87.3f ? -87.3f : x;
  c = c > 88.0f ? 88.0f : c;
  const float k = __builtin_rintf(c * 1.44269504088896341f);
  float r = c - k * 0.693359375f;
  r = r + k * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const auto bits = static_cast<std::uint32_t>(static_cast<std::int32_t>(k) + 127) << 23;
  return p * __builtin_bit_cast(float, bits);
}
SWEEP_INLINE double exponential(double x) {
  return __builtin_exp(x);
}
SWEEP_INLINE float root(float x) {
  return __builtin_sqrtf(x);
}
SWEEP_INLINE double root(double x) {
  return __builtin_sqrt(x);
}
SWEEP_INLINE float logarithm(float x) {
  return __builtin_logf(x);
}
SWEEP_INLINE double logarithm(double x) {
  return __builtin_log(x);
}

SWEEP_INLINE std::int32_t ordered(float x) {
  const auto i = __builtin_bit_cast(std::int32_t, x);
  return i ^ ((i >> 31) & 0x7fffffff);
}
SWEEP_INLINE float unordered(std::int32_t i) {
  return __builtin_bit_cast(float, i ^ ((i >> 31) & 0x7fffffff));
}
SWEEP_INLINE std::int64_t ordered(double x) {
  const auto i = __builtin_bit_cast(std::int64_t, x);
  return i ^ ((i >> 63) & 0x7fffffffffffffff);
}
SWEEP_INLINE double unordered(std::int64_t i) {
  return __builtin_bit_cast(double, i ^ ((i >> 63) & 0x7fffffffffffffff));
}

template <class T>
struct Rows {
  using A = typename Accumulate<T>::Type;

  static void rms_norm(const T* x, const T* w, T* y, A* rstd, Index begin, Index end, Index n, double eps,
                       double plus) {
    for (Index row = begin; row < end; ++row) {
      const T* xr = x + row * n;
      T* yr = y + row * n;
      A sum = 0;
      for (Index i = 0; i < n; ++i) sum += load(xr + i) * load(xr + i);
      const A r = A(1) / root(sum / A(n) + A(eps));
      rstd[row] = r;
      for (Index i = 0; i < n; ++i) store(yr + i, load(xr + i) * r * (load(w + i) + A(plus)));
    }
  }

  static void rms_norm_backward(const T* dy, const T* x, const T* w, const A* rstd, const T* residual, T* dx,
                                A* dw, Index begin, Index end, Index n, double plus) {
    for (Index row = begin; row < end; ++row) {
      const T *g = dy + row * n, *xr = x + row * n;
      T* out = dx + row * n;
      const A r = rstd[row];
      A dot = 0;
      for (Index i = 0; i < n; ++i) dot += load(g + i) * (load(w + i) + A(plus)) * load(xr + i);
      const A c = dot * r * r * r / A(n);
      const T* res = residual ? residual + row * n : nullptr;
      SWEEP_INDEPENDENT
      for (Index i = 0; i < n; ++i) {
        const A gi = load(g + i), xi = load(xr + i);
        dw[i] += gi * xi * r;
        store(out + i, (res ? load(res + i) : A(0)) + r * gi * (load(w + i) + A(plus)) - c * xi);
      }
    }
  }

  static void layer_norm(const T* x, const T* w, const T* b, T* y, A* mean, A* rstd, Index begin, Index end,
                         Index n, double eps) {
    for (Index row = begin; row < end; ++row) {
      const T* xr = x + row * n;
      T* yr = y + row * n;
      A sum = 0, squares = 0;
      for (Index i = 0; i < n; ++i) sum += load(xr + i);
      const A m = sum / A(n);
      for (Index i = 0; i < n; ++i) squares += (load(xr + i) - m) * (load(xr + i) - m);
      const A r = A(1) / root(squares / A(n) + A(eps));
      mean[row] = m;
      rstd[row] = r;
      for (Index i = 0; i < n; ++i) store(yr + i, (load(xr + i) - m) * r * load(w + i) + load(b + i));
    }
  }

  static void layer_norm_backward(const T* dy, const T* x, const T* w, const A* mean, const A* rstd,
                                  const T* residual, T* dx, A* dw, A* db, Index begin, Index end, Index n) {
    for (Index row = begin; row < end; ++row) {
      const T *g = dy + row * n, *xr = x + row * n;
      T* out = dx + row * n;
      const A m = mean[row], r = rstd[row];
      A sum = 0, dot = 0;
      for (Index i = 0; i < n; ++i) {
        const A gw = load(g + i) * load(w + i);
        sum += gw;
        dot += gw * (load(xr + i) - m) * r;
      }
      sum /= A(n);
      dot /= A(n);
      const T* res = residual ? residual + row * n : nullptr;
      SWEEP_INDEPENDENT
      for (Index i = 0; i < n; ++i) {
        const A gi = load(g + i), hat = (load(xr + i) - m) * r;
        dw[i] += gi * hat;
        db[i] += gi;
        store(out + i, (res ? load(res + i) : A(0)) + r * (gi * load(w + i) - sum - hat * dot));
      }
    }
  }

  static void rope(T* rows, Index stride, Index begin, Index end, Index seq, Index heads, Index head_dim,
                   const A* cos, const A* sin, A sign) {
    const Index half = head_dim / 2;
    for (Index row = begin; row < end; ++row) {
      const A *c = cos + (row % seq) * half, *s = sin + (row % seq) * half;
      for (Index h = 0; h < heads; ++h) {
        T* __restrict__ a = rows + row * stride + h * head_dim;
        T* __restrict__ b = a + half;
        for (Index i = 0; i < half; ++i) {
          const A x = load(a + i), y = load(b + i), si = s[i] * sign;
          store(a + i, x * c[i] - y * si);
          store(b + i, y * c[i] + x * si);
        }
      }
    }
  }

  // out = of(gate, up), for rows of n gates before as many ups.
  template <A (*of)(A gate, A up)>
  static void gated(const T* gate_up, T* out, Index begin, Index end, Index n) {
    for (Index row = begin; row < end; ++row) {
      const T *gate = gate_up + row * 2 * n, *up = gate + n;
      T* __restrict__ o = out + row * n;
      for (Index i = 0; i < n; ++i) store(o + i, of(load(gate + i), load(up + i)));
    }
  }
  // The slopes of gate and up where that of the result is d, and the result anew.
  struct Gated {
    A gate, up, result;
  };
  template <Gated (*of)(A gate, A up, A d)>
  static void gated_backward(T* gate_up, T* grad, Index begin, Index end, Index n) {
    for (Index row = begin; row < end; ++row) {
      T* __restrict__ gate = gate_up + row * 2 * n;
      T* __restrict__ up = gate + n;
      T* __restrict__ d = grad + row * n;
      for (Index i = 0; i < n; ++i) {
        const Gated slopes = of(load(gate + i), load(up + i), load(d + i));
        store(gate + i, slopes.gate);
        store(up + i, slopes.up);
        store(d + i, slopes.result);
      }
    }
  }

  template <A (*of)(A x)>
  static void each(const T* in, T* out, Index begin, Index end, Index n) {
    const T* p = in + begin * n;
    T* __restrict__ o = out + begin * n;
    const Index count = (end - begin) * n;
    for (Index i = 0; i < count; ++i) store(o + i, of(load(p + i)));
  }
  struct Single {
    A slope, result;
  };
  template <Single (*of)(A x, A d)>
  static void each_backward(T* in, T* grad, Index begin, Index end, Index n) {
    T* __restrict__ p = in + begin * n;
    T* __restrict__ d = grad + begin * n;
    const Index count = (end - begin) * n;
    for (Index i = 0; i < count; ++i) {
      const Single slopes = of(load(p + i), load(d + i));
      store(p + i, slopes.slope);
      store(d + i, slopes.result);
    }
  }

  static SWEEP_INLINE A swiglu(A gate, A up) { return gate / (A(1) + exponential(-gate)) * up; }
  static SWEEP_INLINE Gated swiglu_slopes(A gate, A up, A d) {
    const A s = A(1) / (A(1) + exponential(-gate)), silu = gate * s;
    return {d * up * s * (A(1) + gate - silu), d * silu, silu * up};
  }

  // tanh(v) = 1 - 2 / (exp(2v) + 1).
  static SWEEP_INLINE A gelu_tanh(A x) {
    return A(1) - A(2) / (exponential(A(2) * A(0.7978845608028654) * (x + A(0.044715) * x * x * x)) + A(1));
  }
  // The slope of GELU where its tanh is t.
  static SWEEP_INLINE A gelu_slope(A x, A t) {
    const A inner = A(0.7978845608028654) * (A(1) + A(3 * 0.044715) * x * x);
    return A(0.5) * (A(1) + t + x * (A(1) - t * t) * inner);
  }
  static SWEEP_INLINE A gelu(A x) { return A(0.5) * x * (A(1) + gelu_tanh(x)); }
  static SWEEP_INLINE Single gelu_slopes(A x, A d) {
    const A t = gelu_tanh(x);
    return {d * gelu_slope(x, t), A(0.5) * x * (A(1) + t)};
  }
  static SWEEP_INLINE A geglu(A gate, A up) { return gelu(gate) * up; }
  static SWEEP_INLINE Gated geglu_slopes(A gate, A up, A d) {
    const A t = gelu_tanh(gate), passed = A(0.5) * gate * (A(1) + t);
    return {d * up * gelu_slope(gate, t), d * passed, passed * up};
  }

  static constexpr A kGain = A(1.702), kLimit = A(7);
  static SWEEP_INLINE A clamped(A up) { return up > kLimit ? kLimit : up < -kLimit ? -kLimit : up; }
  static SWEEP_INLINE A clamped_swiglu(A gate, A up) {
    const A g = gate > kLimit ? kLimit : gate;
    return g / (A(1) + exponential(-kGain * g)) * (clamped(up) + A(1));
  }
  static SWEEP_INLINE Gated clamped_swiglu_slopes(A gate, A up, A d) {
    const A g = gate > kLimit ? kLimit : gate, beside = clamped(up) + A(1);
    const A s = A(1) / (A(1) + exponential(-kGain * g)), glu = g * s;
    const A slope = s * (A(1) + kGain * (g - glu));
    return {gate > kLimit ? A(0) : d * beside * slope, clamped(up) == up ? d * glu : A(0), glu * beside};
  }

  // The normal distribution function. The built-in one: an inline function of the library would be one for all
  // instruction sets.
  static SWEEP_INLINE A normal(A x) {
    const A at = x * A(0.7071067811865476);
    if constexpr (sizeof(A) == sizeof(float))
      return A(0.5) * (A(1) + __builtin_erff(at));
    else
      return A(0.5) * (A(1) + __builtin_erf(at));
  }
  static SWEEP_INLINE A gelu_exact(A x) { return x * normal(x); }
  // The distribution's density is exp(-x^2 / 2) / sqrt(2 pi).
  static SWEEP_INLINE Single gelu_exact_slopes(A x, A d) {
    const A below = normal(x), density = A(0.3989422804014327) * exponential(A(-0.5) * x * x);
    return {d * (below + x * density), x * below};
  }

  static SWEEP_INLINE A relu(A x) { return x > A(0) ? x : A(0); }
  static SWEEP_INLINE Single relu_slopes(A x, A d) { return {x > A(0) ? d : A(0), relu(x)}; }

  // Through order-preserving integers: their maximum may be reordered, so it vectorises; a NaN counts as the
  // largest.
  static SWEEP_INLINE A largest(const T* row, Index n) {
    auto m = ordered(load(row));
    for (Index i = 1; i < n; ++i) {
      const auto v = ordered(load(row + i));
      m = v > m ? v : m;
    }
    return unordered(m);
  }

  static double cross_entropy(LogitRows<T> logits, const Index* labels, A* lse, A* picked, Index begin,
                              Index end) {
    double total = 0;
    const Index n = logits.n;
    for (Index row = begin; row < end; ++row) {
      const T* l = logits.at + row * logits.stride;
      const A m = largest(l, n);
      A sum = 0;
      for (Index i = 0; i < n; ++i) sum += exponential(load(l + i) - m);
      lse[row] = m + logarithm(sum);
      const Index at = labels[row] - logits.first;
      const A logit = at >= 0 && at < n ? load(l + at) : A(0);
      if (picked) picked[row] = logit;
      if (labels[row] >= 0) total += static_cast<double>(lse[row]) - static_cast<double>(logit);
    }
    return total;
  }

  static void cross_entropy_backward(LogitRows<T> logits, const Index* labels, const A* lse, A scale,
                                     Index begin, Index end) {
    const Index n = logits.n;
    for (Index row = begin; row < end; ++row) {
      T* l = logits.at + row * logits.stride;
      if (labels[row] < 0) {
        for (Index i = 0; i < n; ++i) store(l + i, A(0));
        continue;
      }
      const A z = lse[row];
      const Index at = labels[row] - logits.first;
      const bool here = at >= 0 && at < n;
      const A at_label = here ? (exponential(load(l + at) - z) - A(1)) * scale : A(0);
      for (Index i = 0; i < n; ++i) store(l + i, exponential(load(l + i) - z) * scale);
      if (here) store(l + at, at_label);
    }
  }

  static void causal_softmax(T* scores, const Index* places, Index begin, Index end, Index seq, Index window,
                             A scale) {
    for (Index row = begin; row < end; ++row) {
      T* s = scores + row * seq;
      const Index last = row % seq, place = places ? places[last] : last;
      const Index first = last - (place < window ? place : window - 1);
      const Index count = last - first + 1;
      const A m = largest(s + first, count) * scale;
      A sum = 0;
      for (Index i = first; i <= last; ++i) {
        const A e = exponential(load(s + i) * scale - m);
        sum += e;
      }
      const A inverse = A(1) / sum;
      for (Index i = 0; i < first; ++i) store(s + i, A(0));
      for (Index i = first; i <= last; ++i) store(s + i, exponential(load(s + i) * scale - m) * inverse);
      for (Index i = last + 1; i < seq; ++i) store(s + i, A(0));
    }
  }

  static void softmax_backward(const T* probs, T* grad, Index begin, Index end, Index n, A scale) {
    for (Index row = begin; row < end; ++row) {
      const T* p = probs + row * n;
      T* g = grad + row * n;
      A dot = 0;
      for (Index i = 0; i < n; ++i) dot += load(p + i) * load(g + i);
      for (Index i = 0; i < n; ++i) store(g + i, load(p + i) * (load(g + i) - dot) * scale);
    }
  }

  static void embed(const T* table, const T* positions, const TokenRows& tokens, T* out, Index begin,
                    Index end, Index n) {
    for (Index row = begin; row < end; ++row) {
      const Index at = tokens.ids[row] - tokens.first;
      T* __restrict__ o = out + row * n;
      if (at >= 0 && at < tokens.held) {
        const T* from = table + at * n;
        for (Index i = 0; i < n; ++i) o[i] = from[i];
      } else {
        for (Index i = 0; i < n; ++i) store(o + i, A(0));
      }
      if (!positions) continue;
      const Index step = row % tokens.seq;
      const T* pos = positions + (tokens.places ? tokens.places[step] : step) * n;
      for (Index i = 0; i < n; ++i) store(o + i, load(o + i) + load(pos + i));
    }
  }

  static void embed_backward(const T* grad, const TokenRows& tokens, T* table_grad, Index rows, Index n,
                             Index first, Index last) {
    for (Index row = 0; row < rows; ++row) {
      const Index at = tokens.ids[row] - tokens.first;
      if (at < 0 || at >= tokens.held) continue;
      const T* g = grad + row * n;
      T* __restrict__ to = table_grad + at * n;
      for (Index i = first; i < last; ++i) store(to + i, load(to + i) + load(g + i));
    }
  }

  static void column_sums(const T* in, Index stride, A* sums, Index begin, Index end, Index n) {
    for (Index row = begin; row < end; ++row) {
      const T* p = in + row * stride;
      for (Index i = 0; i < n; ++i) sums[i] += load(p + i);
    }
  }

  static void store_sums(const A* sums, T* grad, Index n, bool add) {
    for (Index i = 0; i < n; ++i) store(grad + i, add ? load(grad + i) + sums[i] : sums[i]);
  }

  static double squares(const T* in, Index begin, Index end) {
    double sum = 0;
    for (Index i = begin; i < end; ++i) sum += double{load(in + i)} * double{load(in + i)};
    return sum;
  }

  // A 32-bit counter hash (lowbias32, C. Wellons) of the element's index, keyed; 24 bits of it make the
  // value.
  static void fill_uniform(T* out, Index first, Index count, std::uint64_t key, A bound) {
    for (Index i = 0; i < count; ++i) {
      const auto index = static_cast<std::uint64_t>(first + i);
      auto h = static_cast<std::uint32_t>(index) + static_cast<std::uint32_t>(key) +
               static_cast<std::uint32_t>(index >> 32) * 0x9e3779b9u;
      h ^= h >> 16;
      h *= 0x7feb352du;
      h ^= (h >> 15) ^ static_cast<std::uint32_t>(key >> 32);
      h *= 0x846ca68bu;
      h ^= h >> 16;
      store(out + i, (static_cast<A>(static_cast<std::int32_t>(h >> 8)) * A(1.0 / 8388608.0) - A(1)) * bound);
    }
  }

  static constexpr RowKernels<T> table() {
    return {rms_norm,
            rms_norm_backward,
            layer_norm,
            layer_norm_backward,
            rope,
            {{gated<swiglu>, gated_backward<swiglu_slopes>},
             {gated<geglu>, gated_backward<geglu_slopes>},
             {each<gelu>, each_backward<gelu_slopes>},
             {each<gelu_exact>, each_backward<gelu_exact_slopes>},
             {gated<clamped_swiglu>, gated_backward<clamped_swiglu_slopes>},
             {each<relu>, each_backward<relu_slopes>}},
            cross_entropy,
            cross_entropy_backward,
            causal_softmax,
            softmax_backward,
            embed,
            embed_backward,
            column_sums,
            store_sums,
            squares,
            fill_uniform};
  }
};

}  // namespace

namespace SWEEP_ISA {
extern const RowKernels<float> kFloat;
extern const RowKernels<Bf16> kBf16;
extern const RowKernels<Fp16> kFp16;
extern const RowKernels<double> kDouble;
const RowKernels<float> kFloat = Rows<float>::table();
const RowKernels<Bf16> kBf16 = Rows<Bf16>::table();
const RowKernels<Fp16> kFp16 = Rows<Fp16>::table();
const RowKernels<double> kDouble = Rows<double>::table();
}  // namespace SWEEP_ISA

}  // namespace sweep::kernels
