#include "orchestrator/predict/layout.h"

#include <algorithm>

#include "bench_kernels/shape/adapters.h"
#include "bench_kernels/shape/count.h"
#include "bench_kernels/shape/documents.h"
#include "bench_kernels/shape/family.h"
#include "orchestrator/predict/time_model.h"

namespace sweep::predict {
namespace {

Layout::Ranks ranks_of(const Trial& t) {
  Layout::Ranks out;
  out.nodes = real(t.nodes), out.gpus_per_node = real(t.gpus_per_node);
  out.dp = real(t.dp), out.tp = real(t.tp), out.pp = real(t.pp), out.cp = real(t.cp), out.ep = real(t.ep);
  out.zero = real(t.zero), out.shard = real(t.dp_shard.value_or(t.dp)) * out.cp;
  out.tp_overlap = t.tp_overlap, out.whole_norms = t.tp > 1 && !t.sp;
  return out;
}

Layout::Batch batch_of(const Trial& t) {
  Layout::Batch out;
  out.micros = real(t.grad_accum), out.micro_batch = real(t.micro_batch_size);
  out.sequence = real(t.seq_len), out.keys = shape::causal_keys_per_token(t);
  out.tokens = out.sequence * out.micro_batch / real(t.cp);
  return out;
}

Layout::Experts experts_of(const Trial& t, double parameters) {
  const ModelSpec& m = t.spec;
  Layout::Experts out;
  out.parameters = parameters;
  out.groups = real(m.expert_groups), out.groups_of_token = real(m.groups_per_token);
  if (m.experts == 0) return out;
  out.used = true, out.bias = m.linear_bias, out.top_k = real(m.experts_per_token);
  out.here = real(m.experts) / real(t.ep);
  out.elsewhere = parameters * real(m.experts) * (1 - 1 / real(t.ep));
  return out;
}

// First layers without experts count as those with: their models make them as wide as what a token meets.
void count_model(const Trial& t, Layout::Model& out, Layout::Experts& experts) {
  const ModelSpec& m = t.spec;
  out.hidden = real(m.hidden_size), out.heads = real(m.heads), out.kv_heads = real(m.kv_heads);
  out.width = real(m.heads * m.head_dim), out.kv_width = real(m.kv_heads * m.head_dim);
  out.intermediate = real(m.intermediate_size), out.vocab = real(m.vocab_size);
  out.layers = real(m.layers), out.tied = m.tie_embeddings, out.gated = m.swiglu;
  out.normed_heads = shape::family_of(m).qk_norm;
  const double attention = real(shape::attention_weights(m));
  const double shared = real(m.shared_experts);
  const double mlp = (m.swiglu ? 3 : 2) * out.hidden * out.intermediate;
  experts = experts_of(t, mlp);
  out.wide = out.intermediate * (experts.top_k + shared);
  out.layer_parameters = attention + mlp * (experts.used ? experts.here + shared : 1);
  out.active_parameters = attention + mlp * (experts.top_k + shared);
  out.parameters = out.layers * (attention + mlp * std::max(1.0, real(m.experts) + shared)) +
                   (out.tied ? 1 : 2) * out.vocab * out.hidden;
}

// Micro-batches whose activations a stage holds at once, in numbers of whole stages.
double in_flight(const Trial& t, i64 stage) {
  const i64 micros = t.grad_accum, behind = t.pp - stage;
  if (t.schedule == Schedule::kGpipe) return real(micros);
  if (t.vpp <= 1) return real(std::min(micros, behind));
  const i64 chunks = std::min(t.pp * (t.vpp - 1) + 2 * behind - 1, micros * t.vpp);
  return real(chunks) / real(t.vpp);
}

void fill_stages(const Trial& t, const TrainerProfile& p, Layout& l) {
  p.time_model->divide(t, l.stages);
  for (std::size_t i = 0; i < l.stages.size(); ++i) {
    StageWork& s = l.stages[i];
    const double tables = s.embedding && s.head && l.model.tied ? 1 : real(s.embedding) + real(s.head);
    s.parameters =
        (s.layers * l.model.layer_parameters + tables * l.model.vocab * l.model.hidden) / l.ranks.tp;
    s.with_all_experts = s.parameters + s.layers * l.experts.elsewhere / l.ranks.tp;
    s.in_flight = in_flight(t, static_cast<i64>(i));
    s.adapters = real(shape::adapter_parameter_count(t)) * s.layers / l.model.layers / l.ranks.tp;
  }
}

void keep_states(const Trial& t, const TrainerProfile& p, Layout::Types& out) {
  if (t.precision == Precision::kFp8 && p.memory_model->fp8_keeps_states(p.facts)) {
    Trial mixed = t;
    mixed.precision = Precision::kBf16Mixed;
    return keep_states(mixed, p, out);
  }
  out.casts = shape::state_types(t).casts();
  out.states = shape::state_bytes(t);
}

Layout::Types types_of(const Trial& t, const TrainerProfile& p) {
  Layout::Types out;
  out.precision = t.precision, out.tf32 = t.tf32;
  out.fp32 = t.precision == Precision::kFp32, out.fp8 = t.precision == Precision::kFp8;
  out.element = out.fp32 ? 4 : 2;
  out.bf16_gradients = t.grad_dtype == GradDtype::kBf16;
  keep_states(t, p, out);
  return out;
}

Layout::Passes passes_of(const Trial& t, const TrainerProfile& p) {
  Layout::Passes out;
  out.recompute = t.recompute == Recompute::kFull, out.selective = t.recompute == Recompute::kSelective;
  out.math_attention = t.attention == AttentionKind::kMath;
  // A trainer that keeps scores writes them. A profile's own rows, where it has such traffic, did not say so.
  out.written_out = out.math_attention || p.facts.score_bytes > 0 ||
                    (t.attention == AttentionKind::kAuto && t.hardware == p.hardware);
  return out;
}

Layout::Base base_of(const Trial& t, double layer_parameters) {
  Layout::Base out;
  out.frozen = t.lora_rank > 0;
  if (t.quantize_base == QuantizeBase::kNone) return out;
  out.dequantized = (t.recompute == Recompute::kFull ? 3 : 2) * layer_parameters / real(t.tp);
  out.code_bytes = kCodeBytes / real(shape::state_split(t).weights);
  return out;
}

}  // namespace

void make_layout(const Trial& t, const TrainerProfile& p, Layout& l) {
  l.ranks = ranks_of(t), l.batch = batch_of(t);
  l.types = types_of(t, p), l.passes = passes_of(t, p);
  l.pipeline = shape::Pipeline::of(t);
  count_model(t, l.model, l.experts);
  l.base = base_of(t, l.model.layer_parameters);
  fill_stages(t, p, l);
  l.seen = seen_effects(p.effects, l, t.hardware);
}

}  // namespace sweep::predict
