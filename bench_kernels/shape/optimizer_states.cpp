#include "bench_kernels/shape/optimizer_states.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench_kernels/shape/family.h"
#include "bench_kernels/shape/found_gpu.h"

namespace sweep::shape {
namespace {

// Its statistics are those of whole rows and columns.
std::optional<std::string> adafactor_objection(const Trial& t) {
  if (t.tp > 1)
    return fmt::format(
        "optimizer adafactor with tp {}: a rank has some of the rows or columns of a matrix, and their mean "
        "squares are of the whole; use tp 1.",
        t.tp);
  if (t.zero > 0 && t.dp_shard.value_or(t.dp) * t.cp > 1)
    return fmt::format(
        "optimizer adafactor with zero {} over {} ranks: shards are cut anywhere in a row, and its state is "
        "of whole rows and columns; use zero 0.",
        t.zero, t.dp_shard.value_or(t.dp) * t.cp);
  if (t.spec.latent())
    return "optimizer adafactor with latent attention: its state is counted by matrices that other families have; "
           "use another optimizer.";
  if (t.lora_rank > 0)
    return "optimizer adafactor with lora_rank: adapters' states are small; use another optimizer.";
  if (t.offload == Offload::kDisk)
    return "optimizer adafactor with offload disk: its state is a number for each row and column; use "
           "offload optimizer or none.";
  return {};
}

// Elements; the token table where it is among tensors of that size.
double largest_matrix(const Trial& t, double largest_tensor) {
  const ModelSpec& m = t.spec;
  const i64 heads = family_of(m).names.transposed ? m.heads + 2 * m.kv_heads : m.heads;
  const double in_layer =
      static_cast<double>(m.hidden_size * std::max(m.intermediate_size, heads * m.head_dim));
  const double table = static_cast<double>(m.vocab_size * m.hidden_size);
  return largest_tensor >= table ? std::max(in_layer, table) : in_layer;
}

}  // namespace

i64 moments_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return 0;
    case OptimizerKind::kSgdMomentum:
      return 1;
    default:
      return 2;
  }
}

i64 moment_bytes(OptimizerKind kind, const StateTypes& types, i64 elements) {
  if (kind == OptimizerKind::kPagedAdamw || kind == OptimizerKind::kAdafactor) return 0;
  if (kind != OptimizerKind::kAdamw8bit) return moments_of(kind) * bytes_of(types.moments) * elements;
  if (elements < kLeastEightBit) return 2 * 4 * elements;
  return 2 * (elements + 4 * ((elements + kEightBitBlock - 1) / kEightBitBlock));
}

double factored_numbers(const Trial& t, i64 layers, bool embedding, bool head) {
  const ModelSpec& m = t.spec;
  const i64 hidden = m.hidden_size, query = m.heads * m.head_dim, key_value = m.kv_heads * m.head_dim;
  const auto matrix = [](i64 rows, i64 columns) { return rows + columns; };
  const i64 norm = (m.rmsnorm ? 1 : 2) * hidden, rows_in = (m.swiglu ? 2 : 1) * m.intermediate_size;
  const bool joined = family_of(m).names.transposed;  // query, key and value are one matrix
  i64 layer = 2 * norm + (family_of(m).qk_norm ? 2 * m.head_dim : 0) + matrix(hidden, query);
  layer +=
      joined ? matrix(query + 2 * key_value, hidden) : matrix(query, hidden) + 2 * matrix(key_value, hidden);
  if (m.attention_bias) layer += query + 2 * key_value;
  if (m.linear_bias) layer += 2 * hidden + rows_in;
  const i64 mlp =
      (m.swiglu ? 2 : 1) * matrix(m.intermediate_size, hidden) + matrix(hidden, m.intermediate_size);
  layer += m.experts > 0 ? m.experts / t.ep * mlp + matrix(m.experts, hidden) : mlp;
  const i64 table = matrix(m.vocab_size, hidden);
  i64 sum = layers * layer;
  if (embedding) sum += table + (m.rope ? 0 : matrix(m.max_positions, hidden));
  if (head) sum += norm + (m.tie_embeddings && embedding ? 0 : table);
  return static_cast<double>(sum);
}

i64 factored_bytes(const Trial& t, i64 numbers) {
  if (t.offload != Offload::kNone || t.optimizer != OptimizerKind::kAdafactor) return 0;
  return bytes_of(state_types(t).moments) * numbers;
}

i64 optimizer_bytes(const Trial& t, i64 elements) {
  if (t.offload != Offload::kNone) return 0;
  const StateTypes types = state_types(t);
  return moment_bytes(t.optimizer, types, elements) + (types.master ? 4 * elements : 0);
}

double update_bytes(const Trial& t, double elements, double largest) {
  if (t.offload != Offload::kNone) return 0;
  const StateTypes types = state_types(t);
  const auto width = static_cast<double>(bytes_of(types.moments)), page = static_cast<double>(kPage);
  const bool copies = bytes_of(types.gradients) != (types.master ? 4 : bytes_of(types.weights));
  const double copy = copies ? width * largest : 0;
  switch (t.optimizer) {
    case OptimizerKind::kForeach:
      return copy + width * (copies ? largest : elements);
    case OptimizerKind::kPlain:
      return copy + width * largest;
    case OptimizerKind::
        kPagedAdamw: {  // two moments of the page that is updated, and of one that comes or goes
      const double pages = elements > std::min(page, largest) ? 2 : 1;
      return copy + 2 * width * pages * std::min(page, largest);
    }
    case OptimizerKind::kAdafactor:
      return copy + width * std::min(largest, largest_matrix(t, largest));
    default:
      return copy;
  }
}

double moment_bytes_each(OptimizerKind kind, const StateTypes& types) {
  if (kind == OptimizerKind::kAdamw8bit) return 2 * (1 + 4.0 / static_cast<double>(kEightBitBlock));
  if (kind == OptimizerKind::kPagedAdamw || kind == OptimizerKind::kAdafactor) return 0;
  return static_cast<double>(moments_of(kind) * bytes_of(types.moments));
}

std::optional<std::string> optimizer_objection(const Trial& t) {
  if (t.optimizer == OptimizerKind::kPagedAdamw && t.offload != Offload::kNone)
    return fmt::format(
        "offload {} with optimizer paged_adamw: its moments are in host memory already, and come to the "
        "device for their update; use offload none, or optimizer fused, which is updated where its state is.",
        t.offload);
  if (t.optimizer == OptimizerKind::kAdafactor) return adafactor_objection(t);
  if (t.optimizer == OptimizerKind::kAdamw8bit && t.offload == Offload::kNone && !runs_fused(t.hardware))
    return fmt::format(
        "optimizer adamw_8bit on {}: its kernel is compiled for compute capability 7.5 and newer; use "
        "another optimizer, or offload optimizer, which updates on the host.",
        t.hardware);
  if (moments_of(t.optimizer) == 0 && !state_types(t).master &&
      (t.offload == Offload::kOptimizer || t.offload == Offload::kDisk))
    return fmt::format(
        "offload {} with optimizer {}: it keeps no state that could lie outside the device; use offload none "
        "or parameters, or a precision with fp32 masters.",
        t.offload, t.optimizer);
  return {};
}

}  // namespace sweep::shape
