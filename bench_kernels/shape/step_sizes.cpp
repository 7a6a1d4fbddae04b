#include "bench_kernels/shape/step_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/documents.h"
#include "bench_kernels/shape/encoder.h"
#include "bench_kernels/shape/family.h"
#include "bench_kernels/shape/found_gpu.h"
#include "bench_kernels/shape/splits.h"

namespace sweep::shape {
namespace {

// Choices of a rank's tokens: those that the fullest rank of the expert group serves, and those that any rank serves.
// Hot experts are the first eighth; where they are chosen less than the others, another rank than the first is fullest.
struct Served {
  double fullest_rank = 0, all = 0;
};
Served served(const Trial& t, double tokens) {
  const double experts = real(t.spec.experts), choices = real(t.spec.experts_per_token);
  const double hot = std::max(1.0, std::floor(experts / 8));
  const i64 local = std::max<i64>(1, t.spec.experts / t.ep);
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
  double of_rank = 0;
  for (i64 e = 0; e < t.spec.experts; ++e) {
    const double expert = real(e);
    double rows = tokens * choices / experts;
    if (skewed)
      rows = expert < hot ? hot_rows / hot : cold_rows / (experts - hot) + (expert == hot ? pushed : 0);
    rows = std::min(rows, capacity);
    out.all += rows, of_rank += rows;
    if ((e + 1) % local > 0) continue;
    out.fullest_rank = std::max(out.fullest_rank, of_rank), of_rank = 0;
  }
  return out;
}

}  // namespace

KernelPath kernel_path(const Trial& t) {
  return t.hardware == "cpu" ? KernelPath::kProcessor : KernelPath::kGpu;
}

AttentionKind attention_kind(const Trial& t, KernelPath path) {
  if (t.attention != AttentionKind::kAuto) return t.attention;
  if (family_of(t.spec).relative_positions) return AttentionKind::kMath;
  // The library's kernel on GPUs takes half precisions only, and GPUs from Ampere on.
  const bool flash =
      path == KernelPath::kProcessor ||
      (t.precision != Precision::kFp32 && runs_flash(t.hardware) && flash_takes_heads_of(t.spec.head_dim));
  return flash ? AttentionKind::kFlash : AttentionKind::kMath;
}

namespace {

// Says why a kernel that is asked for by name does not run.
std::optional<std::string> kernel_objection(const Trial& t, KernelPath path) {
  const bool sdpa = t.attention == AttentionKind::kSdpa, cudnn = t.attention == AttentionKind::kCudnn;
  if (path == KernelPath::kProcessor) {
    if (!sdpa && !cudnn) return std::nullopt;
    return fmt::format("attention {} is a kernel of GPUs; processors have flash and math", t.attention);
  }
  const bool halves = cudnn || t.attention == AttentionKind::kFlash;
  if (halves && t.precision == Precision::kFp32)
    return fmt::format(
        "attention {} on GPUs needs a precision of 16 bits or fewer, not fp32; take math, sdpa or auto",
        t.attention);
  if (halves && !runs_flash(t.hardware))
    return fmt::format("attention {} needs compute capability 8.0, {} has {}; take math, sdpa or auto",
                       t.attention, t.hardware, known_hardware(t.hardware)->compute_capability);
  if (t.attention == AttentionKind::kFlash && !flash_takes_heads_of(t.spec.head_dim))
    return fmt::format(
        "attention flash needs heads of at most 256 and a multiple of 8, not {}; take math, sdpa or auto",
        t.spec.head_dim);
  if ((sdpa || cudnn) && t.spec.sliding_window && *t.spec.sliding_window < t.seq_len)
    return fmt::format("attention {} has no sliding window ({} < seq_len {}); take flash, math or auto",
                       t.attention, *t.spec.sliding_window, t.seq_len);
  if (cudnn && (t.spec.head_dim > 128 || t.spec.head_dim % 8 != 0))
    return fmt::format("attention cudnn needs heads of at most 128 and a multiple of 8, not {}; take flash",
                       t.spec.head_dim);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> attention_objection(const Trial& t, KernelPath path) {
  if (auto sentence = kernel_objection(t, path)) return sentence;
  if (family_of(t.spec).sinks() && attention_kind(t, path) != AttentionKind::kFlash)
    return fmt::format(
        "attention {} has no sinks, which {} models have: they follow from the log-sum-exp that flash gives; "
        "take flash, which GPUs run in precisions of 16 bits or fewer from compute capability 8.0 on, with "
        "heads of at most 256, a multiple of 8",
        attention_kind(t, path), t.spec.family);
  if (family_of(t.spec).relative_positions && attention_kind(t, path) != AttentionKind::kMath)
    return fmt::format(
        "attention {} has no learned bias of the scores, which the relative positions of {} models are; take "
        "math "
        "or auto",
        attention_kind(t, path), t.spec.family);
  if (t.cp > 1 && t.cp_comm_type == CpCommType::kRing && attention_kind(t, path) != AttentionKind::kFlash)
    return fmt::format(
        "cp {} in a ring needs flash attention, which GPUs run in precisions of 16 bits or fewer from "
        "compute "
        "capability 8.0 on, with heads of at most 256, a multiple of 8; take these, or cp_comm_type "
        "all_to_all",
        t.cp);
  return std::nullopt;
}

FusedGroups fused_groups(const Trial& t, KernelPath path) {
  if (path == KernelPath::kGpu && !runs_fused(t.hardware)) return {false, false, false, false, false};
  const auto without = [&](FusedKernels one) {
    return t.fused_kernels == one || t.fused_kernels == FusedKernels::kNone;
  };
  return {!without(FusedKernels::kNoNorm), !without(FusedKernels::kNoRope), !without(FusedKernels::kNoMlp),
          !without(FusedKernels::kNoLoss)};
}

StepSizes::StepSizes(const Trial& t, KernelPath path) {
  const ModelSpec& m = t.spec;
  const StateTypes types = state_types(t);
  attention = attention_kind(t, path);
  gpu = path == KernelPath::kGpu, flash = attention != AttentionKind::kMath;
  exchange = t.cp > 1 && t.cp_comm_type == CpCommType::kAllToAll, ring = t.cp > 1 && !exchange;
  fp8 = t.precision == Precision::kFp8, autocast = autocasts(t);
  rows_split = t.sp && t.tp > 1;
  const FusedGroups fused = fused_groups(t, path);
  kernel_update = gpu && fused.update && t.optimizer == OptimizerKind::kFused;
  plain_norm = !fused.norm, plain_rope = !fused.rope, plain_mlp = !fused.mlp, plain_loss = !fused.loss;
  norm_starts = gpu && fused.norm && !rows_split && !fp8 && !autocast && !family_of(m).post_norms();
  rms = m.rmsnorm, gated = m.swiglu, gelu_gate = family_of(m).gelu_gate, exact_gelu = family_of(m).exact_gelu;
  relu = family_of(m).relu;
  qk_norm = family_of(m).qk_norm, post_norms = family_of(m).post_norms();
  local_angles = m.rope_local_theta > 0;
  sinks = family_of(m).sinks(), clamped = family_of(m).clamped_swiglu;
  relative = family_of(m).relative_positions, exact_router = family_of(m).exact_router;
  selective = t.recompute == Recompute::kSelective;
  later = t.schedule == Schedule::kZeroBubble && t.pp > 1;
  learned = t.routing == Routing::kLearned, biased_choice = m.experts > 0 && family_of(m).sigmoid_router;
  staged = types.gradients != types.compute;
  staged_products = staged && (!gpu || types.gradients != Number::kFp32 || stages_products(t));
  const Adapters adapters = adapters_of(t);
  const double rank = real(adapters.rank);
  frozen = adapters.any(), quantized = t.quantize_base != QuantizeBase::kNone;
  packed = t.packing && !documents_objection(t), pieces_of_rows = packed ? real(document_counts(t).most) : 0;
  low_query_key_value = rank * real(adapters.on_attention_input);
  low_latents = low_query_key_value, low_up = adapters.attention_out ? rank : 0;
  low_attention_out = adapters.attention_out ? rank : 0;
  low_in = rank * real(adapters.on_mlp_input), low_down = adapters.mlp ? rank : 0;
  element = real(bytes_of(types.compute)), gradient = real(bytes_of(types.gradients));
  tp = real(t.tp), cp = real(t.cp), ep = real(t.ep), kv_sharers = real(shape::kv_sharers(t));
  pieces = t.tp_overlap && t.tp > 1 ? 0.5 : 1;
  batch = real(t.micro_batch_size), seq = real(t.seq_len), local_seq = seq / cp;
  encoder_seq = real(encoder_length(t));
  whole = batch * local_seq, rows = rows_split ? whole / tp : whole;
  hidden = real(m.hidden_size), head_dim = real(m.head_dim);
  heads = real(m.heads) / tp, kv_heads = real(kv_heads_of_rank(t));
  query = heads * head_dim, key_value = kv_heads * head_dim;
  width = real(m.intermediate_size) / tp, vocabulary = real(padded_vocab(t)) / tp;
  dense_width = real(m.dense_width()) / tp, shared_width = real(m.shared_width()) / tp;
  latent = m.latent(), rotary = real(m.rope_head_dim);
  query_latent = real(m.q_lora_rank), key_value_latent = real(m.kv_lora_rank);
  values = heads * real(m.v_head_dim), expanded = heads * real(m.head_dim - m.rope_head_dim) + values;
  experts = real(m.experts), choices = real(m.experts_per_token), local_experts = experts / ep;
  if (m.experts == 0) return;
  const Served rows_to = served(t, whole);
  sent = rows_to.all, received = rows_to.fullest_rank * ep;
}

StepSizes StepSizes::of_encoder() const {
  StepSizes out = *this;
  out.causal = false;
  out.seq = out.local_seq = encoder_seq;
  out.whole = out.rows = batch * encoder_seq;
  return out;
}

}  // namespace sweep::shape
