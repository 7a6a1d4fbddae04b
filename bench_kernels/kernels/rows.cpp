#include "bench_kernels/kernels/rows.h"

namespace sweep::kernels {

#define SWEEP_DECLARE(isa)                 \
  namespace isa {                          \
  extern const RowKernels<float> kFloat;   \
  extern const RowKernels<Bf16> kBf16;     \
  extern const RowKernels<Fp16> kFp16;     \
  extern const RowKernels<double> kDouble; \
  }
SWEEP_DECLARE(isa_plain)
#if defined(__x86_64__)
SWEEP_DECLARE(isa_avx2)
SWEEP_DECLARE(isa_avx512)
#endif
#undef SWEEP_DECLARE

namespace {

enum class Isa { kPlain, kAvx2, kAvx512 };

Isa widest_isa() {
#if defined(__x86_64__)
  static const Isa isa = [] {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      return Isa::kAvx512;
    }
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")
               ? Isa::kAvx2
               : Isa::kPlain;
  }();
  return isa;
#else
  return Isa::kPlain;
#endif
}

template <class Table>
const Table& pick(bool widest, const Table& plain, const Table& avx2, const Table& avx512) {
  if (!widest) return plain;
  switch (widest_isa()) {
    case Isa::kAvx512:
      return avx512;
    case Isa::kAvx2:
      return avx2;
    case Isa::kPlain:
      break;
  }
  return plain;
}

}  // namespace

#if defined(__x86_64__)
#define SWEEP_PICK(name) pick(widest, isa_plain::name, isa_avx2::name, isa_avx512::name)
#else
#define SWEEP_PICK(name) pick(widest, isa_plain::name, isa_plain::name, isa_plain::name)
#endif
template <>
const RowKernels<float>& row_kernels<float>(bool widest) {
  return SWEEP_PICK(kFloat);
}
template <>
const RowKernels<Bf16>& row_kernels<Bf16>(bool widest) {
  return SWEEP_PICK(kBf16);
}
template <>
const RowKernels<Fp16>& row_kernels<Fp16>(bool widest) {
  return SWEEP_PICK(kFp16);
}
template <>
const RowKernels<double>& row_kernels<double>(bool widest) {
  return SWEEP_PICK(kDouble);
}
#undef SWEEP_PICK

}  // namespace sweep::kernels
