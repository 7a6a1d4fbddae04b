#include "bench_kernels/shape/quantized_base.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "bench_kernels/shape/family.h"
#include "bench_kernels/shape/found_gpu.h"
#include "bench_kernels/shape/model_states.h"

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

bool none(const Trial& t) {
  return t.quantize_base == QuantizeBase::kNone;
}

i64 bytes_of(const std::vector<i64>& tensors) {
  i64 sum = 0;
  for (const i64 n : tensors) sum += Nf4Extent{n, n}.bytes();
  return sum;
}

i64 weights_of(const std::vector<i64>& tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), i64{0});
}

// Weights of the tensors of which each of so many ranks keeps a part, of all of them together. A bucket's bytes are a
// multiple of `unit`.
i64 read_by_shards(const std::vector<i64>& tensors, i64 shards, i64 unit) {
  const i64 share = (bytes_of(tensors) + unit - 1) / unit * unit / shards;
  i64 at = 0, read = 0;
  for (const i64 n : tensors) {
    const i64 end = at + Nf4Extent{n, n}.bytes();
    read += n * ((end - 1) / share - at / share + 1);
    at = end;
  }
  return read;
}

}  // namespace

QuantizedTensors quantized_tensors(const ModelSpec& m) {
  const i64 h = m.hidden_size, q = m.heads * m.head_dim * h, kv = m.kv_heads * m.head_dim * h;
  const auto of_mlp = static_cast<std::size_t>(std::max<i64>(1, m.experts) * (m.swiglu ? 3 : 2));
  QuantizedTensors out;
  (m.experts > 0 ? out.experts : out.dense).assign(of_mlp, m.intermediate_size * h);
  std::vector<i64>& sizes = out.dense;
  sizes.push_back(q);
  if (family_of(m).names.fused_query_key_value.empty())
    sizes.insert(sizes.end(), {q, kv, kv});
  else
    sizes.push_back(q + 2 * kv);
  return out;
}

QuantizedModel quantized_model(const Trial& t) {
  if (none(t)) return {};
  const QuantizedTensors tensors = quantized_tensors(t.spec);
  const i64 layers = t.spec.layers;
  return {layers * (weights_of(tensors.dense) + weights_of(tensors.experts)),
          layers * (bytes_of(tensors.dense) + bytes_of(tensors.experts))};
}

i64 quantized_weights(const Trial& t) {
  return quantized_model(t).weights;
}

i64 weights_read_to_quantize(const Trial& t) {
  const i64 shards = state_split(t).weights, sets = t.dp * t.cp / shards;
  if (none(t) || shards == 1) return sets * quantized_weights(t);
  const i64 unit = kNf4Block / 2 * shards;
  const QuantizedTensors tensors = quantized_tensors(t.spec);
  i64 read = read_by_shards(tensors.dense, shards, unit);
  if (!tensors.experts.empty()) read += read_by_shards(tensors.experts, shards, unit);
  return t.spec.layers * sets * read;
}

std::optional<std::string> quantized_base_objection(const Trial& t) {
  const bool coded = t.weights_file == WeightsFileForm::kQuantized;
  if (coded && none(t))
    return fmt::format(
        "weights_file {} without quantize_base: there are no codes to read; use weights_file plain",
        t.weights_file);
  if (coded && t.weights_load == WeightsLoad::kNone)
    return fmt::format(
        "weights_file {} with weights_load none: no file is read; use weights_load sharded or rank0",
        t.weights_file);
  if (none(t)) return {};
  const auto with = [&](const char* what) {
    return fmt::format("quantize_base {} {}", t.quantize_base, what);
  };
  if (t.lora_rank == 0) return with("without adapters: codes of 4 bits are not trained; set lora_rank");
  if (t.spec.latent())
    return with(
        "with latent attention: its products read weights of 16 bits, and so do shared experts; use "
        "quantize_base none");
  if (parameters_outside(t))
    return with(
        "with parameters outside the device: the codes stay on the device; use offload optimizer or none");
  if (!runs_fused(t.hardware))
    return fmt::format(
        "quantize_base {} on {}: the kernel that makes weights of the codes is compiled for compute "
        "capability 7.5 and newer",
        t.quantize_base, t.hardware);
  return broken_blocks(t);
}

}  // namespace sweep::shape
