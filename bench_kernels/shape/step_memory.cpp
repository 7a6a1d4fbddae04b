#include "bench_kernels/shape/step_memory.h"

#include <numeric>
#include <set>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/chunk_parameters.h"
#include "bench_kernels/shape/evaluation_memory.h"
#include "bench_kernels/shape/optimizer_states.h"
#include "bench_kernels/shape/schedule.h"

namespace sweep::shape {
namespace {

// Held by other micro-batches at the fullest forward, backward, or making of weight gradients of a chunk.
struct Others {
  PartBytes forward, backward, weights;
  bool alone = true;  // there are none
};

// The units of a model, the same in every chunk.
struct Units {
  Units(const Trial& t, const StepSizes& s, const UnitWeights& w)
      : attention(attention_memory(s, w, t.spec.rope)),
        mlp(t.spec.experts > 0 ? experts_memory(s, w) : mlp_memory(s, w)),
        embedding(embedding_memory(s, w)),
        head(head_memory(s, w)),
        layer_saved(attention.saved + mlp.saved),
        layer_forward(attention.forward) {
    keep_larger(layer_forward, attention.saved + mlp.forward);
  }
  UnitMemory attention, mlp, embedding, head;
  PartBytes layer_saved, layer_forward;
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

  // From forward to backward of one micro-batch.
  PartBytes saved() const {
    PartBytes out = p_.has_head ? u_.head.saved : PartBytes{};
    if (!t_.activation_offload) out += kept(n_);
    return out;
  }
  PartBytes later() const {
    PartBytes out = p_.has_head ? u_.head.later : PartBytes{};
    return out + (u_.attention.later + u_.mlp.later).times(real(n_)) +
           (p_.has_embedding ? u_.embedding.later : PartBytes{});
  }

  PartBytes states() const;
  PartBytes optimizer() const;  // temporaries of the update
  // The fullest moment, without states.
  PartBytes fullest(const Others&);
  // While another chunk is at work: copies that wait for a backward, gradients under way.
  PartBytes idle(bool waits, bool reduces) const {
    const bool stays = waits && p_.copies && !t_.reshard_after_forward;
    return buffers((stays ? std::accumulate(copies_.begin(), copies_.end(), 0.0) : 0) +
                   (reduces ? p_.room_left(t_) : 0));
  }

 private:
  // Kept of the first layers of a micro-batch, where backward finds it.
  PartBytes kept(i64 layers) const {
    if (!recomputes_) return u_.layer_saved.times(real(layers));
    PartBytes out;
    out[MemoryPart::kActivations] = block(s_.residual()) * std::ceil(real(layers) / real(every_));
    return out;
  }
  // The same while a layer is at work: with offload, one layer is on its way.
  PartBytes on_device(i64 layers) const {
    return kept(t_.activation_offload ? std::min<i64>(layers, recomputes_ ? every_ : 1) : layers);
  }
  void count_copies();
  double copies_at(i64 group, bool forward) const;
  std::vector<double> copies_again(i64 first, i64 l) const;
  i64 groups() const { return n_ + p_.has_embedding + p_.has_head; }
  i64 group_of(i64 layer) const { return layer + p_.has_embedding; }
  PartBytes buffers(double bytes) const {
    PartBytes out;
    out[MemoryPart::kBuffers] = bytes;
    return out;
  }
  void forward(const PartBytes& others, PartBytes& most) const;
  void backward(const PartBytes& others, PartBytes& most) const;
  void layer_backward(i64 l, const PartBytes& others, const GradientRoom&, PartBytes& most) const;
  void weights(const PartBytes& others, PartBytes& most) const;

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

void ChunkMemory::count_copies() {
  if (p_.has_embedding) copies_.push_back(s_.element * p_.embedding.all());
  copies_.insert(copies_.end(), static_cast<std::size_t>(n_), s_.element * p_.layer.all());
  if (p_.has_head) copies_.push_back(s_.element * p_.head.all());
}

// Copies of the group at work and of those fetched ahead, and those that stay until their backward.
double ChunkMemory::copies_at(i64 group, bool forward) const {
  if (!p_.copies) return 0;
  const i64 ahead = forward ? t_.prefetch_forward : t_.prefetch_backward;
  const i64 first = forward ? group : std::max<i64>(0, group - ahead);
  i64 begin = first, end = std::min(groups(), forward ? group + ahead + 1 : group + 1);
  const bool stays = !t_.reshard_after_forward;
  if (stays) begin = 0;
  if (stays && !alone_) end = groups();
  double sum = std::accumulate(copies_.begin() + begin, copies_.begin() + end, 0.0);
  if (p_.tied_here && begin > 0) sum += copies_.front();
  return sum;
}

// Copies while the layers from `first` to `l` are computed again, one after another: each fetches those before
// it, as backward does, and gives its own back (Values::need, done). The last: what layer l's backward finds.
std::vector<double> ChunkMemory::copies_again(i64 first, i64 l) const {
  std::vector<double> out(static_cast<std::size_t>(l - first + 1), copies_at(group_of(l), false));
  if (!p_.copies || !t_.reshard_after_forward) return out;
  std::set<i64> held;
  if (p_.tied_here) held.insert(0);
  const auto need = [&](i64 group) {
    for (i64 g = std::max<i64>(0, group - t_.prefetch_backward); g <= group; ++g) held.insert(g);
  };
  const auto add = [this](double sum, i64 group) { return sum + copies_[static_cast<std::size_t>(group)]; };
  need(group_of(l));
  for (i64 i = first; i < l; held.erase(group_of(i++))) {
    need(group_of(i));
    out[static_cast<std::size_t>(i - first)] = std::accumulate(held.begin(), held.end(), 0.0, add);
  }
  out.back() = std::accumulate(held.begin(), held.end(), 0.0, add);
  return out;
}

PartBytes ChunkMemory::states() const {
  const StateTypes types = state_types(t_);
  const GroupElements e = p_.all();
  const StateSplit dense = state_split(t_);
  const double experts = real(std::max<i64>(1, t_.dp * t_.cp / t_.ep));
  const auto bytes = [&](double width, i64 ranks, bool sharded) {
    return width * ((e.dense + e.partial) / real(ranks) + e.experts / (sharded ? experts : 1));
  };
  const auto frozen = [&](double width, i64 ranks, bool sharded) {
    return width * (e.frozen / real(ranks) + e.frozen_experts / (sharded ? experts : 1));
  };
  PartBytes out;
  if (t_.offload != Offload::kParameters)
    for (const auto& part : {bytes(real(bytes_of(types.weights)), dense.weights, t_.zero >= 3),
                             frozen(real(bytes_of(types.weights)), dense.weights, t_.zero >= 3)})
      out[MemoryPart::kWeights] += part;
  out[MemoryPart::kGradients] = bytes(real(bytes_of(types.gradients)), dense.gradients, t_.zero >= 2);
  const double state = moment_bytes_each(t_.optimizer, types) + (types.master ? 4 : 0);
  if (t_.offload == Offload::kNone) out[MemoryPart::kOptimizer] = bytes(state, dense.optimizer, t_.zero >= 1);
  if (t_.offload == Offload::kNone && t_.optimizer == OptimizerKind::kAdafactor)
    out[MemoryPart::kOptimizer] +=
        real(bytes_of(types.moments)) * factored_numbers(t_, n_, p_.has_embedding, p_.has_head);
  // Rotary tables, and the mask that a windowed kernel on a processor is given.
  const bool masked = !s_.gpu && s_.flash && t_.spec.sliding_window && *t_.spec.sliding_window < t_.seq_len;
  out[MemoryPart::kTemporary] =
      (t_.spec.rope ? moments::angles(s_) : 0) + (masked ? s_.element * s_.seq * s_.seq : 0);
  if (s_.experts > 0 && !s_.learned && n_ > 0) out[MemoryPart::kTemporary] += moments::routes(s_);
  return out;
}

PartBytes ChunkMemory::optimizer() const {
  PartBytes out;
  const double shards = real(state_split(t_).optimizer);
  const double of_experts = t_.zero >= 1 ? real(std::max<i64>(1, t_.dp * t_.cp / t_.ep)) : 1;
  const GroupElements e = p_.all(), largest = p_.largest_bucket();
  const double all = (e.dense + e.partial) / shards + e.experts / of_experts;
  const double part =
      std::max(std::max(largest.dense, largest.partial) / shards, largest.experts / of_experts);
  out[MemoryPart::kTemporary] = update_bytes(t_, all, part);
  return out;
}

void ChunkMemory::forward(const PartBytes& others, PartBytes& most) const {
  if (p_.has_embedding) keep_larger(most, others + u_.embedding.forward + buffers(copies_at(0, true)));
  const i64 ahead = p_.copies ? t_.prefetch_forward : 0;
  for (i64 l = 0; l < n_; l = std::max(l + 1, n_ - 1 - ahead))
    keep_larger(most, others + on_device(l) + u_.layer_forward + buffers(copies_at(group_of(l), true)));
  if (p_.has_head)
    keep_larger(most, others + on_device(n_) + u_.head.forward + buffers(copies_at(groups() - 1, true)));
}

void ChunkMemory::layer_backward(i64 l, const PartBytes& others, const GradientRoom& room,
                                 PartBytes& most) const {
  // A head that shares the table leaves its part of the gradient for the embedding to add to.
  const double shared = p_.tied_here && !s_.later && !s_.frozen ? moments::staged(s_, p_.weights.table) : 0;
  const i64 first = recomputes_ ? l - l % every_ : l;
  const std::vector<double> copies = copies_again(first, l);
  PartBytes base = others + buffers(std::max(copies_at(group_of(l), false), copies.back()) + shared);
  base += recomputes_ ? kept(t_.activation_offload ? std::min<i64>(first, 1) : first) +
                            u_.layer_saved.times(real(l - first))
                      : on_device(l);
  if (recomputes_) {
    PartBytes again = u_.layer_forward;
    again[MemoryPart::kTemporary] += block(s_.residual());  // the gradient that came in
    again[MemoryPart::kBuffers] += room.at_mlp;
    for (i64 i = first; i <= l; ++i) {  // those computed again before it: fewer results, more copies
      const double more = std::max(0.0, copies[static_cast<std::size_t>(i - first)] - copies.back());
      keep_larger(most, base + u_.layer_saved.times(-real(l - i)) + again + buffers(more));
    }
  }
  if (s_.later)
    base += (p_.has_head ? u_.head.later : PartBytes{}) +
            (u_.attention.later + u_.mlp.later).times(real(n_ - 1 - l));
  keep_larger(most, base + u_.attention.saved + u_.mlp.backward + buffers(room.at_mlp));
  keep_larger(most, base + u_.attention.backward + buffers(room.at_attention) + u_.mlp.later);
  PartBytes over = base + buffers(room.at_end);
  over[MemoryPart::kTemporary] += block(s_.residual());  // the gradient that goes on
  keep_larger(most, over);
}

void ChunkMemory::backward(const PartBytes& others, PartBytes& most) const {
  std::vector<GradientRoom> rooms = p_.rooms(t_);
  if (s_.later) rooms.assign(rooms.size(), {});
  double last = 0;  // room while the layer after is at work
  if (p_.has_head)
    keep_larger(most, others + on_device(n_) + u_.head.backward +
                          buffers(copies_at(groups() - 1, false) + rooms.back().at_mlp));
  for (i64 l = n_; l-- > 0;) {
    const GradientRoom& room = rooms[static_cast<std::size_t>(group_of(l))];
    // A layer in the middle has no more than the one after it.
    const bool as_after = !recomputes_ && l + 2 < n_ && l > 0 && room.at_mlp <= last && room.at_end <= last;
    last = std::max(room.at_mlp, room.at_attention);
    if (!as_after) layer_backward(l, others, room, most);
  }
  if (p_.has_embedding)
    for (const double room : {rooms.front().at_mlp, rooms.front().at_end - u_.embedding.backward.total()})
      keep_larger(most, others + u_.embedding.backward + buffers(copies_at(0, false) + room));
}

// zero_bubble: what the weight gradients of a micro-batch are made of goes group by group.
void ChunkMemory::weights(const PartBytes& others, PartBytes& most) const {
  const std::vector<GradientRoom> rooms = p_.rooms(t_);
  const PartBytes base = others + idle(!alone_, false);
  const auto at = [&](i64 group) {
    const GradientRoom& room = rooms[static_cast<std::size_t>(group)];
    return buffers(std::max(room.at_mlp, room.at_attention));
  };
  PartBytes held = later();
  if (p_.has_head) {
    keep_larger(most, base + held + u_.head.weights + at(groups() - 1));
    held += u_.head.later.times(-1);
  }
  PartBytes unit = u_.attention.weights;
  keep_larger(unit, u_.mlp.weights);
  if (n_ > 0) keep_larger(most, base + held + unit + at(group_of(n_ - 1)));
  if (p_.has_embedding) keep_larger(most, base + u_.embedding.later + u_.embedding.weights + at(0));
}

PartBytes ChunkMemory::fullest(const Others& others) {
  PartBytes most;
  alone_ = others.alone;
  forward(others.forward, most);
  backward(others.backward, most);
  if (s_.later) weights(others.weights, most);
  return most;
}

// Memory held while a micro-batch of one chunk is at work: others that are in flight, and what other chunks
// keep.
class InFlight {
 public:
  explicit InFlight(const std::vector<ChunkMemory>& chunks) : seen_(chunks.size()), most_(chunks.size()) {
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      seen_[c].saved = chunks[c].saved(), seen_[c].later = chunks[c].later();
      seen_[c].if_waits = chunks[c].idle(true, false).total();
      seen_[c].if_reduces = chunks[c].idle(false, true).total();
    }
  }
  std::vector<Others> run(const ActionList& actions, bool late) {
    for (const Action& action : actions) {
      const auto c = static_cast<std::size_t>(action.chunk);
      Seen& seen = seen_[c];
      if (action.act == Act::kForward) {
        note(c, seen.forward, most_[c].forward);
        held_ += seen.saved, ++seen.micros;
      } else if (action.act == Act::kBackward) {
        held_ += seen.saved.times(-1), --seen.micros;
        note(c, seen.backward, most_[c].backward);
        if (late) held_ += seen.later;
      } else {
        held_ += seen.later.times(-1);
        note(c, seen.weights, most_[c].weights);
      }
      seen.reduces = action.act != Act::kForward;
    }
    return most_;
  }

 private:
  struct Seen {
    PartBytes saved, later;
    double if_waits = 0, if_reduces = 0;            // buffers while another chunk is at work
    double forward = 0, backward = 0, weights = 0;  // the most beside each of its actions
    i64 micros = 0;
    bool reduces = false;  // its last gradients are under way
  };
  void note(std::size_t at_work, double& most_bytes, PartBytes& most) {
    double idle = 0;
    for (std::size_t c = 0; c < seen_.size(); ++c)
      if (c != at_work)
        idle += (seen_[c].micros > 0 ? seen_[c].if_waits : 0) + (seen_[c].reduces ? seen_[c].if_reduces : 0);
    if (seen_[at_work].micros > 0) most_[at_work].alone = false;
    const double bytes = held_.total() + idle;
    if (bytes <= most_bytes) return;
    most_bytes = bytes, most = held_;
    most[MemoryPart::kBuffers] += idle;
  }

  std::vector<Seen> seen_;
  std::vector<Others> most_;
  PartBytes held_;
};

PartBytes rank_memory(const Trial& t, const StepSizes& s, const Units& units,
                      const std::vector<StageShare>& shares, i64 rank) {
  Pipeline pipeline = Pipeline::of(t);
  std::vector<ChunkMemory> chunks;
  for (i64 c = 0; c < t.vpp; ++c)
    chunks.emplace_back(t, s, units,
                        ChunkParameters(t, s, shares[static_cast<std::size_t>(pipeline.stage(rank, c))]));
  PartBytes states, update, messages;
  for (const auto& chunk : chunks) states += chunk.states(), keep_larger(update, chunk.optimizer());
  states[MemoryPart::kTemporary] += real(t.grad_accum) * moments::micro_batch(s);
  if (s.gpu) states[MemoryPart::kLibrary] = library_workspace(t);
  std::vector<Others> others(1);
  if (t.pp > 1) {
    pipeline.micros = micros_with_same_peak(pipeline);
    const ActionList actions = computations(pipeline, rank);
    others = InFlight(chunks).run(actions, s.later);
  }
  PartBytes most = states + update;
  // Messages under way: to and from each neighbour.
  const double neighbours = (rank > 0 || t.vpp > 1 ? 1 : 0) + (rank + 1 < t.pp || t.vpp > 1 ? 1 : 0);
  if (t.pp > 1) messages[MemoryPart::kBuffers] = neighbours * block(s.residual());
  for (std::size_t c = 0; c < chunks.size(); ++c)
    keep_larger(most, states + messages + chunks[c].fullest(others[c]));
  for (i64 c = 0; c < t.vpp && t.eval_batch_size > 0; ++c)
    keep_larger(most, states + evaluation_memory(t, shares[static_cast<std::size_t>(pipeline.stage(rank, c))],
                                                 s.gpu));
  return most;
}

// Than the rank before it: neither is the first or the last, and they compute as many layers in each chunk. All
// schedules but zero_bubble, which puts weight gradients off, have as many micro-batches in flight on the
// earlier one.
bool holds_no_more(const Trial& t, const std::vector<StageShare>& shares, i64 rank) {
  if (rank < 2 || rank + 1 >= t.pp) return false;
  const Pipeline pipeline = Pipeline::of(t);
  for (i64 c = 0; c < t.vpp; ++c)
    if (shares[static_cast<std::size_t>(pipeline.stage(rank, c))].layers !=
        shares[static_cast<std::size_t>(pipeline.stage(rank - 1, c))].layers)
      return false;
  return true;
}

}  // namespace

// 4096 KiB x 8 on compute capability 9.0 and 10.x, else 4096 KiB x 2 + 16 KiB x 8
// (at::cuda::getChosenWorkspaceSize without CUBLAS_WORKSPACE_CONFIG). Unknown hardware: the larger.
double library_workspace(const Trial& t) {
  const Hardware* hardware = known_hardware(t.hardware);
  const std::string capability = hardware ? hardware->compute_capability : "";
  const bool large = capability.empty() || capability == "9.0" || capability.starts_with("10.");
  return 1024 * (large ? 4096.0 * 8 : 4096.0 * 2 + 16 * 8);
}

std::vector<PartBytes> step_memory(const Trial& t, KernelPath path, Ranks which) {
  const StepSizes s(t, path);
  const auto shares = split_stages(t.spec, t.pp * t.vpp, t.seq_len);
  const Units units(t, s, ChunkParameters(t, s, shares.front()).weights);
  std::vector<PartBytes> ranks;
  for (i64 rank = 0; rank < t.pp; ++rank) {
    const bool skipped = which == Ranks::kFullest && !s.later && holds_no_more(t, shares, rank);
    ranks.push_back(skipped ? PartBytes{} : rank_memory(t, s, units, shares, rank));
  }
  return ranks;
}

}  // namespace sweep::shape
