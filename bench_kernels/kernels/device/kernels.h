// Every fused kernel by its name and arguments. NVRTC compiles this file for one kernel, SWEEP_DEVICE_KERNEL, and one
// stored type, SWEEP_DEVICE_TYPE: a step asks for a third of the kernels and one form of each.
// Without SWEEP_DEVICE_ENTRY it is every kernel of the type, in both forms: for tests.
// It comes as NAME_packed (SWEEP_DEVICE_PACKED), which moves 16 bytes at once, or NAME_single for rows that are not
// aligned so.
#pragma once
#include "bench_kernels/kernels/device/activation.h"
#include "bench_kernels/kernels/device/adamw.h"
#include "bench_kernels/kernels/device/eight_bit.h"
#include "bench_kernels/kernels/device/experts.h"
#include "bench_kernels/kernels/device/fp8.h"
#include "bench_kernels/kernels/device/loss.h"
#include "bench_kernels/kernels/device/nf4.h"
#include "bench_kernels/kernels/device/norm.h"
#include "bench_kernels/kernels/device/rope.h"
#include "bench_kernels/kernels/device/sinks.h"

// Half a pack at once of the exact GELU and of AdamW with masters: a whole one would spill.
#define SWEEP_DEVICE_KERNELS(KERNEL)                                                                       \
  KERNEL(swiglu, ActivationArgs, (activate<T, K, Silu, true>(args)))                                       \
  KERNEL(swiglu_backward, ActivationArgs, (activate_backward<T, K, Silu, true>(args)))                     \
  KERNEL(geglu, ActivationArgs, (activate<T, K, Gelu, true>(args)))                                        \
  KERNEL(geglu_backward, ActivationArgs, (activate_backward<T, K, Gelu, true>(args)))                      \
  KERNEL(gelu, ActivationArgs, (activate<T, K, Gelu, false>(args)))                                        \
  KERNEL(gelu_backward, ActivationArgs, (activate_backward<T, K, Gelu, false>(args)))                      \
  KERNEL(gelu_exact, ActivationArgs, (activate<T, (K + 1) / 2, GeluExact, false>(args)))                   \
  KERNEL(gelu_exact_backward, ActivationArgs, (activate_backward<T, (K + 1) / 2, GeluExact, false>(args))) \
  KERNEL(relu, ActivationArgs, (activate<T, K, Relu, false>(args)))                                        \
  KERNEL(relu_backward, ActivationArgs, (activate_backward<T, K, Relu, false>(args)))                      \
  KERNEL(clamped_swiglu, ActivationArgs, (activate<T, K, ClampedSilu, true>(args)))                        \
  KERNEL(clamped_swiglu_backward, ActivationArgs, (activate_backward<T, K, ClampedSilu, true>(args)))      \
  KERNEL(rms_norm, NormArgs, (norm<T, K, false>(args, room)))                                              \
  KERNEL(layer_norm, NormArgs, (norm<T, K, true>(args, room)))                                             \
  KERNEL(rms_norm_backward, NormBackwardArgs, (norm_backward<T, K, false>(args, room)))                    \
  KERNEL(layer_norm_backward, NormBackwardArgs, (norm_backward<T, K, true>(args, room)))                   \
  KERNEL(sum_parts, SumPartsArgs, (sum_parts<T>(args, room)))                                              \
  KERNEL(rope, RopeArgs, (rotate<T, K>(args)))                                                             \
  KERNEL(adamw, AdamwArgs, (adamw<T, kAdamwPack<T, K>, T>(args)))                                          \
  KERNEL(adamw_master, AdamwArgs, (adamw<T, (K + 1) / 2, Wide<T>>(args)))                                  \
  KERNEL(adamw_eight_bit, EightBitArgs, (adamw_eight_bit<T>(args, room)))                                  \
  KERNEL(four_bit_weights, Nf4Args, (nf4_dequantize<T, K>(args, room)))                                    \
  KERNEL(largest_magnitude, LargestArgs, (largest_magnitude<T, K>(args, room)))                            \
  KERNEL(round_to_eight, RoundArgs, (round_to_eight<T, K>(args, room)))                                    \
  KERNEL(router, RouterArgs, (route<T>(args)))                                                             \
  KERNEL(router_backward, RouterArgs, (route_backward<T>(args)))                                           \
  KERNEL(combine, CombineArgs, (combine<T, K>(args)))                                                      \
  KERNEL(combine_backward, CombineArgs, (combine_backward<T, K>(args, room)))                              \
  KERNEL(add_group_bias, GroupBiasArgs, (add_group_bias<T, K>(args)))                                      \
  KERNEL(sum_group_bias, GroupBiasArgs, (sum_group_bias<T, K>(args, room)))                                \
  KERNEL(sinks, SinksArgs, (sinks<T, K>(args, room)))                                                      \
  KERNEL(sinks_backward, SinksArgs, (sinks_backward<T, K>(args, room)))                                    \
  KERNEL(cross_entropy, CrossEntropyArgs, (cross_entropy<T, K>(args, room)))                               \
  KERNEL(add_losses, CrossEntropyArgs, (add_losses<T>(args, room)))

#ifdef SWEEP_DEVICE_TYPE
namespace sweep::device::entries {
#define SWEEP_DEVICE_BODY(name, Arguments, body)                                   \
  struct name##_kernel {                                                           \
    using Args = Arguments;                                                        \
    template <class T, int K>                                                      \
    static __device__ void run(const Args& args, [[maybe_unused]] Wide<T>* room) { \
      body;                                                                        \
    }                                                                              \
  };
SWEEP_DEVICE_KERNELS(SWEEP_DEVICE_BODY)
}  // namespace sweep::device::entries

#define SWEEP_DEVICE_FUNCTION(kernel, entry, packed)                                                    \
  extern "C" __global__ void __launch_bounds__(sweep::device::kMostThreads, 2)                          \
      entry(const sweep::device::entries::kernel::Args args) {                                          \
    using T = SWEEP_DEVICE_TYPE;                                                                        \
    constexpr int K = packed ? 16 / static_cast<int>(sizeof(T)) : 1;                                    \
    extern __shared__ double shared[];                                                                  \
    sweep::device::entries::kernel::run<T, K>(args, reinterpret_cast<sweep::device::Wide<T>*>(shared)); \
  }
#ifdef SWEEP_DEVICE_ENTRY
SWEEP_DEVICE_FUNCTION(SWEEP_DEVICE_KERNEL, SWEEP_DEVICE_ENTRY, SWEEP_DEVICE_PACKED)
#else  // all of them, both forms
#define SWEEP_DEVICE_FORMS(name, Arguments, body)           \
  SWEEP_DEVICE_FUNCTION(name##_kernel, name##_packed, true) \
  SWEEP_DEVICE_FUNCTION(name##_kernel, name##_single, false)
SWEEP_DEVICE_KERNELS(SWEEP_DEVICE_FORMS)
#endif
#endif
