#include "bench_kernels/shape/split_traffic.h"

namespace sweep::shape {
namespace {

constexpr i64 kAccumulated = 4;      // bytes of a statistic
constexpr i64 kStackAlignment = 64;  // bytes: parameters.cpp pads each stack of a bucket to it

i64 width(const Trial& t) {
  return t.precision == "fp32" ? 4 : 2;
}

i64 tokens(const Trial& t) {
  return t.micro_batch_size * t.seq_len / t.cp;
}

Volume times(i64 calls, i64 bytes) {
  return {calls, calls * bytes};
}

Volume operator+(Volume a, Volume b) {
  return {a.calls + b.calls, a.bytes + b.bytes};
}

i64 norm_gradients(const Trial& t) {
  const i64 bytes = (t.spec.hidden_size * width(t) + kStackAlignment - 1) / kStackAlignment * kStackAlignment;
  return (2 * t.spec.layers + 1) * (t.spec.rmsnorm ? 1 : 2) * bytes;
}

}  // namespace

TensorTraffic tensor_traffic(const Trial& t) {
  const auto once = [&](i64 payload) { return payload * (t.tp - 1) / t.tp; };
  const i64 rows = once(tokens(t) * t.spec.hidden_size * width(t));
  const i64 statistics = once(tokens(t) * kAccumulated);
  const i64 micro = t.grad_accum, layers = t.spec.layers;
  TensorTraffic traffic;
  traffic.all_reduce = Volume{2 * micro, micro * 2 * (statistics + 2 * statistics)};
  if (!t.sp) {
    traffic.all_reduce = traffic.all_reduce + times(micro * (4 * layers + 2), 2 * rows);
    return traffic;
  }
  traffic.all_reduce = traffic.all_reduce + times(1, 2 * once(norm_gradients(t)));
  traffic.all_gather = times(micro * (6 * layers + 3), rows);
  traffic.reduce_scatter = times(micro * (4 * layers + 2), rows);
  return traffic;
}

ContextTraffic context_traffic(const Trial& t) {
  const i64 kv = 2 * t.spec.kv_heads / t.tp * t.spec.head_dim, q = t.spec.heads / t.tp * t.spec.head_dim;
  const i64 row = tokens(t) * width(t), uses = t.grad_accum * t.spec.layers;
  if (t.cp_form == "ring") return {times(3 * uses * (t.cp - 1), row * kv), {}};
  const i64 bytes = (row * (q + kv) + row * q) * (t.cp - 1) / t.cp;
  return {{}, {4 * uses, 2 * uses * bytes}};
}

}  // namespace sweep::shape
