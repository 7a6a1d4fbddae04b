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

namespace {

StepSizes::Kernels kernels_of(const Trial& t, KernelPath path, bool rows_split) {
  StepSizes::Kernels out;
  const FusedGroups fused = fused_groups(t, path);
  out.attention = attention_kind(t, path), out.flash = out.attention != AttentionKind::kMath;
  out.gpu = path == KernelPath::kGpu;
  out.fp8 = t.precision == Precision::kFp8, out.autocast = autocasts(t);
  out.plain_norm = !fused.norm, out.plain_rope = !fused.rope;
  out.plain_mlp = !fused.mlp, out.plain_loss = !fused.loss;
  out.fused_update = out.gpu && fused.update && t.optimizer == OptimizerKind::kFused;
  out.norm_starts =
      out.gpu && fused.norm && !rows_split && !out.fp8 && !out.autocast && !family_of(t.spec).post_norms();
  return out;
}

StepSizes::Block block_of(const Trial& t) {
  const ModelSpec& m = t.spec;
  const Family& family = family_of(m);
  StepSizes::Block out;
  out.rms = m.rmsnorm, out.gated = m.swiglu, out.gelu_gate = family.gelu_gate;
  out.exact_gelu = family.exact_gelu, out.relu = family.relu, out.clamped = family.clamped_swiglu;
  out.qk_norm = family.qk_norm, out.post_norms = family.post_norms(), out.sinks = family.sinks();
  out.relative = family.relative_positions, out.local_angles = m.rope_local_theta > 0;
  out.selective = t.recompute == Recompute::kSelective;
  return out;
}

StepSizes::Weights weights_of(const Trial& t, const Adapters& adapters, const StateTypes& types,
                              KernelPath path) {
  StepSizes::Weights out;
  out.frozen = adapters.any(), out.quantized = t.quantize_base != QuantizeBase::kNone;
  out.later = t.schedule == Schedule::kZeroBubble && t.pp > 1;
  out.staged = types.gradients != types.compute;
  const bool in_fp32 = path == KernelPath::kGpu && types.gradients == Number::kFp32;
  out.staged_products = out.staged && (!in_fp32 || stages_products(t));
  return out;
}

StepSizes::Group group_of(const Trial& t) {
  StepSizes::Group out;
  out.tp = real(t.tp), out.cp = real(t.cp), out.ep = real(t.ep), out.kv_sharers = real(kv_sharers(t));
  out.pieces = t.tp_overlap && t.tp > 1 ? 0.5 : 1;
  out.exchange = t.cp > 1 && t.cp_comm_type == CpCommType::kAllToAll;
  out.ring = t.cp > 1 && !out.exchange;
  out.rows_split = t.sp && t.tp > 1;
  return out;
}

StepSizes::Rows rows_of(const Trial& t, bool split) {
  StepSizes::Rows out;
  out.batch = real(t.micro_batch_size), out.seq = real(t.seq_len), out.local_seq = out.seq / real(t.cp);
  out.encoder_seq = real(encoder_length(t));
  out.whole = out.batch * out.local_seq, out.residual = split ? out.whole / real(t.tp) : out.whole;
  out.packed = t.packing && !documents_objection(t);
  out.documents = out.packed ? real(document_counts(t).most) : 0;
  return out;
}

StepSizes::Dims dims_of(const Trial& t) {
  const ModelSpec& m = t.spec;
  const double tp = real(t.tp);
  StepSizes::Dims out;
  out.hidden = real(m.hidden_size), out.head_dim = real(m.head_dim);
  out.heads = real(m.heads) / tp, out.kv_heads = real(kv_heads_of_rank(t));
  out.query = out.heads * out.head_dim, out.key_value = out.kv_heads * out.head_dim;
  out.width = real(m.intermediate_size) / tp, out.vocabulary = real(padded_vocab(t)) / tp;
  out.dense_width = real(m.dense_width()) / tp, out.shared_width = real(m.shared_width()) / tp;
  return out;
}

StepSizes::Latent latent_of(const ModelSpec& m, double heads) {
  const double values = heads * real(m.v_head_dim);
  return {m.latent(),
          real(m.q_lora_rank),
          real(m.kv_lora_rank),
          real(m.rope_head_dim),
          values,
          heads * real(m.head_dim - m.rope_head_dim) + values};
}

StepSizes::Low low_of(const Adapters& a) {
  const double rank = real(a.rank), out = a.attention_out ? rank : 0;
  const double query_key_value = rank * real(a.on_attention_input);
  return {query_key_value, out, rank * real(a.on_mlp_input), a.mlp ? rank : 0, query_key_value, out};
}

StepSizes::Experts experts_of(const Trial& t, double rows) {
  const ModelSpec& m = t.spec;
  StepSizes::Experts out;
  out.count = real(m.experts), out.choices = real(m.experts_per_token), out.local = out.count / real(t.ep);
  out.learned = t.routing == Routing::kLearned;
  out.biased_choice = m.experts > 0 && family_of(m).sigmoid_router;
  out.exact_router = family_of(m).exact_router;
  if (m.experts == 0) return out;
  const Served rows_to = served(t, rows);
  out.sent = rows_to.all, out.received = rows_to.fullest_rank * real(t.ep);
  return out;
}

}  // namespace

StepSizes::StepSizes(const Trial& t, KernelPath path) {
  const StateTypes types = state_types(t);
  const Adapters adapters = adapters_of(t);
  element = real(bytes_of(types.compute)), gradient = real(bytes_of(types.gradients));
  group = group_of(t);
  kernels = kernels_of(t, path, group.rows_split);
  block = block_of(t);
  weights = weights_of(t, adapters, types, path);
  rows = rows_of(t, group.rows_split);
  dims = dims_of(t);
  latent = latent_of(t.spec, dims.heads);
  low = low_of(adapters);
  experts = experts_of(t, rows.whole);
}

StepSizes StepSizes::of_encoder() const {
  StepSizes out = *this;
  out.block.causal = false;
  out.rows.seq = out.rows.local_seq = rows.encoder_seq;
  out.rows.whole = out.rows.residual = rows.batch * rows.encoder_seq;
  return out;
}

}  // namespace sweep::shape
