#include "bench_kernels/shape/quantized_base.h"

#include <fmt/format.h>

#include <utility>

#include "bench_kernels/shape/found_gpu.h"

namespace sweep::shape {
namespace {

// Each rank's rows of a weight are whole blocks where these are multiples of a block.
std::optional<std::string> broken_blocks(const Trial& t) {
  const ModelSpec& m = t.spec;
  const std::pair<const char*, i64> sizes[] = {{"hidden_size", m.hidden_size},
                                               {"heads x head_dim / tp", m.heads * m.head_dim / t.tp},
                                               {"kv_heads x head_dim / tp", m.kv_heads * m.head_dim / t.tp},
                                               {"intermediate_size / tp", m.intermediate_size / t.tp}};
  for (const auto& [what, size] : sizes)
    if (size % kNf4Block != 0)
      return fmt::format(
          "quantize_base {}: {} is {}, and {} weights in a row share a scale; take a size or tp that leaves "
          "multiples of {}",
          t.quantize_base, what, size, kNf4Block, kNf4Block);
  return {};
}

}  // namespace

std::optional<std::string> quantized_base_objection(const Trial& t) {
  if (t.quantize_base == QuantizeBase::kNone) return {};
  const auto with = [&](const char* what) {
    return fmt::format("quantize_base {} {}", t.quantize_base, what);
  };
  if (t.lora_rank == 0) return with("without adapters: codes of 4 bits are not trained; set lora_rank");
  if (t.spec.experts > 0)
    return with("with experts: their products read weights of 16 bits; use quantize_base none");
  if (t.offload == Offload::kParameters)
    return with("with offload parameters: the codes stay on the device; use offload optimizer or none");
  if (!runs_fused(t.hardware))
    return fmt::format(
        "quantize_base {} on {}: the kernel that makes weights of the codes is compiled for compute "
        "capability 7.5 and newer",
        t.quantize_base, t.hardware);
  return broken_blocks(t);
}

}  // namespace sweep::shape
