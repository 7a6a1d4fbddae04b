#include "bench_kernels/shape/chunk_memory.h"

#include "bench_kernels/shape/optimizer_states.h"

namespace sweep::shape {

void ChunkMemory::count_copies() {
  if (p_.has_embedding) copies_.push_back(s_.element * p_.embedding.all());
  for (i64 l = 0; l < n_; ++l) {
    const GroupElements& e = p_.at(l).elements;
    const double gathered =
        t_.zero >= 3 ? e.quantized + e.quantized_experts : 0;  // else they are read where they last
    copies_.push_back(s_.element * e.all() + gathered);
    if (p_.has_encoder() && l + 1 == p_.encoder_layers)
      copies_.push_back(s_.element * p_.encoder_end.elements.all());
  }
  if (p_.has_head) copies_.push_back(s_.element * p_.head.all());
}

// Copies of the group at work and of those fetched ahead, and those that stay until their backward.
double ChunkMemory::copies_at(i64 group, bool forward) const {
  if (!p_.copies) return 0;
  const i64 ahead = forward ? t_.prefetch_forward : blocks_ahead_in_backward(t_);
  const i64 first = forward ? group : std::max<i64>(0, group - ahead);
  i64 begin = first, end = std::min(groups(), forward ? group + ahead + 1 : group + 1);
  const bool stays = !t_.reshard_after_forward;
  if (stays) begin = 0;
  if (stays && !alone_) end = groups();
  double sum = std::accumulate(copies_.begin() + begin, copies_.begin() + end, 0.0);
  if (p_.table_stays && begin > 0) sum += copies_.front();
  return sum;
}

// When the group's gradients leave: its own copy may have gone then, and the next ones come.
double ChunkMemory::copies_after(i64 group) const {
  return copies_at(gathers_after_block(t_) ? group - 1 : group, false);
}

// Copies while the layers from `first` to `l` are computed again, one after another: they stay until their backward
// (Values::need, done). The last: what layer l's backward finds.
void ChunkMemory::copies_again(i64 first, i64 l, std::vector<double>& out) const {
  out.assign(static_cast<std::size_t>(l - first + 1), copies_at(group_of(l), false));
  if (!p_.copies || !t_.reshard_after_forward) return;
  // Backward has fetched the last layers before l already.
  const i64 fetched = group_of(l) - blocks_ahead_in_backward(t_);
  double sum = out.back();
  i64 next = group_of(first);
  for (i64 i = first; i <= l; ++i) {
    for (const i64 end = std::min(fetched, group_of(i) + t_.prefetch_forward + 1); next < end; ++next)
      sum += copies_[static_cast<std::size_t>(next)];
    out[static_cast<std::size_t>(i - first)] = sum;
  }
}

double ChunkMemory::trained(double width, i64 ranks, bool sharded) const {
  const GroupElements& e = p_.all();
  const double experts = sharded ? real(expert_shard_ranks(t_)) : 1;
  return width * ((e.dense + e.partial) / real(ranks) + e.experts / experts);
}

PartBytes ChunkMemory::gradients() const {
  PartBytes out;
  out[MemoryPart::kGradients] = trained(s_.gradient, state_split(t_).gradients, t_.zero >= 2);
  return out;
}

PartBytes ChunkMemory::states() const {
  const StateTypes types = state_types(t_);
  const GroupElements& e = p_.all();
  const StateSplit dense = state_split(t_);
  const double experts = real(expert_shard_ranks(t_));
  const auto frozen = [&](double width, i64 ranks, bool sharded) {
    return width * (e.frozen / real(ranks) + e.frozen_experts / (sharded ? experts : 1));
  };
  PartBytes out;
  if (!parameters_outside(t_))
    for (const auto& part : {trained(real(bytes_of(types.weights)), dense.weights, t_.zero >= 3),
                             frozen(real(bytes_of(types.weights)), dense.weights, t_.zero >= 3)})
      out[MemoryPart::kWeights] += part;
  out[MemoryPart::kWeights] += t_.zero >= 3
                                   ? e.quantized / real(dense.weights) + e.quantized_experts / experts
                                   : e.quantized + e.quantized_experts;
  const double state = moment_bytes_each(t_.optimizer, types) + (types.master ? 4 : 0);
  if (t_.offload == Offload::kNone)
    out[MemoryPart::kOptimizer] = trained(state, dense.optimizer, t_.zero >= 1);
  if (t_.offload == Offload::kNone && t_.optimizer == OptimizerKind::kAdafactor)
    out[MemoryPart::kOptimizer] +=
        real(bytes_of(types.moments)) *
        factored_numbers(t_, {0, n_, p_.has_embedding, p_.has_head, p_.dense_layers});
  // Rotary tables, and the mask that a windowed kernel on a processor is given.
  const bool masked =
      !s_.kernels.gpu && s_.kernels.flash && t_.spec.sliding_window && *t_.spec.sliding_window < t_.seq_len;
  out[MemoryPart::kTemporary] =
      (s_.block.relative ? block(8 * (2 * s_.rows.seq - 1)) + block(8 * (2 * s_.rows.encoder_seq - 1)) : 0) +
      (t_.spec.rope ? moments::angles(s_) : 0) + (masked ? s_.element * s_.rows.seq * s_.rows.seq : 0);
  if (s_.experts.biased_choice)
    out[MemoryPart::kTemporary] += real(n_ - p_.dense_layers) * block(s_.sums(s_.experts.count));
  if (s_.experts.count > 0 && !s_.experts.learned && n_ > 0)
    out[MemoryPart::kTemporary] += moments::routes(s_);
  return out;
}

PartBytes ChunkMemory::optimizer() const {
  PartBytes out;
  const double shards = real(state_split(t_).optimizer);
  const double of_experts = t_.zero >= 1 ? real(expert_shard_ranks(t_)) : 1;
  const GroupElements &e = p_.all(), largest = p_.largest_bucket();
  const double all = (e.dense + e.partial) / shards + e.experts / of_experts;
  const double part =
      std::max(std::max(largest.dense, largest.partial) / shards, largest.experts / of_experts);
  out[MemoryPart::kTemporary] = update_bytes(t_, all, part, s_.kernels.fused_update);
  return out;
}

void ChunkMemory::forward(const PartBytes& others, PartBytes& most) const {
  if (p_.has_embedding) keep_larger(most, others + u_.embedding.forward + buffers(copies_at(0, true)));
  const i64 ahead = p_.copies ? t_.prefetch_forward : 0;
  const bool alike =
      p_.dense_layers + p_.encoder_layers == 0;  // then those in the middle hold no more than the last ones
  for (i64 l = 0; l < n_; l = alike ? std::max(l + 1, n_ - 1 - ahead) : l + 1)
    keep_larger(most,
                others + on_device(l) + encoded(l) + at(l).forward + buffers(copies_at(group_of(l), true)));
  if (p_.has_encoder())
    keep_larger(most, others + on_device(p_.encoder_layers) + encoded(0) + u_.encoder_end.forward +
                          buffers(copies_at(group_of(p_.encoder_layers) - 1, true)));
  if (p_.has_head)
    keep_larger(most, others + on_device(n_) + encoded(n_) + u_.head.forward +
                          buffers(copies_at(groups() - 1, true)));
}

void ChunkMemory::layer_backward(i64 l, const PartBytes& others, const GradientRoom& room,
                                 std::vector<double>& copies, PartBytes& most) const {
  // A head that shares the table leaves its part of the gradient for the embedding to add to, and so does the decoder's
  // embedding.
  const bool leaves = (p_.tied_here || l < p_.encoder_layers) && !s_.weights.later && !s_.weights.frozen;
  const double part = l < p_.encoder_layers ? moments::staged(s_, p_.weights.table)
                                            : moments::staged_product(s_, p_.weights.table);
  const double shared = leaves ? part : 0;
  const i64 first = recomputes_ ? l - (l - side_of(l)) % every_ : l;
  copies_again(first, l, copies);
  PartBytes base = others + encoded(l) + bias_gradient(l) + buffers(copies.back() + shared);
  // The first backward of a decoder layer makes room for the gradient of the encoder's result.
  const bool makes = p_.has_encoder() && l + 1 == n_;
  if (l >= p_.encoder_layers && !makes) base += encoded_gradient();
  base += recomputes_ ? kept(t_.activation_offload ? std::min<i64>(first, 1) : first) + saved(first, l)
                      : on_device(l);
  if (recomputes_) {
    PartBytes again = parts(room.at_mlp);
    again[MemoryPart::kTemporary] += block(residual_of(l));  // the gradient that came in
    for (i64 i = first; i <= l; ++i) {  // layers computed again before it have fewer results and other copies
      const double more = copies[static_cast<std::size_t>(i - first)] - copies.back();
      keep_larger(most, base + saved(i, l).times(-1) + at(i).forward + again + buffers(more));
    }
  }
  if (s_.weights.later) base += (p_.has_head ? u_.head.later : PartBytes{}) + later(l + 1, n_);
  const UnitMemory& attention = at(l).attention;
  keep_larger(most, base + attention.saved + at(l).cross.saved + at(l).mlp.backward + parts(room.at_mlp));
  // Gradients of experts leave then as units of ZeRO 3; a bucket of ZeRO 2 may hold what the rest of the MLP adds.
  const PartBytes leaving = parts(p_.copies ? room.at_cross : room.at_mlp);
  keep_larger(most, base + attention.saved + at(l).cross.saved + at(l).mlp.leaving + leaving);
  if (p_.has_encoder() && l >= p_.encoder_layers) {
    const UnitMemory& cross = makes ? u_.cross_first : at(l).cross;
    keep_larger(most, base + attention.saved + cross.backward + parts(room.at_cross));
    if (makes) base += encoded_gradient();
  }
  keep_larger(most, base + attention.backward + parts(room.at_attention) + at(l).mlp.later);
  PartBytes over = base + parts(room.at_end) + buffers(copies_after(group_of(l)) - copies.back());
  over[MemoryPart::kTemporary] += block(residual_of(l));  // the gradient that goes on
  keep_larger(most, over);
}

void ChunkMemory::encoder_end_backward(const PartBytes& others, const GradientRoom& room,
                                       PartBytes& most) const {
  const double shared = moments::staged(s_, p_.weights.table);
  const i64 group = group_of(p_.encoder_layers) - 1;
  const PartBytes base = others + on_device(p_.encoder_layers) + encoded(0) + encoded_gradient() +
                         u_.encoder_end.backward + buffers(shared);
  for (const GradientBytes& each : {room.at_mlp, room.at_attention})
    keep_larger(most, base + buffers(copies_at(group, false)) + parts(each));
  keep_larger(most, base + buffers(copies_after(group)) + parts(room.at_end));
}

void ChunkMemory::backward(const PartBytes& others, const std::vector<GradientRoom>& rooms,
                           PartBytes& most) const {
  // Bytes of gradients while the layer after this one is at work, and of what that layer frees.
  double last = 0;
  std::vector<double> copies;
  const double saved = t_.activation_offload ? 0 : u_.layer.saved.total();
  if (p_.has_head)
    keep_larger(most, others + on_device(n_) + encoded(n_) + u_.head.backward +
                          buffers(copies_at(groups() - 1, false)) + parts(rooms.back().at_mlp));
  for (i64 l = n_; l-- > 0;) {
    const GradientRoom& room = rooms[static_cast<std::size_t>(group_of(l))];
    // A layer in the middle has no more than the one after it.
    const bool as_after = !recomputes_ && p_.dense_layers + p_.encoder_layers == 0 && l + 2 < n_ && l > 0 &&
                          room.at_mlp.total() <= last && room.at_attention.total() <= last &&
                          room.at_end.total() <= last;
    last = std::max(room.at_mlp.total(), room.at_attention.total()) + saved;
    if (!as_after) layer_backward(l, others, room, copies, most);
    if (p_.has_encoder() && l == p_.encoder_layers)
      encoder_end_backward(others, rooms[static_cast<std::size_t>(group_of(l) - 1)], most);
  }
  if (!p_.has_embedding) return;
  const PartBytes base = others + buffers(copies_at(0, false));
  for (const GradientBytes& room : {rooms.front().at_mlp, rooms.front().at_attention})
    keep_larger(most, base + u_.embedding.backward + parts(room));
  keep_larger(most, others + buffers(copies_after(0)) + parts(rooms.front().at_end));
}

// zero_bubble: inputs and output gradients that were kept for the weight gradients of a micro-batch are freed group by
// group.
void ChunkMemory::weights(const PartBytes& others, Backward which, PartBytes& most) const {
  const std::vector<GradientRoom> rooms = p_.rooms(which);
  const PartBytes base = others + idle(!alone_, false);
  const auto at = [&](i64 group) {
    const GradientRoom& room = rooms[static_cast<std::size_t>(group)];
    return parts(room.at_mlp.total() > room.at_attention.total() ? room.at_mlp : room.at_attention);
  };
  PartBytes held = later();
  if (p_.has_head) {
    keep_larger(most, base + held + u_.head.weights + at(groups() - 1));
    held += u_.head.later.times(-1);
  }
  PartBytes unit = u_.attention.weights;
  keep_larger(unit, u_.layer.mlp.weights);
  if (p_.dense_layers > 0) keep_larger(unit, u_.dense_layer.mlp.weights);
  for (i64 l = n_; l-- > 0;) {
    keep_larger(most, base + held + unit + at(group_of(l)));
    held += later(l, l + 1).times(-1);
  }
  if (p_.has_embedding) keep_larger(most, base + u_.embedding.later + u_.embedding.weights + at(0));
}

PartBytes ChunkMemory::fullest(const Others& others) {
  PartBytes most;
  alone_ = others.alone;
  forward(others.forward, most);
  if (s_.weights.later)
    backward(others.input, std::vector<GradientRoom>(static_cast<std::size_t>(groups())), most);
  const auto pass = [&](const PartBytes& beside, Backward which) {
    if (s_.weights.later) return weights(beside, which, most);
    backward(beside, p_.rooms(which), most);
  };
  if (others.makes) pass(others.first, Backward::kFirst);
  if (others.adds) pass(others.next, Backward::kNext);
  return most;
}

}  // namespace sweep::shape
