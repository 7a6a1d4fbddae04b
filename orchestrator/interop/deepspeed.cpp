// A DeepSpeed JSON (v0.19.5: deepspeed/runtime/config.py, precision_config.py, zero/config.py, zero/offload_config.py). Buckets
// count elements. Pipeline stages, recomputation and the model are said in the training script, not here.
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/splits.h"
#include "orchestrator/interop/trainer_config.h"
#include "orchestrator/interop/writer_parts.h"

namespace sweep::interop {
namespace {

using json = nlohmann::ordered_json;

void speed_precision(const Trial& t, json& config, Gaps& open) {
  if (t.precision == Precision::kBf16Mixed)
    config["torch_autocast"] = {{"enabled", true}, {"dtype", "bfloat16"}};
  if (t.precision == Precision::kBf16 || t.precision == Precision::kBf16Master ||
      t.precision == Precision::kFp8)
    config["bf16"] = {{"enabled", true}};
  if (t.precision == Precision::kFp16)
    config["fp16"] = {{"enabled", true},
                      {"loss_scale", 0},
                      {"initial_scale_power", t.initial_scale_power},
                      {"loss_scale_window", 2000}};
  if (t.precision == Precision::kBf16 && t.zero >= 1) {
    config["bf16"]["bf16_master_weights_and_grads"] = true;
    config["bf16"]["bf16_optimizer_states"] = true;
  } else if (t.precision == Precision::kBf16) {
    open.emplace_back("all in bf16 without ZeRO: it keeps fp32 masters and moments beside bf16 weights");
  }
  if (t.precision == Precision::kFp8)
    open.emplace_back("fp8: a matter of the model's layers (Transformer Engine); bf16 above");
  if (t.precision == Precision::kBf16Master || t.precision == Precision::kFp16)
    config["data_types"] = {
        {"grad_accum_dtype", shape::state_types(t).gradients == shape::Number::kFp32   ? "fp32"
                             : shape::state_types(t).gradients == shape::Number::kFp16 ? "fp16"
                                                                                       : "bf16"}};
}

json speed_offload(const Trial& t, json zero, Gaps& open) {
  const json host = {{"device", "cpu"}, {"pin_memory", true}};
  if (t.offload == Offload::kNone) return zero;
  if (t.zero == 0) {
    open.emplace_back("offloading without ZeRO");
    return zero;
  }
  if (t.offload == Offload::kDisk && t.zero < 3)
    open.emplace_back("optimizer state on disk: with ZeRO stage 3 only");
  if (t.offload == Offload::kDisk && t.zero == 3) {
    zero["offload_optimizer"] = {{"device", "nvme"}, {"nvme_path", "/local_nvme"}, {"pin_memory", true}};
    open.emplace_back("nvme_path is yours to name");
  }
  if (t.offload == Offload::kOptimizer || t.offload == Offload::kParameters) zero["offload_optimizer"] = host;
  if (t.offload == Offload::kParameters && t.zero == 3) zero["offload_param"] = host;
  if (t.offload == Offload::kParameters && t.zero < 3)
    open.emplace_back("offloading parameters: with ZeRO stage 3 only");
  return zero;
}

json speed_zero(const Trial& t, Gaps& open) {
  json zero = {{"stage", t.zero}};
  if (t.zero == 0) {
    if (t.dp > 1)
      open.push_back(
          fmt::format("the bucket of {} MiB: without ZeRO it is fixed in its code", t.grad_bucket_mb));
    return zero;
  }
  zero["overlap_comm"] = true;
  zero["reduce_bucket_size"] = bucket_elements(t);
  if (t.dp_shard && *t.dp_shard < t.dp) {
    if (t.zero == 3) zero["mics_shard_size"] = *t.dp_shard * t.cp;
    open.emplace_back(t.zero == 3
                          ? "hybrid sharding also wants the model built within deepspeed.zero.MiCS_Init"
                          : "hybrid sharding: with ZeRO stage 3 only (MiCS)");
  }
  if (t.zero == 3 && !t.reshard_after_forward)
    open.emplace_back("parameters kept after forward: it frees them by stage3_max_live_parameters");
  if (t.zero == 3 && (t.prefetch_forward != 1 || t.prefetch_backward != 1))
    open.emplace_back("blocks gathered ahead: stage3_prefetch_bucket_size counts elements");
  return speed_offload(t, std::move(zero), open);
}

void speed_splits(const Trial& t, json& config, Gaps& open) {
  if (vocabulary_padded(t))
    open.push_back(fmt::format("a vocabulary padded to {}: model.resize_token_embeddings({}) in the script",
                               shape::padded_vocab(t), shape::padded_vocab(t)));
  if (t.tp > 1) {
    config["tensor_parallel"] = {{"autotp_size", t.tp}};
    if (t.sp) open.emplace_back("sequence parallelism beside tp: its automatic tensor parallelism has none");
  }
  if (t.tp_overlap) open.emplace_back("overlapped tensor parallelism");
  if (t.cp > 1 && t.cp_comm_type == CpCommType::kAllToAll) {
    config["sequence_parallel_size"] = t.cp;
    open.emplace_back("its exchange of heads (Ulysses) is also set up in the model's code");
  }
  if (t.cp > 1 && t.cp_comm_type != CpCommType::kAllToAll)
    open.push_back(fmt::format("cp {} as a ring: it exchanges heads (Ulysses)", t.cp));
  if (t.ep > 1) {
    config["expert_parallel"] = {{"enabled", true}, {"autoep_size", t.ep}};
    open.emplace_back("routing and capacity of its experts: in the model's code");
  }
  if (t.pp > 1)
    open.push_back(
        fmt::format("pp {} and the schedule {}: a PipelineModule in the model's code, which runs 1F1B", t.pp,
                    t.schedule));
}

}  // namespace

TrainerConfig deepspeed_config(const Trial& t) {
  TrainerConfig out{kDeepSpeed, "", {}};
  json config;
  config["train_batch_size"] = t.global_batch_size;
  config["train_micro_batch_size_per_gpu"] = t.micro_batch_size;
  config["gradient_accumulation_steps"] = t.grad_accum;
  config["gradient_clipping"] = t.grad_clip ? 1.0 : 0.0;
  speed_precision(t, config, out.unsupported_settings);
  config["zero_optimization"] = speed_zero(t, out.unsupported_settings);
  speed_splits(t, config, out.unsupported_settings);
  out.text = config.dump(2) + "\n";
  if (t.recompute != Recompute::kNone)
    out.unsupported_settings.push_back(
        fmt::format("{} recomputation: switched on in the model's code", t.recompute));
  if (t.activation_offload)
    out.unsupported_settings.emplace_back("activations that wait in host memory: in the model's code");
  if (t.attention != AttentionKind::kAuto)
    out.unsupported_settings.push_back(fmt::format("attention {}: in the model's code", t.attention));
  out.unsupported_settings.push_back(fmt::format(
      "seq_len {}, the model and the {} AdamW: given to the training script", t.seq_len, t.optimizer));
  out.unsupported_settings.push_back(
      fmt::format("{} node(s) of {} ranks: given to the `deepspeed` launcher (--num_nodes, --num_gpus)",
                  t.nodes, t.gpus_per_node));
  note_common_gaps(t, out.unsupported_settings);
  return out;
}

}  // namespace sweep::interop
