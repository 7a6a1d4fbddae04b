#include "bench_kernels/shape/model_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench_kernels/shape/family.h"
#include "bench_kernels/shape/optimizer_states.h"
#include "bench_kernels/shape/schedule.h"

namespace sweep::shape {
namespace {

Number half_type(const Trial& t) {
  return scales_loss(t) ? Number::kFp16 : Number::kBf16;
}

i64 shard_ranks(const Trial& t) {
  return t.dp_shard.value_or(t.dp) * t.cp;
}

// A ring sends (n - 1) / n of the whole; twice for an all-reduce.
double share_sent(double elements, double n, double width) {
  return elements / n * (n - 1) * width;
}

StateBytes divided(const Trial& t, const StateSplit& split) {
  const StateTypes types = state_types(t);
  const auto per = [](i64 bytes, i64 ranks) {
    return static_cast<double>(bytes) / static_cast<double>(ranks);
  };
  StateBytes bytes;
  if (!parameters_outside(t)) bytes.weights = per(bytes_of(types.weights), split.weights);
  bytes.gradients = per(bytes_of(types.gradients), split.gradients);
  if (t.offload == Offload::kNone)
    bytes.optimizer = (moment_bytes_each(t.optimizer, types) + (types.master ? 4 : 0)) /
                      static_cast<double>(split.optimizer);
  return bytes;
}

std::optional<std::string> fp8_unsupported(const Trial& t) {
  if (t.precision != Precision::kFp8) return {};
  if (t.spec.experts > 0)
    return "precision fp8 with experts: an expert has any number of rows, and fp8 units take multiples of "
           "16; "
           "use bf16_master.";
  const ModelSpec& m = t.spec;
  const i64 pieces = t.tp_overlap ? 4 * t.tp : 1;
  const std::pair<const char*, i64> sizes[] = {
      {"rows of a piece (micro_batch_size x seq_len / cp)", t.micro_batch_size * t.seq_len / t.cp / pieces},
      {"hidden_size", m.hidden_size},
      {"heads x head_dim / tp", m.heads * m.head_dim / t.tp},
      {"(heads + 2 kv_heads) x head_dim / tp", (m.heads + 2 * m.kv_heads) * m.head_dim / t.tp},
      {"intermediate_size / tp", m.intermediate_size / t.tp}};
  for (const auto& [what, size] : sizes)
    if (size % 16 != 0)
      return fmt::format("precision fp8: {} is {}, and fp8 units take multiples of 16.", what, size);
  return {};
}

std::optional<std::string> autocast_unsupported(const Trial& t) {
  if (!autocasts(t)) return {};
  const ModelSpec& m = t.spec;
  const std::pair<bool, const char*> gaps[] = {
      {m.experts > 0, "experts: their permuted rows are no operators of autocast"},
      {m.latent(), "latent attention: its norms are of latents"},
      {m.has_encoder(), "an encoder: what cross-attention keeps is not counted"},
      {family_of(m).qk_norm, "norms of queries and keys"},
      {family_of(m).post_norms(), "norms after attention and MLP"},
      {t.tp > 1, "tp above 1: what is kept of a share of the columns is not counted"},
      {t.cp > 1, "cp above 1: what is kept of a share of a sequence is not counted"},
      {t.lora_rank > 0, "adapters: what is kept for a frozen base is not counted"},
      {t.pp > 1 && t.schedule == Schedule::kZeroBubble, "schedule zero_bubble: weight gradients come later"}};
  for (const auto& [asked, what] : gaps)
    if (asked)
      return fmt::format("precision {} is not built with {}; use {}.", t.precision, what,
                         scales_loss(t) ? "fp16" : "bf16_mixed");
  return {};
}

struct Numbers {
  double all = 0, shared = 0;
};

// Traffic of numbers that are sharded over n ranks, with so many copies of each.
StateTraffic sent_by(const Trial& t, PipelinePlace place, Numbers numbers, double n, double copies) {
  const StateTypes types = state_types(t);
  const auto width = [](Number number) { return static_cast<double>(bytes_of(number)); };
  const auto micro_steps = static_cast<double>(t.grad_accum);
  StateTraffic sent;
  sent.all_reduce = 2 * share_sent(numbers.all / n, copies, width(types.gradients));
  if (t.zero == 0) return sent;
  sent.reduce_scatter = share_sent(numbers.all, n, width(types.gradients)) * (t.zero == 1 ? 1 : micro_steps);
  sent.all_gather = share_sent(numbers.all, n, width(types.weights));
  if (t.zero < 3) return sent;
  const double once = share_sent(numbers.all, n, width(types.compute));
  const double kept = t.reshard_after_forward ? share_sent(numbers.shared, n, width(types.compute)) : 0;
  sent.all_gather = static_cast<double>(weight_gathers(t, place)) * once - micro_steps * kept;
  return sent;
}

StateTraffic gathers_only(const Trial& t, const StateTraffic& sent) {
  return {0, 0, t.zero >= 3 ? sent.all_gather : 0};
}

}  // namespace

i64 bytes_of(Number number) {
  return number == Number::kFp32 ? 4 : 2;
}

bool autocasts(const Trial& t) {
  return t.precision == Precision::kBf16Amp || t.precision == Precision::kFp16Amp;
}

bool parameters_outside(const Trial& t) {
  return t.offload == Offload::kParameters || t.offload == Offload::kDiskParameters;
}

bool scales_loss(const Trial& t) {
  return t.precision == Precision::kFp16 || t.precision == Precision::kFp16Amp;
}

bool stages_products(const Trial& t) {
  return autocasts(t) || t.precision == Precision::kFp8;
}

StateTypes state_types(const Trial& t) {
  StateTypes types;
  if (t.precision != Precision::kFp32) types.compute = half_type(t);
  if (t.precision != Precision::kBf16Mixed && !autocasts(t)) types.weights = types.compute;
  types.master = t.precision == Precision::kBf16Master || t.precision == Precision::kFp16 ||
                 t.precision == Precision::kFp8;
  types.moments = types.master ? Number::kFp32 : types.weights;
  types.gradients = types.weights;
  if (t.grad_dtype == GradDtype::kFp32) types.gradients = Number::kFp32;
  if (t.grad_dtype == GradDtype::kBf16) types.gradients = Number::kBf16;
  return types;
}

std::optional<std::string> states_unsupported(const Trial& t) {
  if (auto sentence = fp8_unsupported(t)) return sentence;
  if (auto sentence = autocast_unsupported(t)) return sentence;
  if (scales_loss(t) && t.grad_dtype == GradDtype::kBf16)
    return fmt::format(
        "precision {} with grad_dtype bf16: gradients scaled for fp16 would lose digits for nothing; use "
        "grad_dtype auto or fp32.",
        t.precision);
  if (auto sentence = optimizer_objection(t)) return sentence;
  if (t.dp_shard && *t.dp_shard != t.dp && t.zero == 0)
    return fmt::format("dp_shard {} of dp {} divides nothing at zero 0; use zero 1, 2 or 3.", *t.dp_shard,
                       t.dp);
  if (parameters_outside(t) && (t.zero == 1 || t.zero == 2))
    return fmt::format(
        "offload {} with zero {}: updated values would have to be gathered outside the device; use "
        "zero 3, where shards are gathered on it, or zero 0.",
        t.offload, t.zero);
  return {};
}

StateSplit state_split(const Trial& t) {
  const i64 n = shard_ranks(t);
  return {t.zero >= 3 ? n : 1, t.zero >= 2 ? n : 1, t.zero >= 1 ? n : 1};
}

StateBytes state_bytes(const Trial& t) {
  return divided(t, state_split(t));
}

StateBytes expert_state_bytes(const Trial& t) {
  const i64 all = t.ep * expert_shard_ranks(t);
  return divided(t, {t.zero >= 3 ? all : t.ep, t.zero >= 2 ? all : t.ep, t.zero >= 1 ? all : t.ep});
}

i64 expert_shard_ranks(const Trial& t) {
  return std::max<i64>(1, shard_ranks(t) / t.ep);
}

i64 weight_gathers(const Trial& t, PipelinePlace place) {
  if (t.reshard_after_forward) return 2 * t.grad_accum;
  if (t.pp == 1) return t.grad_accum;
  i64 gathers = 0, in_flight = 0;
  for (const Action& action : computations(Pipeline::of(t), place.rank)) {
    if (action.chunk != place.chunk || action.act == Act::kBackwardWeight) continue;
    if (action.act == Act::kBackward)
      --in_flight;
    else if (in_flight++ == 0)
      ++gathers;
  }
  return gathers;
}

bool gathers_after_block(const Trial& t) {
  return t.backward_prefetch == BackwardPrefetch::kPost && t.prefetch_backward > 0;
}

i64 blocks_ahead_in_backward(const Trial& t) {
  return t.prefetch_backward - (gathers_after_block(t) ? 1 : 0);
}

StateTraffic state_traffic(const Trial& t, double elements, double shared, PipelinePlace place) {
  const double n = t.zero == 0 ? 1 : static_cast<double>(shard_ranks(t));
  return sent_by(t, place, {elements, shared}, n, static_cast<double>(t.dp * t.cp) / n);
}

StateTraffic frozen_traffic(const Trial& t, double elements, double shared, PipelinePlace place) {
  return gathers_only(t, state_traffic(t, elements, shared, place));
}

StateTraffic quantized_traffic(const Trial& t, double bytes, double of_experts, PipelinePlace place) {
  if (t.zero < 3) return {};
  const double once = share_sent(bytes, static_cast<double>(shard_ranks(t)), 1) +
                      share_sent(of_experts, static_cast<double>(expert_shard_ranks(t)), 1);
  return {0, 0, static_cast<double>(weight_gathers(t, place)) * once};
}

StateTraffic frozen_expert_traffic(const Trial& t, double elements, PipelinePlace place) {
  return gathers_only(t, expert_state_traffic(t, elements, place));
}

StateTraffic expert_state_traffic(const Trial& t, double elements, PipelinePlace place) {
  const double n = t.zero == 0 ? 1 : static_cast<double>(expert_shard_ranks(t));
  return sent_by(t, place, {elements, 0}, n, static_cast<double>(t.dp * t.cp / t.ep) / n);
}

}  // namespace sweep::shape
