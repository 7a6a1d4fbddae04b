// The device memory of an evaluation.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "bench_kernels/shape/chunk_parameters.h"
#include "bench_kernels/shape/step_memory.h"
#include "bench_kernels/shape/unit_memory.h"

namespace sweep::shape {
namespace {

Trial with_its_batch(Trial t) {
  t.micro_batch_size = t.eval_batch_size, t.grad_accum = 1;
  if (t.schedule == Schedule::kZeroBubble) t.schedule = Schedule::k1f1b;  // nothing is put off
  return t;
}

// Copies of a group's values and of those fetched ahead; nothing waits for a backward.
class Copies {
 public:
  Copies(const Trial& t, const StepSizes& s, const ChunkParameters& p) : ahead_(t.prefetch_forward) {
    if (!p.copies) return;
    if (p.has_embedding) bytes_.push_back(s.element * p.embedding.all());
    const double again =
        s.element * (p.table_stays ? p.embedding.all() : 0);  // a copy of the table, for another embedding
    for (i64 l = 0; l < p.layers; ++l) {
      bytes_.push_back(s.element * p.at(l).elements.all());
      if (p.has_encoder() && l + 1 == p.encoder_layers)
        bytes_.push_back(s.element * p.encoder_end.elements.all() + again);
    }
    if (p.has_head) bytes_.push_back(s.element * (p.head.all() + (p.tied_here ? p.embedding.all() : 0)));
  }
  PartBytes at(i64 group) const {
    PartBytes out;
    const auto end = std::min<i64>(static_cast<i64>(bytes_.size()), group + ahead_ + 1);
    if (group < end)
      out[MemoryPart::kBuffers] = std::accumulate(bytes_.begin() + group, bytes_.begin() + end, 0.0);
    return out;
  }

 private:
  i64 ahead_;
  std::vector<double> bytes_;
};

// The encoder's layers, its end, and the decoder's beside its result; the head comes after both.
PartBytes encoder_decoder_memory(const Trial& t, const StepSizes& s, const ChunkParameters& p,
                                 const Copies& copies) {
  const StepSizes encoder = s.of_encoder();
  const UnitMemory end = encoder_end_memory(s, p.weights);
  PartBytes kept, bias, most;
  bias[MemoryPart::kTemporary] = block(s.element * encoder.score_bias());
  kept[MemoryPart::kActivations] = block(encoder.residual());
  kept[MemoryPart::kTemporary] = bias[MemoryPart::kTemporary] + block(s.element * s.score_bias());
  keep_larger(most, embedding_memory(encoder, p.weights).forward + copies.at(0));
  for (const UnitMemory& unit :
       {attention_memory(encoder, p.weights, t.spec.rope), mlp_memory(encoder, p.weights)})
    keep_larger(most, bias + unit.forward + copies.at(p.group_of(p.encoder_layers - 1)));
  keep_larger(most, bias + end.forward + copies.at(p.group_of(p.encoder_layers) - 1));
  for (const UnitMemory& unit : {attention_memory(s, p.weights, t.spec.rope),
                                 cross_attention_memory(s, p.weights, false), mlp_memory(s, p.weights)})
    for (const i64 layer : {p.encoder_layers, p.layers - 1})
      keep_larger(most, kept + unit.forward + copies.at(p.group_of(layer)));
  keep_larger(most, kept + evaluated_head_memory(s) + copies.at(p.groups() - 1));
  return most;
}

PartBytes chunk_memory(const Trial& t, const StepSizes& s, const StageShare& share) {
  const ChunkParameters p(t, s, share);
  const Copies copies(t, s, p);
  if (p.has_encoder()) return encoder_decoder_memory(t, s, p, copies);
  PartBytes most;
  if (p.has_embedding) keep_larger(most, embedding_memory(s, p.weights).forward + copies.at(0));
  if (p.layers > 0) {
    keep_larger(most, attention_memory(s, p.weights, t.spec.rope).forward + copies.at(p.has_embedding));
    const UnitMemory mlp = t.spec.experts > 0 ? experts_memory(s, p.weights) : mlp_memory(s, p.weights);
    keep_larger(most, mlp.forward + copies.at(p.has_embedding + std::min(p.dense_layers, p.layers - 1)));
    keep_larger(most, mlp.forward + copies.at(p.layers + p.has_embedding - 1));
    if (p.dense_layers > 0)
      keep_larger(most, dense_mlp_memory(s, p.weights).forward + copies.at(p.has_embedding));
  }
  if (p.has_head) keep_larger(most, evaluated_head_memory(s) + copies.at(p.layers + p.has_embedding));
  return most;
}

}  // namespace

PartBytes evaluation_memory(const Trial& trial, const std::vector<StageShare>& chunks, bool gpu) {
  const Trial t = with_its_batch(trial);
  const StepSizes s(t, gpu ? KernelPath::kGpu : KernelPath::kProcessor);
  PartBytes most;
  double sent = 0;  // bytes that earlier chunks sent to next stages; they stay until the end
  for (const StageShare& share : chunks) {
    PartBytes chunk = chunk_memory(t, s, share);
    chunk[MemoryPart::kBuffers] += std::exchange(sent, sent + block(s.residual()));
    keep_larger(most, chunk);
  }
  most[MemoryPart::kTemporary] += moments::micro_batch(s);
  if (chunks.back().head && t.eval_metrics == EvalMetrics::kNgram)
    most[MemoryPart::kTemporary] += block(8 * s.rows.whole);  // the predicted tokens
  return most;
}

}  // namespace sweep::shape
