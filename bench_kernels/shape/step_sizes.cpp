#include "bench_kernels/shape/step_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/family.h"
#include "bench_kernels/shape/found_gpu.h"
#include "bench_kernels/shape/splits.h"

namespace sweep::shape {
namespace {

// The shares of a rank's choices that go to the experts of the expert group's first rank (the fullest if
// routing is skewed: hot experts are the first eighth), and that are served at all.
struct Served {
  double first_rank = 0, all = 0;
};
Served served(const Trial& t, double tokens) {
  const double experts = real(t.spec.experts), choices = real(t.spec.experts_per_token);
  const double local = experts / real(t.ep), hot = std::max(1.0, std::floor(experts / 8));
  const double capacity = t.capacity_percent == 0
                              ? 1e300
                              : std::ceil(tokens * choices * real(t.capacity_percent) / (100 * experts));
  const double drawn = real(t.hot_percent) / 100;
  const bool skewed = t.routing == Routing::kSkewed && hot < experts;
  // A token's choices differ: a second choice of the only hot expert goes to the next one.
  double hot_rows = tokens * choices * drawn, pushed = 0;
  if (hot == 1 && choices > 1) {
    hot_rows = tokens * (1 - std::pow(1 - drawn, choices));
    pushed = tokens * choices * drawn - hot_rows;
  }
  const double cold_rows = tokens * choices - hot_rows - pushed;
  Served out;
  for (double e = 0; e < experts; ++e) {
    double rows = tokens * choices / experts;
    if (skewed) rows = e < hot ? hot_rows / hot : cold_rows / (experts - hot) + (e == hot ? pushed : 0);
    rows = std::min(rows, capacity);
    out.all += rows;
    if (e < local) out.first_rank += rows;
  }
  return out;
}

}  // namespace

KernelPath kernel_path(const Trial& t) {
  return t.hardware == "cpu" ? KernelPath::kProcessor : KernelPath::kGpu;
}

bool attention_is_flash(const Trial& t, KernelPath path) {
  if (t.attention != AttentionKind::kAuto) return t.attention == AttentionKind::kFlash;
  // The library's kernel on GPUs takes half precisions only, and GPUs from Ampere on.
  return path == KernelPath::kProcessor || (t.precision != Precision::kFp32 && runs_flash(t.hardware));
}

std::optional<std::string> attention_objection(const Trial& t, KernelPath path) {
  if (path == KernelPath::kGpu && t.attention == AttentionKind::kFlash && t.precision == Precision::kFp32)
    return "attention flash on GPUs needs a precision of 16 bits or fewer, not fp32; take math or auto";
  if (t.cp > 1 && t.cp_comm_type == CpCommType::kRing && !attention_is_flash(t, path))
    return fmt::format(
        "cp {} in a ring needs flash attention, which GPUs run in precisions of 16 bits or fewer from "
        "compute "
        "capability 8.0 on; take such a precision, or cp_comm_type all_to_all",
        t.cp);
  return std::nullopt;
}

StepSizes::StepSizes(const Trial& t, KernelPath path) {
  const ModelSpec& m = t.spec;
  const StateTypes types = state_types(t);
  gpu = path == KernelPath::kGpu, flash = attention_is_flash(t, path);
  exchange = t.cp > 1 && t.cp_comm_type == CpCommType::kAllToAll, ring = t.cp > 1 && !exchange;
  fp8 = t.precision == Precision::kFp8;
  rows_split = t.sp && t.tp > 1;
  plain_norm = plain_rope = plain_mlp = false, norm_starts = gpu && !rows_split && !fp8;
  rms = m.rmsnorm, gated = m.swiglu, gelu_gate = family_of(m).gelu_gate;
  selective = t.recompute == Recompute::kSelective;
  later = t.schedule == Schedule::kZeroBubble && t.pp > 1;
  staged = types.gradients != types.compute;
  element = real(bytes_of(types.compute)), gradient = real(bytes_of(types.gradients));
  tp = real(t.tp), cp = real(t.cp), ep = real(t.ep), kv_sharers = real(shape::kv_sharers(t));
  pieces = t.tp_overlap && t.tp > 1 ? 0.5 : 1;
  batch = real(t.micro_batch_size), seq = real(t.seq_len), local_seq = seq / cp;
  whole = batch * local_seq, rows = rows_split ? whole / tp : whole;
  hidden = real(m.hidden_size), head_dim = real(m.head_dim);
  heads = real(m.heads) / tp, kv_heads = real(kv_heads_of_rank(t));
  query = heads * head_dim, key_value = kv_heads * head_dim;
  width = real(m.intermediate_size) / tp, vocabulary = real(padded_vocab(t)) / tp;
  experts = real(m.experts), choices = real(m.experts_per_token), local_experts = experts / ep;
  if (m.experts == 0) return;
  const Served rows_to = served(t, whole);
  sent = rows_to.all, received = rows_to.first_rank * ep;
}

}  // namespace sweep::shape
