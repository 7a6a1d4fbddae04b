// Flags of torchtitan v0.2.2 (torchtitan/config/job_config.py). FSDP2 is its only sharding, so ZeRO 1 has no flag and ZeRO
// 2 is FSDP2 that keeps parameters; a pipeline's micro-batches are cut from the local batch.
#include "base/utf8.h"
#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/splits.h"
#include "orchestrator/interop/trainer_config.h"
#include "orchestrator/interop/writer_parts.h"

namespace sweep::interop {
namespace {

bool titan_shards(const Trial& t) {
  return t.zero >= 2 && t.dp * t.cp > 1;
}

void titan_sharding(const Trial& t, Flags& flags, Gaps& open) {
  const bool sharded = titan_shards(t);
  const i64 shard = sharded ? t.dp_shard.value_or(t.dp) : 1;
  flags.add("--parallelism.data_parallel_replicate_degree", t.dp / shard)
      .add("--parallelism.data_parallel_shard_degree", shard);
  if (sharded)
    flags.add("--parallelism.fsdp_reshard_after_forward",
              t.zero == 3 && t.reshard_after_forward ? "always" : "never");
  if (t.zero == 1)
    open.emplace_back(
        "ZeRO stage 1: torchtitan replicates (DDP, as above) or shards gradients and parameters too (FSDP2)");
  if (t.zero == 2)
    open.emplace_back(
        "ZeRO stage 2 becomes FSDP2 that keeps parameters gathered between forward and backward: near, not "
        "the same");
  if (t.zero == 3 && (t.prefetch_forward != 1 || t.prefetch_backward != 1))
    open.emplace_back("how many blocks are gathered ahead: FSDP2 decides");
  if (t.zero < 2 && t.dp > 1)
    open.push_back(fmt::format("the gradient bucket of {} MiB is fixed in its code", t.grad_bucket_mb));
  if (t.offload == Offload::kParameters && sharded)
    flags.add("--training.enable_cpu_offload");
  else if (t.offload != Offload::kNone)
    open.push_back(fmt::format(
        "offload {}: it moves parameters, gradients and optimizer together, under FSDP only", t.offload));
  if (t.activation_offload) open.emplace_back("activations that wait in host memory");
}

void titan_splits(const Trial& t, Flags& flags, Gaps& open) {
  flags.add("--parallelism.tensor_parallel_degree", t.tp);
  if (t.tp > 1 && !t.sp)
    open.emplace_back("tensor parallelism without sequence parallelism: torchtitan always uses both");
  if (vocabulary_padded(t))
    open.push_back(fmt::format("a vocabulary padded to {}: its ranks hold unequal shares of {} instead",
                               shape::padded_vocab(t), t.spec.vocab_size));
  if (t.tp > t.spec.kv_heads && t.spec.kv_heads > 0)
    open.emplace_back("more tensor-parallel ranks than key-value heads: its ranks hold whole heads");
  if (t.tp_overlap) flags.add("--compile.enable").add("--parallelism.enable_async_tensor_parallel");
  if (t.tp_overlap)
    open.emplace_back("its asynchronous tensor parallelism needs torch.compile, which we do not use");
  flags.add("--parallelism.context_parallel_degree", t.cp);
  if (t.cp > 1 && t.cp_comm_type == CpCommType::kRing)
    flags.add("--parallelism.context_parallel_rotate_method", "alltoall");
  if (t.cp > 1 && t.cp_comm_type != CpCommType::kRing)
    open.emplace_back("context parallelism that exchanges heads: its ranks exchange keys and values");
  if (t.cp > 1 && !titan_shards(t))
    open.emplace_back(
        "copies of the parameters on context-parallel ranks: torchtitan shards over them (FSDP2)");
  if (t.ep <= 1) return;
  flags.add("--parallelism.expert_parallel_degree", t.ep);
  if (t.tp > 1) flags.add("--parallelism.expert_tensor_parallel_degree", t.tp);
  if (t.routing == Routing::kBalanced) flags.add("--debug.moe_force_load_balance");
  if (t.capacity_percent > 0) open.emplace_back("an expert capacity: its experts drop nothing");
  if (!titan_shards(t))
    open.emplace_back("expert-parallel ranks beside ZeRO 0 or 1: it takes them from the sharded ones");
}

// Stages: ceil((layers + weight of both ends) / layers per stage), a multiple of pp; without the flag a schedule of
// several chunks has two a rank.
void titan_chunks(const Trial& t, Flags& flags, Gaps& open) {
  if (t.vpp == 2) return;
  const i64 stages = t.pp * t.vpp;
  const auto up = [](i64 a, i64 b) { return (a + b - 1) / b; };
  for (const i64 ends : {1, 0}) {
    const i64 layers = t.spec.layers + 2 * ends, each = t.spec.layers > 0 ? up(layers, stages) : 0;
    if (each == 0 || up(layers, each) != stages) continue;
    if (ends == 0)
      flags.add("--parallelism.pipeline_parallel_first_stage_less_layers", 0)
          .add("--parallelism.pipeline_parallel_last_stage_less_layers", 0);
    flags.add("--parallelism.pipeline_parallel_layers_per_stage", each);
    return;
  }
  open.push_back(fmt::format(
      "{} chunks a rank: --parallelism.module_fqns_per_model_part lists the modules of each", t.vpp));
}

void titan_pipeline(const Trial& t, Flags& flags, Gaps& open) {
  flags.add("--parallelism.pipeline_parallel_degree", t.pp);
  if (t.pp <= 1) return;
  const bool chunks = t.schedule == Schedule::kInterleaved && t.vpp > 1;
  flags.add("--parallelism.pipeline_parallel_schedule", t.schedule == Schedule::kGpipe ? "GPipe"
                                                        : chunks                       ? "Interleaved1F1B"
                                                                                       : "1F1B");
  if (chunks) titan_chunks(t, flags, open);
  if (t.schedule == Schedule::kZeroBubble)
    open.emplace_back(
        "zero_bubble with one stage a rank: its InterleavedZeroBubble and ZBVZeroBubble want two or more; "
        "1F1B above");
  flags.add("--parallelism.pipeline_parallel_microbatch_size", t.micro_batch_size);
  open.emplace_back("which layers a stage gets: it deals them evenly, its ends with a layer less");
}

void titan_precision(const Trial& t, Flags& flags, Gaps& open) {
  const bool all_half = t.precision == Precision::kBf16;
  flags.add("--training.dtype", all_half ? "bfloat16" : "float32");
  flags.add("--training.mixed_precision_param", t.precision == Precision::kFp32 ? "float32" : "bfloat16");
  if (t.precision == Precision::kFp16) open.emplace_back("fp16: it has bfloat16 and float32; bfloat16 above");
  if (t.precision == Precision::kBf16Master)
    open.emplace_back("bf16 weights with fp32 masters: it keeps fp32 weights and computes in bf16, as above");
  if (t.precision == Precision::kFp8) flags.add("--model.converters", "quantize.linear.float8");
  if (titan_shards(t) && shape::state_types(t).gradients != shape::Number::kFp32)
    open.emplace_back("gradients reduced in a half type: FSDP2 reduces in float32 there");
  if (!titan_shards(t) && !all_half && t.precision != Precision::kFp32 && (t.tp > 1 || t.pp > 1 || t.cp > 1))
    open.emplace_back("mixed precision without FSDP2 takes effect only without any other parallelism");
}

void titan_recompute(const Trial& t, Flags& flags, Gaps& open) {
  flags.add("--activation_checkpoint.mode", t.recompute);
  if (t.recompute == Recompute::kSelective) {
    flags.add("--activation_checkpoint.selective_ac_option", "op");
    open.emplace_back("its selective recomputation chooses other operations than ours");
  }
  if (t.recompute == Recompute::kFull && t.recompute_every > 1)
    open.push_back(fmt::format("one kept activation for {} layers: it keeps one a layer", t.recompute_every));
}

}  // namespace

TrainerConfig torchtitan_config(const Trial& t) {
  TrainerConfig out{kTorchtitan, "", {}};
  Flags flags(torchrun(t) + " -m torchtitan.train");
  titan_sharding(t, flags, out.unsupported_settings);
  titan_splits(t, flags, out.unsupported_settings);
  titan_pipeline(t, flags, out.unsupported_settings);
  // A local batch is what one data-parallel rank takes before gradients are accumulated once more.
  flags.add("--training.local_batch_size", t.pp > 1 ? t.micro_batch_size * t.grad_accum : t.micro_batch_size);
  flags.add("--training.global_batch_size", t.global_batch_size).add("--training.seq_len", t.seq_len);
  titan_precision(t, flags, out.unsupported_settings);
  titan_recompute(t, flags, out.unsupported_settings);
  flags.add("--optimizer.name", "AdamW");
  flags.add("--optimizer.implementation",
            t.optimizer == AdamWKind::kPlain ? "for-loop" : to_string(t.optimizer));
  if (t.grad_clip)
    flags.add("--training.max_norm", "1.0");
  else
    out.unsupported_settings.emplace_back("no clipping: it always clips, to --training.max_norm");
  if (t.attention != AttentionKind::kAuto)
    out.unsupported_settings.push_back(
        fmt::format("attention {}: it takes what scaled_dot_product_attention chooses", t.attention));
  out.text = flags.text();
  out.unsupported_settings.push_back(
      fmt::format("model: choose --model.name and --model.flavor for '{}'; dimensions are no flags there",
                  safe_text(t.model)));
  note_common_gaps(t, out.unsupported_settings);
  return out;
}

}  // namespace sweep::interop
