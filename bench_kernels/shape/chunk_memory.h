// ChunkMemory: what one chunk of the model holds on a rank while micro-batches go through it, by part, as
// step_memory puts it together. It follows the units' own allocations (unit_memory.h) and knows nothing of the
// schedule.
#pragma once
#include <algorithm>
#include <numeric>
#include <vector>

#include "bench_kernels/shape/chunk_parameters.h"
#include "bench_kernels/shape/memory_parts.h"
#include "bench_kernels/shape/step_sizes.h"
#include "bench_kernels/shape/unit_memory.h"
#include "schema/trial.h"

namespace sweep::shape {

// Held by other micro-batches, and of gradients, at the fullest forward or backward of a chunk. First: the backward
// that makes the chunk's gradients, which the next ones find. Of a split backward (zero_bubble) these are the second
// part, which makes weight gradients, and `input` is the first part.
struct Others {
  PartBytes forward, input, first, next;
  bool makes = false, adds = false;  // there is such a first, or next one
  bool alone = true;                 // no other micro-batch is in flight
};

// The units of a model, the same in every chunk.
struct Units {
  // A layer with its MLP or its experts, and of an encoder-decoder's decoder cross-attention between.
  struct Layer {
    Layer(const UnitMemory& of_attention, const UnitMemory& of_mlp, const UnitMemory& of_cross = {})
        : attention(of_attention),
          cross(of_cross),
          mlp(of_mlp),
          saved(attention.saved + cross.saved + mlp.saved),
          forward(attention.forward) {
      keep_larger(forward, attention.saved + cross.forward);
      keep_larger(forward, attention.saved + cross.saved + mlp.forward);
    }
    UnitMemory attention, cross, mlp;
    PartBytes saved, forward;
  };
  Units(const Trial& t, const StepSizes& s, const UnitWeights& w)
      : attention(attention_memory(s, w, t.spec.rope)),
        embedding(embedding_memory(t.spec.has_encoder() ? s.of_encoder() : s, w)),
        head(head_memory(s, w)),
        cross_first(t.spec.has_encoder() ? cross_attention_memory(s, w, true) : UnitMemory{}),
        encoder_end(t.spec.has_encoder() ? encoder_end_memory(s, w) : UnitMemory{}),
        layer(attention, t.spec.experts > 0 ? experts_memory(s, w) : mlp_memory(s, w),
              t.spec.has_encoder() ? cross_attention_memory(s, w, false) : UnitMemory{}),
        dense_layer(t.spec.dense_layers > 0 ? Layer(attention, dense_mlp_memory(s, w)) : layer),
        encoder_layer(t.spec.has_encoder() ? Layer(attention_memory(s.of_encoder(), w, t.spec.rope),
                                                   mlp_memory(s.of_encoder(), w))
                                           : layer) {}
  UnitMemory attention, embedding, head, cross_first, encoder_end;
  Layer layer, dense_layer, encoder_layer;
};

// One chunk of the model on a rank: what its forward and backward of one micro-batch take beside what is
// there.
class ChunkMemory {
 public:
  ChunkMemory(const Trial& t, const StepSizes& s, const Units& u, ChunkParameters parameters)
      : t_(t),
        s_(s),
        u_(u),
        p_(std::move(parameters)),
        n_(p_.layers),
        recomputes_(t.recompute == Recompute::kFull),
        every_(std::min(t.recompute_every, std::max<i64>(1, n_))) {
    if (p_.copies) count_copies();
  }

  // Bytes kept from forward to backward of one micro-batch.
  PartBytes saved() const {
    PartBytes out = p_.has_head ? u_.head.saved : PartBytes{};
    if (!t_.activation_offload) out += kept(n_);
    return out;
  }
  PartBytes later() const {
    PartBytes out = p_.has_head ? u_.head.later : PartBytes{};
    return out + later(0, n_) + (p_.has_embedding ? u_.embedding.later : PartBytes{});
  }

  PartBytes states() const;     // but for gradients
  PartBytes gradients() const;  // all of them
  PartBytes optimizer() const;  // temporaries of the update
  // The fullest moment, without states.
  PartBytes fullest(const Others&);
  // While another chunk is at work: copies that wait for a backward, gradients under way.
  PartBytes idle(bool waits, bool reduces) const {
    const bool stays = waits && p_.copies && !t_.reshard_after_forward;
    return buffers((stays ? std::accumulate(copies_.begin(), copies_.end(), 0.0) : 0) +
                   (reduces ? p_.room_left() : 0));
  }

 private:
  const Units::Layer& at(i64 layer) const {
    if (layer < p_.encoder_layers) return u_.encoder_layer;
    return layer < p_.dense_layers ? u_.dense_layer : u_.layer;
  }
  // The first layer of the encoder's or the decoder's of which this one is.
  i64 side_of(i64 layer) const { return layer < p_.encoder_layers ? 0 : p_.encoder_layers; }
  double residual_of(i64 layer) const {
    return layer < p_.encoder_layers ? s_.of_encoder().residual() : s_.residual();
  }
  // Beside a layer at work: relative positions, and in the decoder the encoder's result, with their gradients in backward.
  PartBytes encoded(i64 layer) const {
    const bool decoder = layer >= p_.encoder_layers;
    PartBytes out = decoder ? u_.encoder_end.saved : PartBytes{};
    if (!s_.block.relative) return out;
    const double of_encoder = block(s_.element * s_.of_encoder().score_bias());
    out[MemoryPart::kTemporary] += of_encoder + (decoder ? block(s_.element * s_.score_bias()) : 0);
    return out;
  }
  PartBytes bias_gradient(i64 layer) const {
    PartBytes out;
    if (!s_.block.relative) return out;
    const double elements = (layer < p_.encoder_layers ? s_.of_encoder() : s_).score_bias();
    out[MemoryPart::kTemporary] = block(s_.sums(elements));
    return out;
  }
  PartBytes encoded_gradient() const {
    PartBytes out;
    if (p_.has_encoder()) out[MemoryPart::kTemporary] = block(s_.of_encoder().residual());
    return out;
  }
  // Saved by the layers from `first` to before `end`.
  PartBytes saved(i64 first, i64 end) const {
    if (p_.dense_layers + p_.encoder_layers == 0) return u_.layer.saved.times(real(end - first));
    const i64 dense = std::clamp<i64>(p_.dense_layers - first, 0, end - first);
    const i64 encoder = std::clamp<i64>(p_.encoder_layers - first, 0, end - first);
    return u_.dense_layer.saved.times(real(dense)) + u_.encoder_layer.saved.times(real(encoder)) +
           u_.layer.saved.times(real(end - first - dense - encoder));
  }
  // Bytes of what these layers put off.
  PartBytes later(i64 first, i64 end) const {
    const i64 dense = std::clamp<i64>(p_.dense_layers - first, 0, end - first);
    return u_.attention.later.times(real(end - first)) + u_.dense_layer.mlp.later.times(real(dense)) +
           u_.layer.mlp.later.times(real(end - first - dense));
  }
  // Kept of the first layers of a micro-batch, where backward finds it.
  PartBytes kept(i64 layers) const { return kept(0, layers); }
  PartBytes kept(i64 first, i64 end) const {
    if (!recomputes_) return saved(first, end);
    PartBytes out;
    for (const auto& [from, to] : {std::pair(first, std::min(end, p_.encoder_layers)),
                                   std::pair(std::max(first, p_.encoder_layers), end)})
      if (from < to)
        out[MemoryPart::kActivations] += block(residual_of(from)) * std::ceil(real(to - from) / real(every_));
    return out;
  }
  // The same while a layer is at work: with offload, one layer is on its way.
  PartBytes on_device(i64 layers) const {
    const i64 here = t_.activation_offload ? std::min<i64>(layers, recomputes_ ? every_ : 1) : layers;
    return kept(layers - here, layers);
  }
  // Bytes of numbers of such a width, divided over the ranks; experts' over those that hold them if it is sharded.
  double trained(double width, i64 ranks, bool sharded) const;
  void count_copies();
  double copies_at(i64 group, bool forward) const;
  double copies_after(i64 group) const;
  void copies_again(i64 first, i64 l, std::vector<double>& out) const;
  i64 groups() const { return p_.groups(); }
  i64 group_of(i64 layer) const { return p_.group_of(layer); }
  PartBytes buffers(double bytes) const {
    PartBytes out;
    out[MemoryPart::kBuffers] = bytes;
    return out;
  }
  PartBytes parts(const GradientBytes& bytes) const {
    PartBytes out = buffers(bytes.whole);
    out[MemoryPart::kGradients] = bytes.kept;
    return out;
  }
  void forward(const PartBytes& others, PartBytes& most) const;
  // rooms: of the groups; of a split backward's first part none has gradients.
  void backward(const PartBytes& others, const std::vector<GradientRoom>& rooms, PartBytes& most) const;
  // Reuses the memory of `copies`.
  void layer_backward(i64 l, const PartBytes& others, const GradientRoom&, std::vector<double>& copies,
                      PartBytes& most) const;
  void encoder_end_backward(const PartBytes& others, const GradientRoom&, PartBytes& most) const;
  void weights(const PartBytes& others, Backward, PartBytes& most) const;

  const Trial& t_;
  const StepSizes& s_;
  const Units& u_;
  ChunkParameters p_;
  i64 n_;
  bool recomputes_;
  i64 every_;
  std::vector<double> copies_;  // bytes of each group's copy of the values
  bool alone_ = true;           // no other micro-batch is in flight
};

}  // namespace sweep::shape
