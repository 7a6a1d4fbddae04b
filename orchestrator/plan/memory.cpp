#include "orchestrator/plan/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "bench_kernels/shape/count.h"
#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/schedule_check.h"
#include "bench_kernels/shape/splits.h"
#include "bench_kernels/shape/stage_split.h"

namespace sweep::plan {
namespace {

// Numbers one layer saves for its backward per token, without attention scores; split by what tp divides.
// After Korthikanti et al. 2022 (arXiv 2205.05198, section 4.1), without dropout and with the MLP of the
// family: norm inputs and outputs; q, k, v; the attention output; MLP: gate, up, silu(gate), product, or one
// in and one out.
struct LayerNumbers {
  double whole = 0, split = 0;
};
LayerNumbers layer_numbers(const Trial& t) {
  const ModelSpec& m = t.spec;
  const double qkv =
      real(m.head_dim) * real(m.heads + 2 * std::max(m.kv_heads, t.tp));  // a rank has one at least
  const double out = real(m.head_dim) * real(m.heads);
  return {4 * real(m.hidden_size), qkv + out + (m.swiglu ? 4 : 2) * real(m.intermediate_size)};
}

// Bytes the attention of one layer saves per token beyond q, k, v: the softmax of every pair, or one fp32
// log-sum-exp per head where the kernel recomputes it (Dao et al. 2022).
double score_bytes(const Trial& t) {
  if (t.attention == "math" && t.recompute == "none")
    return real(t.spec.heads) * real(t.seq_len) * element_bytes(t.precision);
  return 4 * real(t.spec.heads);
}

double activation_bytes(const Trial& t) {
  const ModelSpec& m = t.spec;
  const double e = element_bytes(t.precision), tp = real(t.tp);
  const double tokens = real(t.micro_batch_size) * real(t.seq_len) / real(t.cp);
  const LayerNumbers n = layer_numbers(t);
  const double layer = e * (n.whole + n.split / tp) + score_bytes(t) / tp;
  const double stage_layers = real(shape::most_layers_of_a_rank(t));
  const double in_flight = shape::peak_in_flight(shape::Pipeline::of(t), 0);  // the first stage holds most
  const double every =
      real(t.recompute_every);  // layers that share one kept input, and are all there in backward
  double kept = layer * stage_layers * in_flight;
  if (t.recompute == "full")
    kept = e * real(m.hidden_size) * stage_layers / every * in_flight + layer * every;
  if (t.activation_offload) kept = 2 * layer;  // of the layer at work, and of the one on its way
  // Logits, their log-softmax in fp32 and their gradient; a stage that holds them holds no other stage's
  // extra.
  const double logits = (2 * e + 4) * real(shape::padded_vocab(t)) / tp;
  return tokens * (kept + logits);
}

// Rows of the token tables beyond the vocabulary: no parameters of the model, but allocated.
i64 padding_parameters(const Trial& t) {
  const i64 tables = t.spec.tie_embeddings ? 1 : 2;
  return tables * (shape::padded_vocab(t) - t.spec.vocab_size) * t.spec.hidden_size;
}

}  // namespace

double element_bytes(const std::string& precision) {
  if (precision == "fp32") return 4;
  return 2;
}

MemoryEstimate estimate_memory(const Trial& t) {
  MemoryEstimate bytes;
  // The average stage: the fullest has at least that.
  const double experts = real(shape::expert_parameter_count(t.spec)) / (real(t.tp) * real(t.pp));
  const double dense =
      real(shape::parameter_count(t.spec) + padding_parameters(t)) / (real(t.tp) * real(t.pp)) - experts;
  const shape::StateBytes of_dense = shape::state_bytes(t), of_expert = shape::expert_state_bytes(t);
  bytes.weights = of_dense.weights * dense + of_expert.weights * experts;
  bytes.gradients = of_dense.gradients * dense + of_expert.gradients * experts;
  bytes.optimizer = of_dense.optimizer * dense + of_expert.optimizer * experts;
  bytes.activations = activation_bytes(t);
  return bytes;
}

std::optional<double> memory_budget(const Trial& t, const shape::Hardware& h) {
  constexpr double kUsable = 0.95;
  if (t.memory_cap_bytes) return real(*t.memory_cap_bytes);
  if (h.memory_bytes) return kUsable * real(*h.memory_bytes);
  return std::nullopt;
}

std::string memory_sentence(const MemoryEstimate& m, double budget) {
  return fmt::format(
      "needs {} per rank (weights {}, gradients {}, optimizer {}, activations {}), budget {}; "
      "the model states alone exceed it",
      human_bytes(m.total()), human_bytes(m.weights), human_bytes(m.gradients), human_bytes(m.optimizer),
      human_bytes(m.activations), human_bytes(budget));
}

}  // namespace sweep::plan
