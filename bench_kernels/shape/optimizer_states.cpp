#include "bench_kernels/shape/optimizer_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

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
  if (t.lora_rank > 0)
    return "optimizer adafactor with lora_rank: adapters' states are small; use another optimizer.";
  if (t.offload == Offload::kDisk || t.offload == Offload::kDiskParameters)
    return "optimizer adafactor with its state in a file (offload disk, disk_parameters): its state is a "
           "number for each row and column; use "
           "offload optimizer or none.";
  return {};
}

struct Matrix {
  i64 rows, columns;
};
// Matrices of one layer's attention whose keys and values come from latents.
std::vector<Matrix> latent_matrices(const ModelSpec& m) {
  const i64 query = m.heads * m.head_dim, values = m.heads * m.v_head_dim;
  std::vector<Matrix> all{{query, m.q_lora_rank > 0 ? m.q_lora_rank : m.hidden_size},
                          {m.kv_lora_rank + m.rope_head_dim, m.hidden_size},
                          {m.heads * (m.head_dim - m.rope_head_dim) + values, m.kv_lora_rank},
                          {m.hidden_size, values}};
  if (m.q_lora_rank > 0) all.push_back({m.q_lora_rank, m.hidden_size});
  return all;
}

// Rows and columns of the matrices of one layer's attention, and its biases and norms of heads and latents.
i64 attention_numbers(const ModelSpec& m) {
  const i64 hidden = m.hidden_size, query = m.heads * m.head_dim, key_value = m.kv_heads * m.head_dim;
  i64 sum = (family_of(m).qk_norm ? 2 * m.head_dim : 0) + m.kv_lora_rank + m.q_lora_rank;
  if (m.latent()) {
    for (const Matrix& each : latent_matrices(m)) sum += each.rows + each.columns;
    return sum;
  }
  const bool joined = family_of(m).names.transposed;  // query, key and value are one matrix
  sum +=
      hidden + query + (joined ? query + 2 * key_value + hidden : query + hidden + 2 * (key_value + hidden));
  return sum + (m.attention_bias ? query + 2 * key_value : 0);
}

// Elements; the token table where it is among tensors of that size.
double largest_matrix(const Trial& t, double largest_tensor) {
  const ModelSpec& m = t.spec;
  const i64 heads = family_of(m).names.transposed ? m.heads + 2 * m.kv_heads : m.heads;
  const i64 width = std::max({m.intermediate_size, m.dense_intermediate_size, m.shared_width()});
  i64 largest = m.hidden_size * std::max(width, m.latent() ? 0 : heads * m.head_dim);
  if (m.latent())
    for (const Matrix& each : latent_matrices(m)) largest = std::max(largest, each.rows * each.columns);
  const auto in_layer = static_cast<double>(largest);
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

double factored_numbers(const Trial& t, const StageShare& part) {
  const ModelSpec& m = t.spec;
  const i64 hidden = m.hidden_size;
  const auto matrix = [](i64 rows, i64 columns) { return rows + columns; };
  const i64 norm = (m.rmsnorm ? 1 : 2) * hidden, matrices_in = m.swiglu ? 2 : 1;
  const auto mlp = [&](i64 width) { return (matrices_in + 1) * matrix(width, hidden); };
  i64 each = (family_of(m).post_norms() ? 4 : 2) * norm + attention_numbers(m);
  const i64 of_mlp = hidden + matrices_in * m.intermediate_size;
  if (m.linear_bias) each += hidden + (m.experts > 0 ? m.experts / t.ep * of_mlp + m.experts : of_mlp);
  each += family_of(m).sinks() ? m.heads : 0;
  i64 sum = part.layers * each;
  if (m.experts > 0) {
    const i64 shared = m.shared_experts > 0 ? mlp(m.shared_width()) : 0;
    const i64 experts = m.experts / t.ep * mlp(m.intermediate_size) + matrix(m.experts, hidden) + shared;
    sum += (part.layers - part.dense_layers) * experts + part.dense_layers * mlp(m.dense_intermediate_size);
  } else {
    sum += part.layers * mlp(m.intermediate_size);
  }
  const i64 table = matrix(m.vocab_size, hidden);
  if (part.embedding) sum += table + (m.rope ? 0 : matrix(m.max_positions, hidden));
  if (part.head) sum += norm + (m.tie_embeddings && part.embedding ? 0 : table);
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

double update_bytes(const Trial& t, double elements, double largest, bool by_kernel) {
  if (t.offload != Offload::kNone || by_kernel) return 0;
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
  if (moments_of(t.optimizer) == 0 && !state_types(t).master && t.offload != Offload::kNone &&
      t.offload != Offload::kParameters)
    return fmt::format(
        "offload {} with optimizer {}: it keeps no state that could lie outside the device; use offload none "
        "or parameters, or a precision with fp32 masters.",
        t.offload, t.optimizer);
  return {};
}

}  // namespace sweep::shape
