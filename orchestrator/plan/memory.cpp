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

// Bytes one layer saves for its backward, of one micro-batch on one rank: the step's own kernels, as its dry run counts
// them. Four tensors of hidden_size (norm inputs and outputs, divided over tp with sequence parallelism), the output of
// attention, q, k and v, and the MLP's gate and up (the product is made again); one log-sum-exp per head. Of experts those
// of a token's choices, which are sent and received too.
class LayerBytes {
 public:
  explicit LayerBytes(const Trial& t)
      : t_(t),
        e_(element_bytes(t.precision)),
        tp_(real(t.tp)),
        tokens_(real(t.micro_batch_size) * real(t.seq_len) / real(t.cp)) {}

  double hidden() const { return e_ * tokens_ * real(t_.spec.hidden_size) / (t_.sp ? tp_ : 1); }
  double wide() const {
    const double choices = t_.spec.experts > 0 ? real(t_.spec.experts_per_token) : 1;
    return e_ * tokens_ * choices * (t_.spec.swiglu ? 2 : 1) * real(t_.spec.intermediate_size) / tp_;
  }
  double all() const {
    const ModelSpec& m = t_.spec;
    const double out = real(m.head_dim) * real(m.heads);
    const double qkv =
        real(m.head_dim) * real(m.heads + 2 * std::max(m.kv_heads, t_.tp));  // a rank has one at least
    const double sent =
        m.experts > 0 ? 2 * real(m.experts_per_token) * e_ * tokens_ * real(m.hidden_size) : 0;
    const bool keeps_attention = t_.recompute != Recompute::kSelective;
    return 4 * hidden() + e_ * tokens_ * (qkv + (keeps_attention ? out : 0)) / tp_ + wide() + sent +
           (keeps_attention ? scores() : 0);
  }
  double kept() const {
    return t_.recompute == Recompute::kFull ? hidden() / real(t_.recompute_every) : all();
  }
  // What exists only while one layer's backward is at work.
  double at_work() const {
    constexpr double kWide = 7, kHidden = 2;  // tensors of that size, counted by the dry run
    const double again = t_.recompute == Recompute::kFull ? all() * real(t_.recompute_every) : 0;
    return kWide * wide() + kHidden * hidden() + again;
  }
  // As computed, kept for the backward; and twice in fp32 for the loss.
  double logits() const { return e_ * tokens_ * real(shape::padded_vocab(t_)) / tp_; }
  double loss() const { return 8 / e_ * logits(); }

 private:
  // Beyond q, k, v: the softmax of every pair, or one fp32 log-sum-exp per head where the kernel computes it again
  // (Dao et al. 2022).
  double scores() const {
    const double heads = tokens_ * real(t_.spec.heads) / tp_;
    if (t_.attention == AttentionKind::kMath && t_.recompute == Recompute::kNone)
      return heads * real(t_.seq_len) * e_;
    return 4 * heads;
  }

  const Trial& t_;
  double e_, tp_, tokens_;
};

// What a rank of the pipeline holds: layers, and tables of the vocabulary.
struct Held {
  double layers = 0, parameters = 0, experts = 0;
  bool embedding = false, head = false;
};

// Parameters as differences of models, so that what a layer holds is written once (shape/count.h).
Held held_by(const Trial& t, const shape::StageShare& share) {
  ModelSpec none = t.spec, one = t.spec;
  none.layers = 0, one.layers = 1;
  const double layer = real(shape::parameter_count(one) - shape::parameter_count(none));
  const double experts = real(shape::expert_parameter_count(one));
  const double table = real(shape::padded_vocab(t) * t.spec.hidden_size);
  const double tables =
      share.embedding && share.head && t.spec.tie_embeddings ? 1 : share.embedding + share.head;
  const double rest = real(shape::parameter_count(none)) -
                      real((t.spec.tie_embeddings ? 1 : 2) * t.spec.vocab_size * t.spec.hidden_size);
  Held out;
  out.layers = real(share.layers), out.embedding = share.embedding, out.head = share.head;
  out.experts = out.layers * experts / real(t.tp);
  out.parameters = (out.layers * (layer - experts) + tables * table + (share.head ? rest : 0)) / real(t.tp);
  return out;
}

// Gathered or cast copies and whole gradients, there only while they are used: of the head, or of one layer.
double copies(const Trial& t, const Held& held, bool of_head) {
  const shape::StateTypes types = shape::state_types(t);
  const double compute = real(shape::bytes_of(types.compute)),
               gradient = real(shape::bytes_of(types.gradients));
  const double head = held.head ? real(shape::padded_vocab(t) * t.spec.hidden_size) / real(t.tp) : 0;
  const double layer = held.layers > 0 ? held.parameters / held.layers : 0;
  const double tables = head / std::max(held.layers, 1.0);  // of the head's share in `layer`
  const double experts = held.layers > 0 ? held.experts / held.layers / real(t.ep) : 0;
  double out = 0;
  if (experts > 0 && (t.zero >= 3 || types.casts()))
    out += compute * experts * (t.zero >= 3 ? 2 : 1);  // one ahead
  if (experts > 0 && t.zero >= 2) out += gradient * experts;
  if (t.zero >= 3 || types.casts()) out += compute * (head + std::max(0.0, layer - 2 * tables));
  if (t.zero >= 2) out += gradient * (of_head ? head : std::max(0.0, layer - 2 * tables));
  return out;
}

MemoryEstimate of_stage(const Trial& t, const Held& held, double in_flight) {
  const shape::StateBytes of_dense = shape::state_bytes(t), of_expert = shape::expert_state_bytes(t);
  const LayerBytes layer(t);
  MemoryEstimate bytes;
  bytes.weights = of_dense.weights * held.parameters + of_expert.weights * held.experts;
  bytes.gradients = of_dense.gradients * held.parameters + of_expert.gradients * held.experts;
  bytes.optimizer = of_dense.optimizer * held.parameters + of_expert.optimizer * held.experts;
  bytes.activations = held.layers * in_flight * layer.kept() + 2 * layer.hidden();
  if (t.activation_offload) bytes.activations = 2 * layer.all();  // at work, and on its way
  if (held.head) bytes.activations += (in_flight - 1) * layer.logits();
  const double loss = held.head ? layer.logits() + layer.loss() + copies(t, held, true) : 0;
  bytes.temporary = std::max(loss, layer.at_work() + copies(t, held, false));
  // The table's gradient is made when the layers' activations of that micro-batch are gone.
  const double table =
      element_bytes(t.precision) * real(shape::padded_vocab(t) * t.spec.hidden_size) / real(t.tp);
  if (held.embedding) bytes.temporary = std::max(bytes.temporary, table - held.layers * layer.kept());
  return bytes;
}

}  // namespace

double element_bytes(Precision precision) {
  if (precision == Precision::kFp32) return 4;
  return 2;
}

MemoryEstimate estimate_memory(const Trial& t) {
  const auto pipeline = shape::Pipeline::of(t);
  MemoryEstimate most;
  // With several chunks a rank holds several stages; the average rank has at least that.
  if (t.vpp > 1) {
    Held held = held_by(t, {0, t.spec.layers, true, true});
    held.parameters /= real(t.pp), held.experts /= real(t.pp),
        held.layers = real(shape::most_layers_of_a_rank(t));
    return of_stage(t, held, shape::peak_in_flight(pipeline, 0));
  }
  const auto stages = shape::split_stages(t.spec, t.pp, t.seq_len);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const double in_flight = t.pp > 1 ? shape::peak_in_flight(pipeline, static_cast<i64>(i)) : 1;
    const MemoryEstimate bytes = of_stage(t, held_by(t, stages[i]), in_flight);
    if (bytes.total() > most.total()) most = bytes;
  }
  return most;
}

std::optional<double> memory_budget(const Trial& t, const shape::Hardware& h) {
  constexpr double kUsable = 0.95;
  if (t.memory_cap_bytes) return real(*t.memory_cap_bytes);
  if (h.memory_bytes) return kUsable * real(*h.memory_bytes);
  return std::nullopt;
}

std::string memory_sentence(const MemoryEstimate& m, double budget) {
  return fmt::format(
      "needs {} per rank (weights {}, gradients {}, optimizer {}, activations {}, temporary {}), budget {}; "
      "the model states alone exceed it",
      human_bytes(m.total()), human_bytes(m.weights), human_bytes(m.gradients), human_bytes(m.optimizer),
      human_bytes(m.activations), human_bytes(m.temporary), human_bytes(budget));
}

}  // namespace sweep::plan
