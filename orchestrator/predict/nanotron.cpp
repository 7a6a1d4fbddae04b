// nanotron of January 2025. Memory: states of its own types, and what the caching allocator and the communication
// stream make of them; it reports the memory of rank 0, not of the fullest rank. Time: stages split by cost. What its
// cluster was seen to do without a known cause are effects of its profile.
#include <algorithm>
#include <cmath>

#include "bench_kernels/shape/stage_split.h"
#include "orchestrator/predict/time_model.h"

namespace sweep::predict {
namespace {

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
  HeldTensors(const Layout& l, const StageTimes& times, const MemoryParameters& m) : m_(m) {
    if (l.ranks.tp <= 1 || (l.ranks.pp <= 1 && l.seen.slow_collectives)) return;
    const double behind = std::log(times.layer_gpu / times.layer_host);
    if (l.ranks.pp <= 1) {
      full_ = chance(kSteep * (m.held_until - behind)) * (l.batch.micros > 1 ? 4 : 2);
      return;
    }
    const StageTime first = times.of.front();
    const double balance = std::log(later_slowest(times) / std::max(first.gpu, first.host));
    filling_ =
        2 * chance(m.held_offset + m.held_per_tp * std::log(l.ranks.tp) + m.held_per_balance * balance);
    full_ = l.batch.micros > l.ranks.pp ? 4 * chance(kSteep * (behind - m.held_from)) : 0;
    fast_ = 1 - l.seen.slow_messages;
  }
  double of(const StageWork& s) const {
    const double filling = std::min(filling_ * s.layers * s.in_flight, m_.held_filling);
    return fast_ * std::min(filling + full_ * s.layers, m_.held_most);
  }

 private:
  static constexpr double kSteep = 15;  // chosen before the fit: nearly a step
  const MemoryParameters& m_;
  double filling_ = 0, full_ = 0, fast_ = 1;  // tensors of a layer of a stage; share without slow messages
};

// DDP's buckets, which nanotron has without ZeRO: a set of 16-bit gradients.
double bucket_bytes(const Layout& l, const StageWork& s, const ProfileFacts& f) {
  return l.ranks.zero < 1 && l.ranks.dp * l.ranks.cp > 1 ? f.weight_bytes * s.parameters : 0;
}

// 16-bit gradients beside the fp32 ones: buckets; those that find no freed block; and with ZeRO what the
// reduce-scatter of fp32 gradients copies.
double gradient_copies(const Layout& l, const StageWork& s, const TrainerProfile& p) {
  const double ranks = l.ranks.dp * l.ranks.cp;
  const double own = s.parameters / (l.ranks.zero >= 3 ? ranks : 1);
  const double scattered = l.ranks.zero >= 1 && ranks > 1 ? p.facts.gradient_bytes * (1 + 1 / ranks) : 0;
  return bucket_bytes(l, s, p.facts) +
         own * (p.memory.gradient_copies * p.facts.weight_bytes + p.memory.scatter_copies * scattered);
}

MemoryParts parts_of(const Case& c, const StageWork& s, const HeldTensors& held) {
  const Layout& l = c.layout;
  const MemoryParameters& m = c.profile.memory;
  // One tensor holds q, k and v where they are of one width; what is saved of it keeps all of it.
  const double joint =
      l.model.heads == l.model.kv_heads ? 2 * l.types.element * l.model.kv_width / l.ranks.tp : 0;
  const PerToken token = saved_bytes(l, c.profile.facts, joint);
  MemoryParts out = states_and_activations(c, s, trainer_states(l, c.profile.facts), token, l.ranks.tp);
  out.gradient_copies = gradient_copies(l, s, c.profile);
  if (l.passes.recompute && s.layers > 0) out.activations += l.batch.tokens * token.activations;
  out.fragmentation = m.fragmentation * out.activations * (1 - 1 / s.in_flight);
  if (l.ranks.tp <= 1) return out;
  const double whole = l.batch.tokens * l.model.hidden * l.types.element;
  out.gather_buffers = m.gather_buffers * whole;
  out.held = whole * held.of(s);
  return out;
}

// The bytes that the allocator cannot do without when it has given back what it can. The three shares belong
// to the limit: they were chosen with it, by the measured rows that ran and those that failed.
double needed(const Layout& l, const StageWork& s, const MemoryParts& parts, const ProfileFacts& f) {
  const double whole = l.ranks.tp > 1 ? l.batch.tokens * l.model.hidden * l.types.element : 0;
  return parts.live() + bucket_bytes(l, s, f) - (1 - f.need_logits) * parts.logits + f.need_whole * whole +
         f.need_held * parts.held;
}

class NanotronMemory final : public MemoryModel {
 public:
  NanotronMemory() : MemoryModel("nanotron", kNanotron) {}

  bool knows_adapters() const override { return false; }
  MemoryPrediction bytes(const Case& c) const override {
    const HeldTensors held(c.layout, c.times, c.profile.memory);
    MemoryPrediction out;
    for (std::size_t i = 0; i < c.layout.stages.size(); ++i) {
      const StageWork& s = c.layout.stages[i];
      const MemoryParts parts = parts_of(c, s, held);
      count_stage(out, static_cast<i64>(i), parts, needed(c.layout, s, parts, c.profile.facts), false);
    }
    set_limit(out, c);
    return out;
  }
};

class NanotronTime final : public TimeModel {
 public:
  NanotronTime() : TimeModel("nanotron", kNanotron) {}

  void divide(const Trial& t, std::vector<StageWork>& stages) const override {
    thread_local std::vector<shape::CostShare> shares;
    shape::split_by_cost(t.spec, t.pp, shares);
    stages.clear();
    for (const auto& s : shares)
      stages.push_back({real(s.layers), 0, 1, s.embedding, s.head, s.loss, s.empty()});
  }
  double head_share(const TimeParameters&) const override { return 1; }
};

}  // namespace

const MemoryModel& nanotron_memory() {
  static const NanotronMemory model;
  return model;
}

const TimeModel& nanotron_time() {
  static const NanotronTime model;
  return model;
}

}  // namespace sweep::predict
