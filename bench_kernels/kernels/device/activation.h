// The MLP's activation: SwiGLU, GEGLU, GELU (tanh form and exact) and ReLU, forward, and backward in place: the input
// becomes its gradient, and the gradient of the output becomes the output again.
#pragma once
#include "bench_kernels/kernels/device/scalar.h"

namespace sweep::device {

__device__ inline float exponential(float x) {
  return expf(x);
}
__device__ inline double exponential(double x) {
  return exp(x);
}
__device__ inline float hyperbolic(float x) {
  return tanhf(x);
}
__device__ inline double hyperbolic(double x) {
  return tanh(x);
}

__device__ inline float error_function(float x) {
  return erff(x);
}
__device__ inline double error_function(double x) {
  return erf(x);
}

// The factor of an activation's result: the other half, or a function of it.
template <class A>
struct Other {
  A value, slope;
  __device__ explicit Other(A x) : value(x), slope(1) {}
};

// An activation function and its slope at one point.
template <class A>
struct Silu {
  using Beside = Other<A>;
  A value, slope;
  __device__ explicit Silu(A x) {
    const A s = A(1) / (A(1) + exponential(-x));
    value = x * s, slope = s * (A(1) + x - value);
  }
};
template <class A>
struct Gelu {
  using Beside = Other<A>;
  A value, slope;
  __device__ explicit Gelu(A x) {
    constexpr A kScale = A(0.79788456080286535588), kCubic = A(0.044715);
    const A t = hyperbolic(kScale * (x + kCubic * x * x * x));
    value = A(0.5) * x * (A(1) + t);
    slope = A(0.5) * (A(1) + t + x * (A(1) - t * t) * kScale * (A(1) + 3 * kCubic * x * x));
  }
};

// gpt-oss: both halves are clamped, and the other one is taken plus 1 (Activation::kClampedSwiglu of ops.h).
template <class A>
struct ClampedOther {
  A value, slope;
  __device__ explicit ClampedOther(A x) {
    constexpr A kLimit = A(7);
    const bool outside = x > kLimit || x < -kLimit;
    value = (x > kLimit ? kLimit : x < -kLimit ? -kLimit : x) + A(1), slope = outside ? A(0) : A(1);
  }
};
template <class A>
struct ClampedSilu {
  using Beside = ClampedOther<A>;
  A value, slope;
  __device__ explicit ClampedSilu(A raw) {
    constexpr A kGain = A(1.702), kLimit = A(7);
    const A x = raw > kLimit ? kLimit : raw, s = A(1) / (A(1) + exponential(-kGain * x));
    value = x * s, slope = raw > kLimit ? A(0) : s * (A(1) + kGain * (x - value));
  }
};

template <class A>
struct GeluExact {
  using Beside = Other<A>;
  A value, slope;
  __device__ explicit GeluExact(A x) {
    const A below = A(0.5) * (A(1) + error_function(x * A(0.70710678118654752440)));
    value = x * below;
    slope = below + x * A(0.39894228040143267794) * exponential(A(-0.5) * x * x);
  }
};

template <class A>
struct Relu {
  using Beside = Other<A>;
  A value, slope;
  __device__ explicit Relu(A x) : value(x > A(0) ? x : A(0)), slope(x > A(0) ? A(1) : A(0)) {}
};

template <class T, int K, template <class> class F, bool kGated>
__device__ inline void activate(const ActivationArgs& args) {
  using A = Wide<T>;
  for (Index row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const T* in = static_cast<const T*>(args.in) + row * (kGated ? 2 : 1) * args.n;
    T* out = static_cast<T*>(args.out) + row * args.n;
    over_columns<K>(args.n, [&](Index c, auto size) {
      constexpr int kSize = decltype(size)::value;
      A x[kSize];
      [[maybe_unused]] A up[kSize];
      load<kSize>(in + c, x);
      if constexpr (kGated) load<kSize>(in + args.n + c, up);
      for (int k = 0; k < kSize; ++k) {
        x[k] = F<A>(x[k]).value;
        if constexpr (kGated) x[k] *= typename F<A>::Beside(up[k]).value;
      }
      store<kSize>(x, out + c);
    });
  }
}

template <class T, int K, template <class> class F, bool kGated>
__device__ inline void activate_backward(const ActivationArgs& args) {
  using A = Wide<T>;
  for (Index row = blockIdx.x; row < args.rows; row += gridDim.x) {
    T* in = static_cast<T*>(args.in) + row * (kGated ? 2 : 1) * args.n;
    T* grad = static_cast<T*>(args.out) + row * args.n;
    over_columns<K>(args.n, [&](Index c, auto size) {
      constexpr int kSize = decltype(size)::value;
      A x[kSize], up[kSize], d[kSize];
      load<kSize>(in + c, x);
      load<kSize>(grad + c, d);
      if constexpr (kGated) load<kSize>(in + args.n + c, up);
      for (int k = 0; k < kSize; ++k) {
        const F<A> f(x[k]);
        const typename F<A>::Beside u(kGated ? up[k] : A(1));
        x[k] = f.slope * u.value * d[k];
        up[k] = f.value * u.slope * d[k];
        d[k] = f.value * u.value;
      }
      store<kSize>(x, in + c);
      if constexpr (kGated) store<kSize>(up, in + args.n + c);
      store<kSize>(d, grad + c);
    });
  }
}

}  // namespace sweep::device
