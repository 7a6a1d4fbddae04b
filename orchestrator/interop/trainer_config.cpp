#include "orchestrator/interop/trainer_config.h"

#include "base/utf8.h"
#include "bench_kernels/shape/family.h"
#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/splits.h"
#include "orchestrator/interop/writer_parts.h"

namespace sweep::interop {

std::string torchrun(const Trial& t) {
  return fmt::format(
      "torchrun --nnodes {} --nproc-per-node {} --rdzv-backend c10d --rdzv-endpoint \"$MASTER_ADDR:29500\"",
      t.nodes, t.gpus_per_node);
}

i64 bucket_elements(const Trial& t) {
  return t.grad_bucket_mb * (i64{1} << 20) / shape::bytes_of(shape::state_types(t).gradients);
}

void note_common_gaps(const Trial& t, Gaps& open) {
  if (t.packing) open.emplace_back("packing is a matter of the data loader");
  if (t.memory_cap_bytes)
    open.push_back(fmt::format("the cap of {} bytes on device memory", *t.memory_cap_bytes));
  if (t.backend != CommBackend::kAuto && t.backend != CommBackend::kNccl)
    open.push_back(fmt::format("backend {} stood for NCCL here", t.backend));
  if (t.precision == Precision::kFp32)
    open.emplace_back("fp32 was measured; the sizes fit, the speed of bf16 will differ");
  if (shape::family_of(t.spec).norm_adds_one)
    open.push_back(fmt::format(
        "the {} family: a gate with GELU, norms that multiply by 1 + weight, and scaled embeddings",
        t.spec.family));
  if (t.routing == Routing::kSkewed)
    open.push_back(fmt::format("routing with {} % of the choices on hot experts", t.hot_percent));
}

bool vocabulary_padded(const Trial& t) {
  return shape::padded_vocab(t) != t.spec.vocab_size;
}

bool dimensions_known(const Trial& t, Gaps& open) {
  if (t.spec.layers > 0) return true;
  open.push_back(fmt::format("the dimensions of '{}': the import did not give them", safe_text(t.model)));
  return false;
}

std::vector<TrainerConfig> trainer_configs(const Trial& t) {
  return {torchtitan_config(t), megatron_config(t), nanotron_config(t), deepspeed_config(t)};
}

}  // namespace sweep::interop
