#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "orchestrator/predict/predict.h"

namespace sweep::predict {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

double chance(double log_odds) {
  return 1 / (1 + std::exp(-std::clamp(log_odds, -40.0, 40.0)));
}

double later_slowest(const StageTimes& times) {
  double slowest = 0;
  for (std::size_t i = 1; i < times.of.size(); ++i)
    slowest = std::max(slowest, std::max(times.of[i].gpu, times.of[i].host));
  return slowest;
}

// Whole-sequence tensors that were freed and wait for the communication stream. Without a pipeline: those of
// a micro-batch's forward and of the backward before it. On a pipeline's stage: those of the forwards that fill
// it, where the GPU waits for slower later stages; and, while it is full, those of a forward and a backward
// where the GPU is slower than the host. Slow messages let the GPU catch up.
class HeldTensors {
 public:
  HeldTensors(const Layout& l, const StageTimes& times, const MemoryParameters& m) : l_(l), m_(m) {
    if (l.tp <= 1 || slow_collectives(l)) return;
    const double behind = std::log(times.layer_gpu / times.layer_host);
    if (l.pp <= 1) {
      full_ = chance(kSteep * (m.held_until - behind)) * (l.micros > 1 ? 4 : 2);
      return;
    }
    const StageTime first = times.of.front();
    const double balance = std::log(later_slowest(times) / std::max(first.gpu, first.host));
    filling_ = 2 * chance(m.held_offset + m.held_per_tp * std::log(l.tp) + m.held_per_balance * balance);
    full_ = l.micros > l.pp ? 4 * chance(kSteep * (behind - m.held_from)) : 0;
    fast_ = 1 - slow_share(l);
  }
  double of(const StageWork& s) const {
    const double filling = std::min(filling_ * s.layers * s.in_flight, m_.held_filling);
    return fast_ * std::min(filling + full_ * s.layers, m_.held_most);
  }

 private:
  static constexpr double kSteep = 15;
  const Layout& l_;
  const MemoryParameters& m_;
  double filling_ = 0, full_ = 0, fast_ = 1;  // per layer of a stage; share without slow messages
};

struct PerToken {
  double activations = 0, kept = 0;  // bytes of a layer in flight; the same where it is computed again
};
PerToken saved_bytes(const Layout& l, const ProfileFacts& f) {
  const double hidden = l.element * l.hidden / l.tp;
  const double statistics = 4 * l.heads / l.tp;
  // q, k, v and the output of attention are four of the tensors of hidden_size; k and v have their own width.
  const double attention = l.element * (2 * l.width + 2 * l.kv_width) / l.tp;
  // One tensor holds q, k and v; what is saved of it keeps all of it.
  const double joint = f.joint_qkv && l.heads == l.kv_heads ? 2 * l.element * l.kv_width / l.tp : 0;
  PerToken out;
  out.activations = (f.hidden_saved - 4) * hidden + attention + joint +
                    f.intermediate_saved * l.element * l.intermediate * l.top_k / l.tp + statistics +
                    f.score_bytes * l.sequence * l.heads / l.tp;
  out.kept = l.recompute ? hidden : out.activations;
  return out;
}

// Bytes per parameter on one rank.
shape::StateBytes states_of(const Layout& l, const ProfileFacts& f) {
  const double sharers = l.dp * l.cp;
  if (f.eager) {
    shape::StateBytes out = l.states;
    if (l.zero == 2) out.weights /= sharers;  // FSDP2 shards what it keeps gathered
    return out;
  }
  return {(l.is_fp32 ? 4 : f.weight_bytes) / (l.zero >= 3 ? sharers : 1),
          (l.is_fp32 ? 4 : f.gradient_bytes) / (l.zero >= 2 ? sharers : 1),
          (l.is_fp32 ? 8 : f.optimizer_bytes) / (l.zero >= 1 ? sharers : 1)};
}

MemoryParts states_and_activations(const Layout& l, const StageWork& s, const TrainerProfile& p) {
  const ProfileFacts& f = p.facts;
  const shape::StateBytes states = states_of(l, f);
  MemoryParts out;
  out.base = p.memory.base_gib * kGiB;
  out.weights = states.weights * s.parameters;
  out.gradients = states.gradients * s.parameters;
  out.optimizer = states.optimizer * s.parameters;
  out.activations = l.tokens * s.layers * s.in_flight * saved_bytes(l, f).kept;
  out.logits = s.loss ? f.logit_bytes * l.tokens * l.vocab / (f.whole_logits ? 1 : l.tp) : 0;
  return out;
}

// DDP's buckets, which nanotron has without ZeRO: a set of 16-bit gradients.
double bucket_bytes(const Layout& l, const StageWork& s, const ProfileFacts& f) {
  return l.zero < 1 && l.dp * l.cp > 1 ? f.weight_bytes * s.parameters : 0;
}

// 16-bit gradients beside the fp32 ones: buckets; those that find no freed block; and with ZeRO what the
// reduce-scatter of fp32 gradients copies.
double gradient_copies(const Layout& l, const StageWork& s, const TrainerProfile& p) {
  const double ranks = l.dp * l.cp;
  const double own = s.parameters / (l.zero >= 3 ? ranks : 1);
  const double scattered = l.zero >= 1 && ranks > 1 ? p.facts.gradient_bytes * (1 + 1 / ranks) : 0;
  return bucket_bytes(l, s, p.facts) +
         own * (p.memory.gradient_copies * p.facts.weight_bytes + p.memory.scatter_copies * scattered);
}

MemoryParts parts_of(const Layout& l, const StageWork& s, const TrainerProfile& p, const HeldTensors& held) {
  const MemoryParameters& m = p.memory;
  MemoryParts out = states_and_activations(l, s, p);
  out.gradient_copies = gradient_copies(l, s, p);
  if (l.recompute && s.layers > 0) out.activations += l.tokens * saved_bytes(l, p.facts).activations;
  out.fragmentation = m.fragmentation * out.activations * (1 - 1 / s.in_flight);
  if (l.tp <= 1) return out;
  const double whole = l.tokens * l.hidden * l.element;
  out.gather_buffers = m.gather_buffers * whole;
  out.held = whole * held.of(s);
  return out;
}

// Weights that compute, where what is kept is sharded or of another type: of the unit at work, `ahead`
// fetched before it; all of a stage where FSDP2 keeps them until the backward (ZeRO 2), or as autocast does.
double gathered_weights(const Layout& l, const StageWork& s, bool at_loss, double ahead) {
  if (l.zero < 2 || l.dp * l.cp <= 1) return l.casts ? l.element * s.parameters : 0;
  if (l.zero < 3) return l.element * s.parameters;
  const double layer = l.layer_parameters / l.tp, table = l.vocab * l.hidden / l.tp;
  return l.element * (at_loss && s.loss ? table : (1 + ahead) * layer);
}

// Eager PyTorch at the fullest of four moments of a step: the loss's backward, the last layer's, the end of
// the backward, the update.
MemoryParts eager_parts(const Layout& l, const StageWork& s, const TrainerProfile& p) {
  const ProfileFacts& f = p.facts;
  const double hidden = l.tokens * l.element * l.hidden / l.tp, token = saved_bytes(l, f).activations;
  const MemoryParts whole = states_and_activations(l, s, p);
  const double gradients = whole.gradients;
  MemoryParts loss = whole;
  loss.gradients = l.micros > 1 || f.keeps_gradients ? gradients : 0;
  if (s.loss) loss.activations += 2 * hidden;  // the last norm's input and result
  loss.gather_buffers = gathered_weights(l, s, true, 0);
  MemoryParts layer = whole;
  layer.logits = 0, layer.gradients = loss.gradients;
  // Gradients of the MLP's three wide tensors and of the residual stream; of a layer's weights, on their way.
  const double passing = l.tokens * 3 * l.element * l.intermediate * l.top_k / l.tp + 2 * hidden;
  const double under_way = l.zero >= 2 ? (l.casts ? 4 : l.element) * l.layer_parameters / l.tp : 0;
  layer.activations += passing + (l.recompute ? l.tokens * token : 0);
  layer.gather_buffers = gathered_weights(l, s, false, 1) + under_way;
  MemoryParts end = layer;
  end.gradients = gradients;
  end.activations = l.tokens * token * std::max(1.0, s.in_flight - 1) + passing;
  MemoryParts update = whole;
  update.gradients = gradients, update.activations = update.logits = 0;
  update.gather_buffers = f.update_bytes * s.parameters * l.states.optimizer / 8;
  MemoryParts most = loss;
  for (const MemoryParts& moment : {layer, end, update})
    if (moment.reserved() > most.reserved()) most = moment;
  most.fragmentation = p.memory.fragmentation * (most.activations + most.logits);
  return most;
}

// What the allocator cannot do without when it has given back what it can. The three shares belong to the
// limit: they were chosen with it, by the measured rows that ran and those that failed.
double needed(const Layout& l, const StageWork& s, const MemoryParts& parts, const ProfileFacts& f) {
  if (f.eager) return parts.reserved() - parts.fragmentation;
  const double whole = l.tp > 1 ? l.tokens * l.hidden * l.element : 0;
  return parts.live() + bucket_bytes(l, s, f) - (1 - f.need_logits) * parts.logits + f.need_whole * whole +
         f.need_held * parts.held;
}

}  // namespace

MemoryPrediction predict_memory(const Layout& l, const StageTimes& times, const TrainerProfile& p,
                                const shape::Hardware& h) {
  const bool eager = p.facts.eager;
  const HeldTensors held(l, times, p.memory);
  MemoryPrediction out;
  double most = -1;
  for (std::size_t i = 0; i < l.stages.size(); ++i) {
    const MemoryParts parts = eager ? eager_parts(l, l.stages[i], p) : parts_of(l, l.stages[i], p, held);
    const double reserved = parts.reserved();
    out.need = std::max(out.need, needed(l, l.stages[i], parts, p.facts));
    if (i == 0 || (!p.facts.reports_first_stage && reserved > most)) out.parts = parts;
    if (reserved > most) most = reserved, out.fullest_stage = static_cast<i64>(i);
  }
  out.wanted = most, out.reserved = out.parts.reserved();
  if (!h.memory_bytes) return out;
  const double device = static_cast<double>(*h.memory_bytes);
  out.limit = p.facts.need_share * device;
  if (out.need <= out.limit) out.reserved = std::min(out.reserved, p.facts.reserved_share * device);
  return out;
}

std::optional<Refusal> refusal(const Layout& l, const TrainerProfile& p) {
  const ProfileFacts& f = p.facts;
  for (std::size_t i = 0; i < l.stages.size(); ++i)
    if (l.stages[i].empty)
      return Refusal{
          "empty_stage",
          fmt::format("pp {} leaves stage {} of the pipeline without a block of the model", l.pp, i)};
  if (f.warmup_needs_micros && l.micros < l.pp - 1)
    return Refusal{"pipeline",
                   fmt::format("1f1b needs pp - 1 = {} micro-batches, grad_accum is {}", l.pp - 1, l.micros)};
  if (f.tied_zero0_hangs && l.tied && l.zero < 1 && l.dp > 1 && l.dp < 32 && l.pp > 1 && l.nodes > 1)
    return Refusal{"tied_hang",
                   "tied embeddings with zero 0, several replicas and a pipeline over several nodes: 37 of "
                   "39 measured ones failed"};
  const auto divides = [](double n, double d) { return std::fmod(n, d) == 0; };
  if (!divides(l.heads, l.tp))
    return Refusal{"divisibility", fmt::format("{} heads are not divisible by tp {}", l.heads, l.tp)};
  if (!divides(l.kv_heads, l.tp))
    return Refusal{"divisibility",
                   fmt::format("{} key-value heads are not divisible by tp {}", l.kv_heads, l.tp)};
  if (!divides(l.vocab, l.tp))
    return Refusal{"divisibility", fmt::format("vocabulary {} is not divisible by tp {}", l.vocab, l.tp)};
  return std::nullopt;
}

}  // namespace sweep::predict
