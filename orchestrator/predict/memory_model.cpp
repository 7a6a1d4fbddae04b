#include "orchestrator/predict/memory_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace sweep::predict {

namespace {

using Rule = std::optional<Refusal> (*)(const Layout&);

std::optional<Refusal> without_blocks(const Layout& l) {
  for (std::size_t i = 0; i < l.stages.size(); ++i)
    if (l.stages[i].empty)
      return Refusal{
          "empty_stage",
          fmt::format("pp {} leaves stage {} of the pipeline without a block of the model", l.ranks.pp, i)};
  return std::nullopt;
}

std::optional<Refusal> undivided(double count, const char* what, double tp) {
  if (std::fmod(count, tp) == 0) return std::nullopt;
  return Refusal{"divisibility", fmt::format("{} {} not divisible by tp {}", count, what, tp)};
}

std::optional<Refusal> few_micro_batches(const Layout& l) {
  if (l.batch.micros >= l.ranks.pp - 1) return std::nullopt;
  return Refusal{"pipeline", fmt::format("1f1b needs pp - 1 = {} micro-batches, grad_accum is {}",
                                         l.ranks.pp - 1, l.batch.micros)};
}

// Refuses a layout that no program can have, whatever a profile's rules say.
std::optional<Refusal> impossible_layout(const Trial& t) {
  const ModelSpec& m = t.spec;
  if (t.ep > 1 && m.experts < 1)
    return Refusal{"experts", fmt::format("ep {}, and the model has no experts", t.ep)};
  if (t.ep > 1 && m.experts % t.ep != 0)
    return Refusal{"divisibility", fmt::format("{} experts cannot be split over ep {}", m.experts, t.ep)};
  if (t.dp_shard && (*t.dp_shard < 1 || t.dp % *t.dp_shard != 0))
    return Refusal{"divisibility", fmt::format("dp_shard {} does not divide dp {}", *t.dp_shard, t.dp)};
  if (t.vpp > 1 && t.pp * t.vpp > m.layers)
    return Refusal{"empty_stage", fmt::format("pp {} x vpp {} are more chunks than the model's {} layers",
                                              t.pp, t.vpp, m.layers)};
  return std::nullopt;
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all{
      without_blocks, [](const Layout& l) { return undivided(l.model.heads, "heads are", l.ranks.tp); },
      [](const Layout& l) { return undivided(l.model.kv_heads, "key-value heads are", l.ranks.tp); },
      [](const Layout& l) { return undivided(l.model.vocab, "words of the vocabulary are", l.ranks.tp); },
      few_micro_batches};
  return all;
}

}  // namespace

const std::vector<std::string>& rule_words() {
  static const std::vector<std::string> words{"empty_stage", "heads", "kv_heads", "vocabulary",
                                              "micro_batches"};
  return words;
}

std::optional<Refusal> MemoryModel::refusal(const Trial& t, const Layout& l, const TrainerProfile& p,
                                            StepRules) const {
  if (t.lora_rank > 0 && !knows_adapters())
    return Refusal{"adapters",
                   fmt::format("lora_rank {}: this profile knows full training alone", t.lora_rank)};
  if (t.spec.has_encoder())
    return Refusal{"encoder", "profiles of trainers know decoders alone, not an encoder-decoder"};
  if (auto impossible = impossible_layout(t)) return impossible;
  for (std::size_t i = 0; i < rule_words().size(); ++i)
    if (std::ranges::find(p.rules, rule_words()[i]) != p.rules.end())
      if (auto refused = rules()[i](l)) return refused;
  return std::nullopt;
}

double Uncertainty::*MemoryModel::spread(const Layout& l) const {
  return l.ranks.tp > 1 ? &Uncertainty::memory_tensor : &Uncertainty::memory;
}

const MemoryModel* memory_model(std::string_view word) {
  const std::array all{&nanotron_memory(), &eager_memory(), &step_memory_model()};
  const auto found = std::ranges::find(all, word, [](const MemoryModel* m) { return m->word; });
  return found == all.end() ? nullptr : *found;
}

double wide_tensors(const Layout& l, const ProfileFacts& f) {
  return l.model.gated ? f.intermediate_saved : f.plain_saved;
}

PerToken saved_bytes(const Layout& l, const ProfileFacts& f, double joint) {
  const double hidden = l.types.element * l.model.hidden / l.ranks.tp;
  const double statistics = 4 * l.model.heads / l.ranks.tp;
  // q, k, v and the output of attention are four of the tensors of hidden_size; k and v have their own width.
  const double attention = l.types.element * (2 * l.model.width + 2 * l.model.kv_width) / l.ranks.tp;
  const double wide = l.types.element * l.model.wide / l.ranks.tp;
  // Each expert's rows are a copy of its tokens.
  const double rows = l.experts.used ? l.experts.top_k * hidden : 0;
  // Softmax, the mask of its dropout and what that leaves: 5 bytes a score where attention is written out
  // (Korthikanti et al. 2022, arXiv 2205.05198).
  constexpr double kMathScore = 5;
  const double score = l.passes.math_attention ? std::max(kMathScore, f.score_bytes) : f.score_bytes;
  // With fp8 the inputs of the first products of attention and MLP and of the MLP's last shrink to a byte; that of
  // attention's last is kept beside its 16-bit tensor, which FlashAttention needs.
  const double shrunk = l.types.fp8 && f.fp8_inputs ? (hidden + rows + wide) / 2 : 0;
  PerToken out;
  out.activations = (f.hidden_saved - 4) * hidden + rows + attention + joint + wide_tensors(l, f) * wide -
                    shrunk + statistics + score * l.batch.sequence * l.model.heads / l.ranks.tp;
  out.kept = out.activations;
  if (l.passes.selective) out.kept = f.selective_hidden * hidden + f.selective_intermediate * wide;
  out.kept = std::min(out.kept, out.activations);
  if (l.passes.recompute) out.kept = hidden;
  return out;
}

shape::StateBytes trainer_states(const Layout& l, const ProfileFacts& f) {
  const double sharers = l.ranks.shard;
  return {(l.types.fp32 ? 4 : f.weight_bytes) / (l.ranks.zero >= 3 ? sharers : 1),
          (l.types.fp32             ? 4
           : l.types.bf16_gradients ? 2
                                    : f.gradient_bytes) /
              (l.ranks.zero >= 2 ? sharers : 1),
          (l.types.fp32 ? 8 : f.optimizer_bytes) / (l.ranks.zero >= 1 ? sharers : 1)};
}

MemoryParts states_and_activations(const Case& c, const StageWork& s, const shape::StateBytes& states,
                                   const PerToken& token, double ranks) {
  const Layout& l = c.layout;
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  MemoryParts out;
  out.base = c.profile.memory.base_gib * kGiB;
  const auto held = [&](double sharded_from) {
    return l.ranks.zero >= sharded_from ? s.with_all_experts : s.parameters;
  };
  const double codes = codes_of(l, s);
  out.weights = states.weights * (held(3) - codes) + l.base.code_bytes * codes + states.weights * s.adapters;
  out.gradients = states.gradients * (l.base.frozen ? s.adapters : held(2));
  out.optimizer = states.optimizer * (l.base.frozen ? s.adapters : held(1));
  out.activations = l.batch.tokens * s.layers * s.in_flight * token.kept;
  out.logits = s.loss ? c.profile.facts.logit_bytes * l.batch.tokens * l.model.vocab / ranks : 0;
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
