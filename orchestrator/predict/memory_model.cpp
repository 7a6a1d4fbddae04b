#include "orchestrator/predict/memory_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace sweep::predict {

std::optional<Refusal> MemoryModel::refusal(const Trial& t, const Layout& l, StepRules) const {
  if (t.lora_rank > 0)
    return Refusal{"adapters",
                   fmt::format("lora_rank {}: profiles of trainers know full training alone", t.lora_rank)};
  for (std::size_t i = 0; i < l.stages.size(); ++i)
    if (l.stages[i].empty)
      return Refusal{
          "empty_stage",
          fmt::format("pp {} leaves stage {} of the pipeline without a block of the model", l.pp, i)};
  if (auto own = own_refusal(l)) return own;
  for (const auto& [count, what] : {std::pair(l.heads, "heads"), std::pair(l.kv_heads, "key-value heads")})
    if (std::fmod(count, l.tp) != 0)
      return Refusal{"divisibility", fmt::format("{} {} are not divisible by tp {}", count, what, l.tp)};
  if (std::fmod(l.vocab, l.tp) != 0)
    return Refusal{"divisibility", fmt::format("vocabulary {} is not divisible by tp {}", l.vocab, l.tp)};
  return std::nullopt;
}

double Uncertainty::*MemoryModel::spread(const Layout& l) const {
  return l.tp > 1 ? &Uncertainty::memory_tensor : &Uncertainty::memory;
}

const MemoryModel* memory_model(std::string_view word) {
  const std::array all{&nanotron_memory(), &eager_memory(), &step_memory_model()};
  const auto found = std::ranges::find(all, word, [](const MemoryModel* m) { return m->word; });
  return found == all.end() ? nullptr : *found;
}

PerToken saved_bytes(const Layout& l, const ProfileFacts& f, double joint) {
  const double hidden = l.element * l.hidden / l.tp;
  const double statistics = 4 * l.heads / l.tp;
  // q, k, v and the output of attention are four of the tensors of hidden_size; k and v have their own width.
  const double attention = l.element * (2 * l.width + 2 * l.kv_width) / l.tp;
  PerToken out;
  out.activations = (f.hidden_saved - 4) * hidden + attention + joint +
                    f.intermediate_saved * l.element * l.intermediate * l.top_k / l.tp + statistics +
                    f.score_bytes * l.sequence * l.heads / l.tp;
  out.kept = l.recompute ? hidden : out.activations;
  return out;
}

MemoryParts states_and_activations(const Case& c, const StageWork& s, const shape::StateBytes& states,
                                   const PerToken& token, double ranks) {
  const Layout& l = c.layout;
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  MemoryParts out;
  out.base = c.profile.memory.base_gib * kGiB;
  out.weights = states.weights * s.parameters;
  out.gradients = states.gradients * s.parameters;
  out.optimizer = states.optimizer * s.parameters;
  out.activations = l.tokens * s.layers * s.in_flight * token.kept;
  out.logits = s.loss ? c.profile.facts.logit_bytes * l.tokens * l.vocab / ranks : 0;
  return out;
}

void count_stage(MemoryPrediction& out, i64 stage, const MemoryParts& parts, double need, bool reports) {
  const double reserved = parts.reserved();
  const bool fullest = stage == 0 || reserved > out.wanted;
  out.need = std::max(out.need, need);
  if (stage == 0 || (reports && fullest)) out.parts = parts;
  if (fullest) out.wanted = reserved, out.fullest_stage = stage;
}

void set_limit(MemoryPrediction& out, const Case& c) {
  out.reserved = out.parts.reserved();
  if (!c.hardware.memory_bytes) return;
  const double device = static_cast<double>(*c.hardware.memory_bytes);
  out.limit = c.profile.facts.need_share * device;
  if (out.need <= out.limit) out.reserved = std::min(out.reserved, c.profile.facts.reserved_share * device);
}

}  // namespace sweep::predict
