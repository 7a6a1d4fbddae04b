#include "bench_kernels/comm/reduce.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <bit>
#include <type_traits>

namespace sweep::comm {
namespace {

using Op = c10d::ReduceOp::RedOpType;
constexpr std::size_t kBlock =
    1024;  // elements accumulated at a time: the accumulator stays in the first-level cache

template <class T>
struct Accumulator {
  using type = float;
};
template <>
struct Accumulator<double> {
  using type = double;
};
template <>
struct Accumulator<std::int64_t> {
  using type = std::int64_t;
};

template <class T, class A>
void add(A* sum, const T* from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sum[i] += static_cast<A>(from[i]);
}

// A NaN wins, as in at::maximum.
template <class T, class A>
void take_larger(A* largest, const T* from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const A value = static_cast<A>(from[i]);
    largest[i] = value > largest[i] || value != value ? value : largest[i];
  }
}

// The reciprocal of a power of two is exact, and a multiplication is several times as fast as a division.
template <class A>
void divide(A* sum, std::size_t n, std::size_t ranks) {
  if constexpr (std::is_floating_point_v<A>) {
    if (std::has_single_bit(ranks)) {
      const A reciprocal = A(1) / static_cast<A>(ranks);
      for (std::size_t i = 0; i < n; ++i) sum[i] *= reciprocal;
      return;
    }
  }
  for (std::size_t i = 0; i < n; ++i) sum[i] /= static_cast<A>(ranks);
}

template <class T>
void reduce_as(Op op, std::span<const std::byte* const> sources, std::byte* to, std::size_t count) {
  using A = typename Accumulator<T>::type;
  A block[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t n = std::min(kBlock, count - begin);
    const T* first = reinterpret_cast<const T*>(sources[0]) + begin;
    for (std::size_t i = 0; i < n; ++i) block[i] = static_cast<A>(first[i]);
    for (const std::byte* source : sources.subspan(1)) {
      const T* from = reinterpret_cast<const T*>(source) + begin;
      op == Op::MAX ? take_larger(block, from, n) : add(block, from, n);
    }
    T* out = reinterpret_cast<T*>(to) + begin;
    if (op == Op::AVG) divide(block, n, sources.size());
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<T>(block[i]);
  }
}

using Reducer = void (*)(Op, std::span<const std::byte* const>, std::byte*, std::size_t);

Reducer reducer_for(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
      return &reduce_as<float>;
    case c10::ScalarType::Double:
      return &reduce_as<double>;
    case c10::ScalarType::Half:
      return &reduce_as<c10::Half>;
    case c10::ScalarType::BFloat16:
      return &reduce_as<c10::BFloat16>;
    case c10::ScalarType::Long:
      return &reduce_as<std::int64_t>;
    default:
      return nullptr;
  }
}

}  // namespace

void check_reducible(c10::ScalarType type, Op op) {
  TORCH_CHECK_NOT_IMPLEMENTED(reducer_for(type) != nullptr, "the shm backend cannot reduce tensors of type ",
                              c10::toString(type), "; it can f32, f64, f16, bf16 and i64");
  TORCH_CHECK_NOT_IMPLEMENTED(op == Op::SUM || op == Op::AVG || op == Op::MAX,
                              "the shm backend knows the reductions SUM, AVG and MAX, not number ",
                              static_cast<int>(op));
}

void reduce_in_order(c10::ScalarType type, Op op, std::span<const std::byte* const> sources, std::byte* to,
                     std::size_t count) {
  check_reducible(type, op);
  reducer_for(type)(op, sources, to, count);
}

}  // namespace sweep::comm
