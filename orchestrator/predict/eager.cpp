// Eager PyTorch under FSDP2, DDP or on one rank: states as shape/model_states.h keeps them for the precision,
// gradients made anew in each step, weights gathered for the unit at work. With tensor parallelism the loss is of
// gathered logits (DTensor).
#include <algorithm>

#include "orchestrator/predict/memory_model.h"

namespace sweep::predict {
namespace {

// FSDP under PyTorch's pipelining: until the last micro-batch of a step a stage keeps its weights gathered and its
// gradients whole, in the type that they are reduced in (torch/distributed/pipelining/stage.py,
// backward_maybe_with_nosync; torchtitan does not reshard after the forward either).
bool stays_gathered(const Layout& l) {
  return l.ranks.zero >= 2 && l.ranks.pp > 1 && l.ranks.dp * l.ranks.cp > 1;
}

// Weights that compute, where what is kept is sharded or of another type: of the unit at work, `ahead`
// fetched before it; all of a stage where FSDP2 keeps them until the backward (ZeRO 2), or as autocast does. Codes are
// gathered as codes, and cast by none.
double gathered_weights(const Layout& l, const StageWork& s, bool own_types, bool at_loss, double ahead) {
  if (own_types && l.ranks.zero < 3) return 0;
  const double codes = codes_of(l, s), values = l.types.element * (s.parameters - codes);
  if (l.ranks.zero < 2 || l.ranks.dp * l.ranks.cp <= 1) return l.types.casts ? values : 0;
  if (l.ranks.zero < 3 || (!own_types && stays_gathered(l))) return values + kCodeBytes * codes;
  if (at_loss && s.loss) return l.types.element * l.model.vocab * l.model.hidden / l.ranks.tp;
  return (codes > 0 ? kCodeBytes : l.types.element) * (1 + ahead) * l.model.layer_parameters / l.ranks.tp;
}

// Without sequence parallelism ten of 34 bytes x hidden_size are not divided over tp: norms, their results and what
// dropout keeps (Korthikanti et al. 2022, arXiv 2205.05198).
PerToken saved_by_a_layer(const Layout& l, const ProfileFacts& f) {
  PerToken saved = saved_bytes(l, f, 0);
  if (!l.ranks.whole_norms) return saved;
  const double hidden = l.types.element * l.model.hidden * (l.ranks.tp - 1) / l.ranks.tp;
  saved.activations += 5 * hidden;
  saved.kept += l.passes.recompute ? hidden : 5 * hidden;
  return saved;
}

// Memory at the fullest of four moments of a step: the loss's backward, the last layer's, the end of the backward, the
// update.
MemoryParts at_the_fullest_moment(const Case& c, const StageWork& s) {
  const Layout& l = c.layout;
  const ProfileFacts& f = c.profile.facts;
  const PerToken saved = saved_by_a_layer(l, f);
  const double hidden = l.batch.tokens * l.types.element * l.model.hidden / l.ranks.tp,
               token = saved.activations;
  const bool own_types = f.optimizer_bytes > 0;
  shape::StateBytes states = own_types ? trainer_states(l, f) : l.types.states;
  MemoryParts whole = states_and_activations(c, s, states, saved, f.loss_parallel ? l.ranks.tp : 1);
  // FSDP2 shards what it keeps gathered.
  if (l.ranks.zero == 2 && !own_types)
    whole.weights = (whole.weights + states.weights * (s.with_all_experts - s.parameters)) / l.ranks.shard;
  const bool stays = !own_types && stays_gathered(l);
  const double gradients =
      stays ? (l.types.casts ? 4 : l.types.element) * (l.base.frozen ? s.adapters : s.parameters)
            : whole.gradients;
  MemoryParts loss = whole;
  loss.gradients = l.batch.micros > 1 ? gradients : f.kept_gradients * gradients;
  if (s.loss) loss.activations += 2 * hidden;  // the last norm's input and result
  // Gathered sequences under tp, at the loss and in a layer's backward.
  const double whole_tensors =
      l.ranks.tp > 1 ? c.profile.memory.gather_buffers * l.batch.tokens * l.model.hidden * l.types.element
                     : 0;
  loss.gather_buffers = gathered_weights(l, s, own_types, true, 0) + whole_tensors;
  MemoryParts layer = whole;
  layer.logits = 0, layer.gradients = loss.gradients;
  // Gradients of the MLP's three wide tensors and of the residual stream; of a layer's weights, on their way.
  const double passing = l.batch.tokens * 3 * l.types.element * l.model.wide / l.ranks.tp + 2 * hidden;
  const double under_way = l.ranks.zero >= 2 && !l.base.frozen
                               ? (l.types.casts ? 4 : l.types.element) * l.model.layer_parameters / l.ranks.tp
                               : 0;
  const double again =
      l.passes.recompute ? token : token - saved.kept;  // the backward makes these bytes anew
  layer.activations += passing + l.batch.tokens * again;
  layer.gather_buffers = gathered_weights(l, s, own_types, false, 1) + under_way + whole_tensors;
  MemoryParts end = layer;
  end.gradients = gradients;
  end.activations = l.batch.tokens * (s.layers * (s.in_flight - 1) * saved.kept + token) + passing;
  MemoryParts update = whole;
  update.activations = update.logits = 0;
  update.gather_buffers = f.update_bytes * whole.optimizer / 8;
  MemoryParts most = loss;
  for (const MemoryParts& moment : {layer, end, update})
    if (moment.reserved() > most.reserved()) most = moment;
  most.fragmentation = c.profile.memory.fragmentation * (most.activations + most.logits);
  return most;
}

// The stage with its share of the layers, where the program does not weigh what tables and head cost.
StageWork as_divided(const Layout& l, const ProfileFacts& f, StageWork s) {
  if (!f.even_stages) return s;
  const double layers = l.model.layers / l.ranks.pp;
  s.parameters += (layers - s.layers) * l.model.layer_parameters / l.ranks.tp;
  s.with_all_experts += (layers - s.layers) * (l.model.layer_parameters + l.experts.elsewhere) / l.ranks.tp;
  s.layers = layers;
  return s;
}

class EagerMemory final : public MemoryModel {
 public:
  EagerMemory() : MemoryModel("eager", kEager) {}

  // Under FSDP2 and DDP torchao's float8 replaces nn.Linear.
  bool fp8_keeps_states(const ProfileFacts& f) const override { return f.optimizer_bytes == 0; }
  MemoryPrediction bytes(const Case& c) const override {
    MemoryPrediction out;
    for (std::size_t i = 0; i < c.layout.stages.size(); ++i) {
      const ProfileFacts& f = c.profile.facts;
      const MemoryParts parts = at_the_fullest_moment(c, as_divided(c.layout, f, c.layout.stages[i]));
      const bool last_reports = f.reports_last;
      count_stage(out, static_cast<i64>(i), parts, parts.reserved() - parts.fragmentation, !last_reports);
      if (last_reports && i + 1 == c.layout.stages.size()) out.parts = parts;
    }
    set_limit(out, c);
    return out;
  }
};

}  // namespace

const MemoryModel& eager_memory() {
  static const EagerMemory model;
  return model;
}

}  // namespace sweep::predict
