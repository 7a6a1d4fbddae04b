// Keys of a nanotron config (src/nanotron/config at 2411b022, 2026-04-07), to be laid over one of its examples. It has ZeRO
// 0 and 1, two schedules, and Llama- and Qwen2-shaped models; context parallelism and experts only in the latter.
#include "base/utf8.h"
#include "bench_kernels/shape/model_states.h"
#include "orchestrator/interop/trainer_config.h"
#include "orchestrator/interop/writer_parts.h"

namespace sweep::interop {
namespace {

bool nano_qwen(const Trial& t) {
  return t.spec.family == "qwen2" || t.spec.experts > 0 || t.cp > 1 || t.spec.sliding_window.has_value();
}

std::string nano_parallelism(const Trial& t, Gaps& open) {
  const bool known = t.schedule == Schedule::kGpipe || t.schedule == Schedule::k1f1b ||
                     (t.schedule == Schedule::kInterleaved && t.vpp == 1);
  std::string out = fmt::format("parallelism:\n  dp: {}\n  tp: {}\n  pp: {}\n  pp_engine: {}\n", t.dp, t.tp,
                                t.pp, t.schedule == Schedule::kGpipe ? "afab" : "1f1b");
  if (t.pp > 1 && !known)
    open.push_back(fmt::format("schedule {}: it has afab and 1f1b; 1f1b above", t.schedule));
  out += fmt::format("  tp_mode: {}\n  tp_linear_async_communication: {}\n",
                     t.sp ? "REDUCE_SCATTER" : "ALL_REDUCE", t.tp_overlap);
  if (t.tp > t.spec.kv_heads && t.spec.kv_heads > 0)
    open.emplace_back("more tensor-parallel ranks than key-value heads: its ranks hold whole heads");
  out += fmt::format("  context_parallel_size: {}\n  expert_parallel_size: {}\n", t.cp, t.ep);
  out += fmt::format("  recompute_layer: {}\n", t.recompute == Recompute::kFull);
  if (t.recompute == Recompute::kSelective)
    open.emplace_back("selective recomputation: it recomputes whole layers or nothing");
  if (t.recompute == Recompute::kFull && t.recompute_every > 1)
    open.push_back(fmt::format("one kept activation for {} layers: it keeps one a layer", t.recompute_every));
  if (t.ep > 1)
    open.emplace_back("expert-parallel ranks among the data-parallel ones: its ranks of experts come on top");
  if (t.cp > 1 && t.cp_comm_type != CpCommType::kRing)
    open.emplace_back("context parallelism that exchanges heads: its ranks exchange keys and values");
  return out;
}

std::string nano_optimizer(const Trial& t, Gaps& open) {
  // Its gradient accumulator in fp32 keeps fp32 masters too, so the two come together.
  const bool masters = t.precision == Precision::kBf16Master || t.precision == Precision::kFp16;
  const bool fp32 = shape::state_types(t).gradients == shape::Number::kFp32;
  std::string out = fmt::format(
      "optimizer:\n  zero_stage: {}\n  accumulate_grad_in_fp32: {}\n  clip_grad: {}\n", t.zero >= 1 ? 1 : 0,
      masters || (fp32 && t.precision != Precision::kFp32), t.grad_clip ? "1.0" : "null");
  out += fmt::format("  optimizer_factory:\n    name: adamW\n    torch_adam_is_fused: {}\n",
                     t.optimizer == AdamWKind::kFused);
  if (t.zero >= 2) open.push_back(fmt::format("ZeRO stage {}: it has stages 0 and 1", t.zero));
  if (t.zero == 1 && t.dp_shard && *t.dp_shard < t.dp)
    open.emplace_back("hybrid sharding: its ZeRO spans all data-parallel ranks");
  if (masters && !fp32)
    open.emplace_back("half gradients beside fp32 masters: its masters come with fp32 gradients");
  if (t.precision == Precision::kBf16Mixed)
    open.emplace_back("fp32 weights cast for use: it has bf16 weights and fp32 masters");
  if (t.optimizer != AdamWKind::kFused && t.optimizer != AdamWKind::kForeach)
    open.push_back(fmt::format("the {} AdamW: torch chooses unless it is fused", t.optimizer));
  return out;
}

std::string nano_dimensions(const Trial& t, Gaps& open) {
  const ModelSpec& m = t.spec;
  const bool qwen = nano_qwen(t);
  std::string out = fmt::format(
      "  model_config:\n    {}: true\n    hidden_size: {}\n    intermediate_size: {}\n    num_hidden_layers: "
      "{}\n"
      "    num_attention_heads: {}\n    num_key_value_heads: {}\n    vocab_size: {}\n    "
      "max_position_embeddings: {}\n"
      "    rms_norm_eps: {}\n    rope_theta: {:.1f}\n    attention_bias: {}\n    tie_word_embeddings: {}\n",
      qwen ? "is_qwen2_config" : "is_llama_config", m.hidden_size, m.intermediate_size, m.layers, m.heads,
      m.kv_heads, m.vocab_size, m.max_positions > 0 ? m.max_positions : t.seq_len,
      fmt::format("{:.1e}", m.norm_eps), m.rope_theta, m.attention_bias, m.tie_embeddings);
  if (t.cp > 1) out += "    _attn_implementation: ring\n";
  if (m.sliding_window) out += fmt::format("    sliding_window_size: {}\n", *m.sliding_window);
  if (m.experts > 0)
    out += fmt::format(
        "    moe_config:\n      num_experts: {}\n      top_k: {}\n      moe_intermediate_size: {}\n"
        "      router_aux_loss_coef: {:g}\n      token_dispatcher_type: alltoall\n",
        m.experts, m.experts_per_token, m.intermediate_size, m.router_aux_coef);
  if (m.experts > 0 && t.capacity_percent > 0)
    open.emplace_back("an expert capacity: its experts drop nothing");
  if (m.experts > 0 && t.routing == Routing::kBalanced)
    open.emplace_back("perfectly even routing: its router learns");
  if (m.family == "gpt2" || !m.rope)
    open.push_back(
        fmt::format("the {} family: its models are shaped like Llama and Qwen2", safe_text(m.family)));
  if (m.rope_scaling)
    open.emplace_back("RoPE scaling: rope_scaling takes the map of the model's config.json");
  return out;
}

}  // namespace

TrainerConfig nanotron_config(const Trial& t) {
  TrainerConfig out{kNanotron, "", {}};
  out.text = nano_parallelism(t, out.unsupported_settings);
  out.text += fmt::format(
      "tokens:\n  micro_batch_size: {}\n  batch_accumulation_per_replica: {}\n  sequence_length: {}\n",
      t.micro_batch_size, t.grad_accum, t.seq_len);
  out.text += nano_optimizer(t, out.unsupported_settings);
  out.text +=
      fmt::format("model:\n  dtype: {}\n  make_vocab_size_divisible_by: {}\n  ddp_bucket_cap_mb: {}\n",
                  t.precision == Precision::kFp32   ? "float32"
                  : t.precision == Precision::kFp16 ? "float16"
                                                    : "bfloat16",
                  t.vocab_multiple, t.grad_bucket_mb);
  if (dimensions_known(t, out.unsupported_settings)) out.text += nano_dimensions(t, out.unsupported_settings);
  if (t.precision == Precision::kFp8)
    out.unsupported_settings.emplace_back("fp8: it is not in its published code; bfloat16 above");
  if (t.offload != Offload::kNone) out.unsupported_settings.push_back(fmt::format("offload {}", t.offload));
  if (t.activation_offload) out.unsupported_settings.emplace_back("activations that wait in host memory");
  if (t.attention == AttentionKind::kMath)
    out.unsupported_settings.emplace_back("attention math: its default is flash_attention_2");
  out.unsupported_settings.emplace_back(
      "the keys of data, checkpoints, learning rate and the rest of the optimizer");
  note_common_gaps(t, out.unsupported_settings);
  return out;
}

}  // namespace sweep::interop
