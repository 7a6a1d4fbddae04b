#include "orchestrator/predict/layout.h"

#include <algorithm>

#include "bench_kernels/shape/adapters.h"
#include "bench_kernels/shape/count.h"
#include "bench_kernels/shape/documents.h"
#include "bench_kernels/shape/family.h"
#include "orchestrator/predict/time_model.h"

namespace sweep::predict {
namespace {

void model_numbers(const Trial& t, Layout& l) {
  const ModelSpec& m = t.spec;
  l.hidden = real(m.hidden_size);
  l.heads = real(m.heads);
  l.kv_heads = real(m.kv_heads);
  l.width = real(m.heads * m.head_dim);
  l.kv_width = real(m.kv_heads * m.head_dim);
  l.intermediate = real(m.intermediate_size);
  l.vocab = real(m.vocab_size);
  l.tied = m.tie_embeddings;
  l.layers = real(m.layers);
  l.gated = m.swiglu;
  // First layers without experts count as those with: their models make them as wide as what a token meets.
  const double attention = real(shape::attention_weights(m));
  const double shared = real(m.shared_experts);
  const double mlp = (m.swiglu ? 3 : 2) * l.hidden * l.intermediate;
  l.has_experts = m.experts > 0;
  l.top_k = m.experts > 0 ? real(m.experts_per_token) : 1;
  l.wide = l.intermediate * (l.top_k + shared);
  l.experts_here = real(m.experts) / real(t.ep), l.expert_parameters = mlp;
  l.expert_groups = real(m.expert_groups), l.groups_of_token = real(m.groups_per_token);
  l.expert_bias = l.has_experts && m.linear_bias;
  l.normed_heads = shape::family_of(m).qk_norm;
  l.layer_parameters = attention + mlp * (m.experts > 0 ? real(m.experts) / real(t.ep) + shared : 1);
  l.other_experts = m.experts > 0 ? mlp * real(m.experts) * (1 - 1 / real(t.ep)) : 0;
  l.active_parameters = attention + mlp * (l.top_k + shared);
  l.parameters = l.layers * (attention + mlp * std::max(1.0, real(m.experts) + shared)) +
                 (l.tied ? 1 : 2) * l.vocab * l.hidden;
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
    const double tables = s.embedding && s.head && l.tied ? 1 : real(s.embedding) + real(s.head);
    s.parameters = (s.layers * l.layer_parameters + tables * l.vocab * l.hidden) / l.tp;
    s.with_all_experts = s.parameters + s.layers * l.other_experts / l.tp;
    s.in_flight = in_flight(t, static_cast<i64>(i));
    s.adapters = real(shape::adapter_parameter_count(t)) * s.layers / l.layers / l.tp;
  }
}

// Under FSDP2 and DDP fp8 is of products alone: torchao's float8 replaces nn.Linear and leaves the states of mixed
// precision.
void keep_states(const Trial& t, const TrainerProfile& p, Layout& l) {
  if (t.precision == Precision::kFp8 && p.memory_model == &eager_memory() && p.facts.optimizer_bytes == 0) {
    Trial mixed = t;
    mixed.precision = Precision::kBf16Mixed;
    return keep_states(mixed, p, l);
  }
  l.casts = shape::state_types(t).casts();
  l.states = shape::state_bytes(t);
}

}  // namespace

void make_layout(const Trial& t, const TrainerProfile& p, Layout& l) {
  l.nodes = real(t.nodes);
  l.gpus_per_node = real(t.gpus_per_node);
  l.dp = real(t.dp);
  l.tp = real(t.tp);
  l.pp = real(t.pp);
  l.cp = real(t.cp);
  l.ep = real(t.ep);
  l.zero = real(t.zero);
  l.micros = real(t.grad_accum);
  l.micro_batch = real(t.micro_batch_size);
  l.sequence = real(t.seq_len), l.keys = shape::causal_keys_per_token(t);
  l.tokens = l.sequence * l.micro_batch / l.cp;
  l.precision = t.precision, l.tf32 = t.tf32;
  l.is_fp32 = t.precision == Precision::kFp32;
  l.element = l.is_fp32 ? 4 : 2;
  l.recompute = t.recompute == Recompute::kFull;
  l.selective = t.recompute == Recompute::kSelective;
  l.fp8 = t.precision == Precision::kFp8;
  l.bf16_gradients = t.grad_dtype == GradDtype::kBf16;
  l.math_attention = t.attention == AttentionKind::kMath;
  l.whole_norms = t.tp > 1 && !t.sp;
  l.frozen = t.lora_rank > 0;
  // A trainer that keeps scores writes them. A profile's own rows, where it has such traffic, did not say so.
  l.written_out = l.math_attention || p.facts.score_bytes > 0 ||
                  (t.attention == AttentionKind::kAuto && t.hardware == p.hardware);
  l.shard = real(t.dp_shard.value_or(t.dp)) * l.cp;
  keep_states(t, p, l);
  l.tp_overlap = t.tp_overlap;
  l.pipeline = shape::Pipeline::of(t);
  model_numbers(t, l);
  const double passes = l.recompute ? 3 : 2;
  const bool quantized = t.quantize_base != QuantizeBase::kNone;
  l.dequantized = quantized ? passes * l.layer_parameters / l.tp : 0;
  l.code_bytes = quantized ? kCodeBytes / real(shape::state_split(t).weights) : 0;
  fill_stages(t, p, l);
  l.seen = seen_effects(p.effects, l, t.hardware);
}

}  // namespace sweep::predict
