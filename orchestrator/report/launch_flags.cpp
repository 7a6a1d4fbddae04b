#include "orchestrator/report/launch_flags.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "orchestrator/report/format.h"

namespace sweep::report {
namespace {

using json = nlohmann::ordered_json;

// Flags, one per line with continuation, so that a diff of two configurations reads well.
class Flags {
 public:
  explicit Flags(std::string head) : out_(std::move(head)) {}
  template <class T>
  Flags& add(std::string_view flag, const T& value) {
    out_ += fmt::format(" \\\n  {} {}", flag, value);
    return *this;
  }
  Flags& add(std::string_view flag) {
    out_ += fmt::format(" \\\n  {}", flag);
    return *this;
  }
  std::string text() const { return out_ + "\n"; }

 private:
  std::string out_;
};

// Each node runs one of these; what the job's first node is called only the job knows.
std::string torchrun(const Trial& t) {
  return fmt::format(
      "torchrun --nnodes {} --nproc-per-node {} --rdzv-backend c10d --rdzv-endpoint \"$MASTER_ADDR:29500\"",
      t.nodes, t.gpus_per_node);
}

// What none of the four take as a flag and our step fixes.
void common(const Trial& t, std::vector<std::string>& open) {
  if (t.packing) open.emplace_back("packing is a matter of the data loader");
  if (t.memory_cap_bytes)
    open.push_back(fmt::format("the cap of {} bytes on device memory", *t.memory_cap_bytes));
  if (t.backend != "auto" && t.backend != "nccl")
    open.push_back(fmt::format("backend {} stood for NCCL here", safe_text(t.backend)));
  if (t.precision == "fp32")
    open.emplace_back("fp32 was measured; the sizes fit, the speed of bf16 will differ");
}

void titan_sharding(const Trial& t, Flags& flags, std::vector<std::string>& open) {
  const bool sharded = t.zero >= 2 && t.dp * t.cp > 1;
  flags.add("--parallelism.data_parallel_replicate_degree", sharded ? 1 : t.dp);
  flags.add("--parallelism.data_parallel_shard_degree", sharded ? t.dp : 1);
  if (sharded) flags.add("--parallelism.fsdp_reshard_after_forward", t.zero == 3 ? "always" : "never");
  if (t.zero == 1)
    open.emplace_back(
        "ZeRO stage 1: torchtitan replicates (DDP, as above) or shards gradients and parameters too (FSDP2)");
  if (t.zero == 2)
    open.emplace_back(
        "ZeRO stage 2 becomes FSDP2 that keeps parameters gathered between forward and backward: near, not "
        "the same");
  if (t.offload == "optimizer")
    open.emplace_back("offloading the optimizer alone: its CPU offload takes parameters along");
}

LaunchForm torchtitan(const ResultRow& row) {
  const Trial& t = row.trial;
  LaunchForm out{"torchtitan", "", {}};
  Flags flags(torchrun(t) + " -m torchtitan.train");
  titan_sharding(t, flags, out.not_said);
  flags.add("--parallelism.tensor_parallel_degree", t.tp).add("--parallelism.pipeline_parallel_degree", t.pp);
  flags.add("--parallelism.context_parallel_degree", t.cp);
  if (t.ep > 1) flags.add("--parallelism.expert_parallel_degree", t.ep);
  // With pipeline stages the local batch is what the schedule cuts into micro-batches; without, it is one.
  if (t.pp > 1) flags.add("--parallelism.pipeline_parallel_microbatch_size", t.micro_batch_size);
  flags.add("--training.local_batch_size", t.pp > 1 ? t.micro_batch_size * t.grad_accum : t.micro_batch_size);
  flags.add("--training.global_batch_size", t.global_batch_size).add("--training.seq_len", t.seq_len);
  flags.add("--training.mixed_precision_param", t.precision == "bf16" ? "bfloat16" : "float32");
  flags.add("--activation_checkpoint.mode", t.recompute);
  if (t.recompute == "selective") flags.add("--activation_checkpoint.selective_ac_option", "op");
  if (t.offload == "parameters") flags.add("--training.enable_cpu_offload");
  flags.add("--optimizer.name", "AdamW");
  flags.add("--optimizer.implementation", t.optimizer == "plain" ? "for-loop" : t.optimizer);
  out.text = flags.text();
  out.not_said.push_back(
      fmt::format("model: choose --model.name and --model.flavor for '{}'; dimensions are no flags there",
                  safe_text(t.model)));
  if (t.zero < 2 && t.dp > 1)
    out.not_said.push_back(fmt::format("the gradient bucket of {} MiB is fixed in its code", t.bucket_mb));
  if (t.recompute == "selective")
    out.not_said.emplace_back("its selective recomputation chooses other operations than ours");
  common(t, out.not_said);
  return out;
}

void megatron_model(const ModelSpec& m, const Trial& t, Flags& flags, std::vector<std::string>& open) {
  if (m.layers == 0) {
    open.push_back(fmt::format("the dimensions of '{}': the import did not give them", safe_text(t.model)));
    return;
  }
  flags.add("--num-layers", m.layers)
      .add("--hidden-size", m.hidden_size)
      .add("--ffn-hidden-size", m.intermediate_size);
  flags.add("--num-attention-heads", m.heads).add("--kv-channels", m.head_dim);
  if (m.kv_heads != m.heads) flags.add("--group-query-attention").add("--num-query-groups", m.kv_heads);
  flags.add("--max-position-embeddings", m.max_positions > 0 ? m.max_positions : t.seq_len);
  flags.add("--position-embedding-type", m.rope ? "rope" : "learned_absolute");
  if (m.rope) flags.add("--rotary-base", static_cast<i64>(m.rope_theta));
  flags.add("--normalization", m.rmsnorm ? "RMSNorm" : "LayerNorm")
      .add("--norm-epsilon", fmt::format("{:g}", m.norm_eps));
  if (m.swiglu) flags.add("--swiglu");
  if (!m.linear_bias) flags.add("--disable-bias-linear");
  if (m.attention_bias && !m.linear_bias) flags.add("--add-qkv-bias");
  if (!m.tie_embeddings) flags.add("--untie-embeddings-and-output-weights");
  if (m.rope_scaling)
    open.emplace_back("RoPE scaling of Llama 3.1: --use-rope-scaling takes its factors from the code");
  if (m.sliding_window) open.push_back(fmt::format("the sliding window of {} tokens", *m.sliding_window));
  open.push_back(fmt::format("the vocabulary of {} comes from the tokenizer (--tokenizer-type, --vocab-size)",
                             m.vocab_size));
}

void megatron_sharding(const Trial& t, Flags& flags, std::vector<std::string>& open) {
  if (t.zero >= 1) flags.add("--use-distributed-optimizer");
  if (t.zero >= 2)
    flags.add("--use-megatron-fsdp")
        .add("--data-parallel-sharding-strategy", t.zero == 2 ? "optim_grads" : "optim_grads_params");
  if (t.dp > 1 && t.zero < 2) flags.add("--overlap-grad-reduce");
  if (t.offload == "optimizer") flags.add("--optimizer-cpu-offload");
  if (t.offload == "parameters")
    open.emplace_back("offloading parameters: Megatron-LM offloads the optimizer only");
  if (t.dp > 1)
    open.push_back(
        fmt::format("the bucket of {} MiB: --ddp-bucket-size counts parameters, not bytes", t.bucket_mb));
}

LaunchForm megatron(const ResultRow& row) {
  const Trial& t = row.trial;
  LaunchForm out{"Megatron-LM", "", {}};
  Flags flags(torchrun(t) + " pretrain_gpt.py --use-mcore-models");
  flags.add("--tensor-model-parallel-size", t.tp).add("--pipeline-model-parallel-size", t.pp);
  flags.add("--context-parallel-size", t.cp);
  if (t.ep > 1) flags.add("--expert-model-parallel-size", t.ep);
  flags.add("--micro-batch-size", t.micro_batch_size).add("--global-batch-size", t.global_batch_size);
  flags.add("--seq-length", t.seq_len);
  megatron_model(t.spec, t, flags, out.not_said);
  megatron_sharding(t, flags, out.not_said);
  if (t.precision == "bf16") flags.add("--bf16");
  if (t.recompute == "full")
    flags.add("--recompute-granularity", "full")
        .add("--recompute-method", "uniform")
        .add("--recompute-num-layers", 1);
  if (t.recompute == "selective") flags.add("--recompute-granularity", "selective");
  if (t.attention == "flash") flags.add("--attention-backend", "flash");
  flags.add("--optimizer", "adam");
  out.text = flags.text();
  out.not_said.push_back(
      fmt::format("the data-parallel degree of {} follows from the number of ranks", t.dp));
  if (t.optimizer != "fused")
    out.not_said.push_back(fmt::format("the {} AdamW: its Adam is fused", safe_text(t.optimizer)));
  common(t, out.not_said);
  return out;
}

LaunchForm nanotron(const ResultRow& row) {
  const Trial& t = row.trial;
  LaunchForm out{"nanotron", "", {}};
  std::string text = "parallelism:\n";
  text += fmt::format("  dp: {}\n  tp: {}\n  pp: {}\n  pp_engine: 1f1b\n", t.dp, t.tp, t.pp);
  text += fmt::format("  context_parallel_size: {}\n  expert_parallel_size: {}\n", t.cp, t.ep);
  text += fmt::format("  recompute_layer: {}\n", t.recompute == "full");
  text += fmt::format(
      "tokens:\n  micro_batch_size: {}\n  batch_accumulation_per_replica: {}\n  sequence_length: {}\n",
      t.micro_batch_size, t.grad_accum, t.seq_len);
  text += fmt::format("optimizer:\n  zero_stage: {}\n  accumulate_grad_in_fp32: true\n", t.zero >= 1 ? 1 : 0);
  text += fmt::format("model:\n  dtype: {}\n", t.precision == "bf16" ? "bfloat16" : "float32");
  const ModelSpec& m = t.spec;
  if (m.layers > 0) {
    text += fmt::format(
        "  model_config:\n    hidden_size: {}\n    intermediate_size: {}\n    num_hidden_layers: {}\n    "
        "num_attention_heads: {}\n    num_key_value_heads: {}\n    vocab_size: {}\n    "
        "max_position_embeddings: {}\n    "
        "tie_word_embeddings: {}\n",
        m.hidden_size, m.intermediate_size, m.layers, m.heads, m.kv_heads, m.vocab_size,
        m.max_positions > 0 ? m.max_positions : t.seq_len, m.tie_embeddings);
    if (m.family != "llama")
      out.not_said.push_back(fmt::format("the {} family: its stock model is Llama", safe_text(m.family)));
  } else {
    out.not_said.push_back(
        fmt::format("the dimensions of '{}': the import did not give them", safe_text(t.model)));
  }
  out.text = std::move(text);
  if (t.zero >= 2) out.not_said.push_back(fmt::format("ZeRO stage {}: it has stages 0 and 1", t.zero));
  if (t.recompute == "selective")
    out.not_said.emplace_back("selective recomputation: it recomputes whole layers or nothing");
  if (t.offload != "none") out.not_said.push_back(fmt::format("{} offloading", safe_text(t.offload)));
  if (t.tp > 1) out.not_said.emplace_back("tp_mode: all_reduce, or reduce_scatter for sequence parallelism");
  out.not_said.emplace_back("the keys of data, checkpoints, learning rate and the rest of the optimizer");
  common(t, out.not_said);
  return out;
}

LaunchForm deepspeed(const ResultRow& row) {
  const Trial& t = row.trial;
  LaunchForm out{"DeepSpeed", "", {}};
  json config;
  config["train_batch_size"] = t.global_batch_size;
  config["train_micro_batch_size_per_gpu"] = t.micro_batch_size;
  config["gradient_accumulation_steps"] = t.grad_accum;
  if (t.precision == "bf16") config["bf16"] = {{"enabled", true}};
  json zero = {{"stage", t.zero}};
  if (t.zero > 0) {
    zero["overlap_comm"] = true;
    zero["reduce_bucket_size"] = t.bucket_mb * (i64{1} << 20) / (t.precision == "bf16" ? 2 : 4);
  }
  if (t.zero > 0 && t.offload != "none")
    zero["offload_optimizer"] = {{"device", "cpu"}, {"pin_memory", true}};
  if (t.zero == 3 && t.offload == "parameters")
    zero["offload_param"] = {{"device", "cpu"}, {"pin_memory", true}};
  config["zero_optimization"] = zero;
  if (t.tp > 1) config["tensor_parallel"] = {{"autotp_size", t.tp}};
  out.text = config.dump(2) + "\n";
  if (t.recompute != "none")
    out.not_said.push_back(
        fmt::format("{} recomputation: switched on in the model's code", safe_text(t.recompute)));
  if (t.offload != "none" && t.zero == 0) out.not_said.emplace_back("offloading without ZeRO");
  if (t.offload == "parameters" && t.zero > 0 && t.zero < 3)
    out.not_said.emplace_back("offloading parameters: ZeRO stage 3 only");
  if (t.pp > 1) out.not_said.push_back(fmt::format("pp {}: a PipelineModule in the model's code", t.pp));
  if (t.cp > 1)
    out.not_said.push_back(fmt::format("cp {}: its sequence parallelism is set up in code", t.cp));
  if (t.ep > 1) out.not_said.push_back(fmt::format("ep {}: given to its MoE layers in code", t.ep));
  out.not_said.push_back(
      fmt::format("seq_len {}, the model and the optimizer: given to the training script", t.seq_len));
  out.not_said.push_back(
      fmt::format("{} node(s) of {} ranks: given to the `deepspeed` launcher (--num_nodes, --num_gpus)",
                  t.nodes, t.gpus_per_node));
  common(t, out.not_said);
  return out;
}

}  // namespace

std::vector<LaunchForm> launch_forms(const ResultRow& row) {
  return {torchtitan(row), megatron(row), nanotron(row), deepspeed(row)};
}

}  // namespace sweep::report
