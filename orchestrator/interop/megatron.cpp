// Arguments of Megatron-LM core_v0.19.0 (megatron/training/arguments.py; TransformerConfig for those it takes from there).
// Dropout is 0.1 there unless said, gradients of bf16 are kept in fp32 unless said, and clipping is on unless said.
#include "base/utf8.h"
#include "bench_kernels/shape/family.h"
#include "bench_kernels/shape/model_states.h"
#include "orchestrator/interop/trainer_config.h"
#include "orchestrator/interop/writer_parts.h"

namespace sweep::interop {
namespace {

void megatron_experts(const ModelSpec& m, const Trial& t, Flags& flags, Gaps& open) {
  if (m.experts == 0) return;
  flags.add("--num-experts", m.experts).add("--moe-router-topk", m.experts_per_token);
  flags.add("--moe-ffn-hidden-size", m.intermediate_size).add("--moe-token-dispatcher-type", "alltoall");
  if (t.routing == Routing::kBalanced) {
    flags.add("--moe-router-force-load-balancing").add("--moe-router-load-balancing-type", "none");
    open.emplace_back("perfectly even routing: it balances by random choices");
  } else {
    flags.add("--moe-router-load-balancing-type", "aux_loss");
    flags.add("--moe-aux-loss-coeff", fmt::format("{:g}", m.router_aux_coef));
  }
  if (t.capacity_percent > 0)
    flags.add("--moe-expert-capacity-factor",
              fmt::format("{:g}", static_cast<double>(t.capacity_percent) / 100));
}

void megatron_model(const Trial& t, Flags& flags, Gaps& open) {
  const ModelSpec& m = t.spec;
  if (!dimensions_known(t, open)) return;
  flags.add("--num-layers", m.layers)
      .add("--hidden-size", m.hidden_size)
      .add("--ffn-hidden-size", m.intermediate_size);
  flags.add("--num-attention-heads", m.heads).add("--kv-channels", m.head_dim);
  if (m.kv_heads != m.heads) flags.add("--group-query-attention").add("--num-query-groups", m.kv_heads);
  flags.add("--max-position-embeddings", m.max_positions > 0 ? m.max_positions : t.seq_len);
  flags.add("--position-embedding-type", m.rope ? "rope" : "learned_absolute");
  if (m.rope) flags.add("--rotary-base", static_cast<i64>(m.rope_theta));
  if (m.rope_scaling) {
    flags.add("--use-rope-scaling").add("--rope-scaling-factor", fmt::format("{:g}", m.rope_scaling->factor));
    open.emplace_back("the other factors of Llama 3.1's RoPE scaling are fixed in its code");
  }
  flags.add("--normalization", m.rmsnorm ? "RMSNorm" : "LayerNorm")
      .add("--norm-epsilon", fmt::format("{:g}", m.norm_eps));
  if (m.swiglu && !shape::family_of(m).gelu_gate) flags.add("--swiglu");
  if (!m.linear_bias) flags.add("--disable-bias-linear");
  if (m.attention_bias && !m.linear_bias) flags.add("--add-qkv-bias");
  if (!m.tie_embeddings) flags.add("--untie-embeddings-and-output-weights");
  if (m.sliding_window) flags.add("--window-size", fmt::format("{},0", *m.sliding_window - 1));
  flags.add("--attention-dropout", "0.0").add("--hidden-dropout", "0.0");
  megatron_experts(m, t, flags, open);
  flags.add("--make-vocab-size-divisible-by", t.vocab_multiple);
  open.push_back(fmt::format("the vocabulary of {} comes from the tokenizer (--tokenizer-type, --vocab-size)",
                             m.vocab_size));
}

void megatron_splits(const Trial& t, Flags& flags, Gaps& open) {
  flags.add("--tensor-model-parallel-size", t.tp);
  if (t.tp > 1 && t.sp) flags.add("--sequence-parallel");
  if (t.tp > 1 && !t.sp && t.spec.experts > 0)
    open.emplace_back("experts with tensor but without sequence parallelism: it refuses to train them");
  if (t.tp_overlap && t.sp) flags.add("--tp-comm-overlap");
  if (t.tp_overlap && !t.sp)
    open.emplace_back("overlapped tensor parallelism without sequence parallelism: it has only both");
  flags.add("--context-parallel-size", t.cp);
  if (t.cp > 1) flags.add("--cp-comm-type", t.cp_comm_type == CpCommType::kRing ? "p2p" : "a2a");
  if (t.ep > 1) flags.add("--expert-model-parallel-size", t.ep);
  flags.add("--pipeline-model-parallel-size", t.pp);
  if (t.pp <= 1) return;
  if (t.schedule == Schedule::kInterleaved && t.vpp > 1)
    flags.add("--num-virtual-stages-per-pipeline-rank", t.vpp);
  if (t.schedule == Schedule::kGpipe || t.schedule == Schedule::kZeroBubble)
    open.push_back(fmt::format("schedule {}: it has 1F1B (as above) and interleaved 1F1B", t.schedule));
  open.emplace_back(
      "which layers a stage gets: the same number each, which must divide "
      "(--pipeline-model-parallel-layout)");
}

void megatron_offload(const Trial& t, Flags& flags, Gaps& open) {
  if (t.activation_offload)
    open.emplace_back(
        "all activations on the host: --fine-grained-activation-offloading moves those of chosen modules");
  if (t.offload == Offload::kNone) return;
  if (t.offload == Offload::kOptimizer && t.zero >= 1)
    flags.add("--optimizer-cpu-offload").add("--use-precision-aware-optimizer");
  else
    open.push_back(
        fmt::format("offload {} with ZeRO {}: it moves the distributed optimizer only", t.offload, t.zero));
}

void megatron_sharding(const Trial& t, Flags& flags, Gaps& open) {
  const bool fsdp = t.zero >= 2;
  if (t.zero >= 1) flags.add("--use-distributed-optimizer");
  if (fsdp)
    flags.add("--use-megatron-fsdp")
        .add("--data-parallel-sharding-strategy", t.zero == 2 ? "optim_grads" : "optim_grads_params")
        .add("--ckpt-format", "fsdp_dtensor");
  if (t.zero == 1 && t.dp_shard && *t.dp_shard < t.dp)
    flags.add("--num-distributed-optimizer-instances", t.dp / *t.dp_shard);
  if (fsdp && t.dp_shard && *t.dp_shard < t.dp)
    flags.add("--num-distributed-optimizer-instances", t.dp / *t.dp_shard)
        .add("--outer-dp-sharding-strategy", "no_shard");
  if (t.dp * t.cp > 1) flags.add("--overlap-grad-reduce");
  if (t.dp > 1 && !fsdp) flags.add("--ddp-bucket-size", bucket_elements(t));
  if (t.zero == 3 && !t.reshard_after_forward)
    open.emplace_back("parameters kept after forward: its optim_grads_params frees them");
  if (t.zero == 3 && (t.prefetch_forward != 1 || t.prefetch_backward != 1))
    open.emplace_back("how many blocks are gathered ahead: it decides");
}

// --bf16: bf16 weights, fp32 masters and moments; gradients in fp32 unless --grad-reduce-in-bf16.
void megatron_precision(const Trial& t, Flags& flags, Gaps& open) {
  if (t.precision == Precision::kFp32) return;
  if (t.precision == Precision::kFp16) {
    flags.add("--fp16")
        .add("--initial-loss-scale", i64{1} << t.initial_scale_power)
        .add("--loss-scale-window", 2000);
  } else {
    flags.add("--bf16");
    if (shape::state_types(t).gradients == shape::Number::kFp32)
      flags.add("--accumulate-allreduce-grads-in-fp32");
    else
      flags.add("--grad-reduce-in-bf16");
  }
  if (t.precision == Precision::kFp8) flags.add("--fp8-format", "hybrid");
  if (t.precision == Precision::kBf16)
    open.emplace_back("all in bf16: it keeps fp32 masters and moments beside bf16 weights");
  if (t.precision == Precision::kBf16Mixed)
    open.emplace_back("fp32 weights cast for use: it keeps bf16 weights and fp32 masters");
}

void megatron_recompute(const Trial& t, Flags& flags) {
  if (t.recompute == Recompute::kFull)
    flags.add("--recompute-granularity", "full")
        .add("--recompute-method", "uniform")
        .add("--recompute-num-layers", t.recompute_every);
  if (t.recompute == Recompute::kSelective)
    flags.add("--recompute-granularity", "selective").add("--recompute-modules", "core_attn");
}

}  // namespace

TrainerConfig megatron_config(const Trial& t) {
  TrainerConfig out{kMegatron, "", {}};
  // It insists on this where tensor or context parallelism is used without its FSDP, and on its absence with it.
  const bool one_connection = (t.tp > 1 || t.cp > 1) && t.zero < 2;
  Flags flags((one_connection ? "CUDA_DEVICE_MAX_CONNECTIONS=1 " : "") + torchrun(t) +
              " pretrain_gpt.py --use-mcore-models");
  megatron_splits(t, flags, out.unsupported_settings);
  flags.add("--micro-batch-size", t.micro_batch_size).add("--global-batch-size", t.global_batch_size);
  flags.add("--seq-length", t.seq_len);
  megatron_model(t, flags, out.unsupported_settings);
  megatron_sharding(t, flags, out.unsupported_settings);
  megatron_offload(t, flags, out.unsupported_settings);
  megatron_precision(t, flags, out.unsupported_settings);
  megatron_recompute(t, flags);
  if (t.attention != AttentionKind::kAuto)
    flags.add("--attention-backend", t.attention == AttentionKind::kFlash ? "flash" : "unfused");
  flags.add("--optimizer", "adam").add("--clip-grad", t.grad_clip ? "1.0" : "0.0");
  out.text = flags.text();
  out.unsupported_settings.push_back(
      fmt::format("the data-parallel degree of {} follows from the number of ranks", t.dp));
  if (t.optimizer != AdamWKind::kFused)
    out.unsupported_settings.push_back(fmt::format("the {} AdamW: its Adam is fused", t.optimizer));
  note_common_gaps(t, out.unsupported_settings);
  return out;
}

}  // namespace sweep::interop
