#include "bench_kernels/shape/chunk_parameters.h"

#include <algorithm>
#include <utility>

#include "bench_kernels/shape/family.h"
#include "bench_kernels/shape/gradient_buckets.h"
#include "bench_kernels/shape/quantized_base.h"
#include "bench_kernels/shape/splits.h"

namespace sweep::shape {

ChunkParameters::ChunkParameters(const Trial& t, const StepSizes& s, const StageShare& share) : s_(s) {
  has_embedding = share.embedding, has_head = share.head;
  encoder_layers = has_embedding ? t.spec.encoder_layers : 0;
  layers = encoder_layers + share.layers, dense_layers = share.dense_layers;
  tied_here = t.spec.tie_embeddings && has_embedding && has_head;
  table_stays = tied_here || has_encoder();
  tied_elsewhere = t.spec.tie_embeddings && !tied_here && (has_embedding || has_head);
  const StateTypes types = state_types(t);
  copies = t.zero >= 3 || types.casts() || parameters_outside(t);
  bucket_bytes_ = copies ? 1e300 : real(t.grad_bucket_mb << 20);
  const i64 shard = t.dp_shard.value_or(t.dp) * t.cp, experts = expert_shard_ranks(t);
  if (t.zero > 0) multiple_ = 32 * real(shard);
  sharded_ = t.zero >= 2, adds_ = t.grad_accum > 1, leaves_last_ = gathers_after_block(t);
  of_dense_ = 1 / real(shard), of_experts_ = 1 / real(experts);
  layer = count_layer(t, t.spec.experts > 0, has_encoder());
  if (has_encoder()) encoder_layer = count_layer(t, false);
  if (dense_layers > 0) dense_layer = count_layer(t, false);
  const double norm = (s.block.rms ? 1 : 2) * s.dims.hidden;
  weights.table = s.dims.vocabulary * s.dims.hidden;
  weights.positions = real(position_elements(t.spec));
  const double table = tied_here ? 0 : weights.table;
  if (has_encoder()) {
    train(encoder_end, weights.positions, kDense);
    encoder_end.mlp_stacks = encoder_end.cross_end = encoder_end.stacks.size();
    for (int i = 0; i < (s.block.rms ? 1 : 2); ++i) train(encoder_end, s.dims.hidden, kDense);
  }
  if (s.weights.frozen) {
    embedding.frozen = weights.table + weights.positions, head.frozen = table + norm;
    tied_elsewhere = false;  // nothing is summed over the two ends
  } else {
    embedding.dense = weights.table + weights.positions;
    head.dense = table + (s.group.rows_split ? 0 : norm);
    head.partial = s.group.rows_split ? norm : 0;
  }
  all_ = sum_of_groups();
}

void ChunkParameters::train(LayerContents& of, double elements, int role) {
  if (elements <= 0) return;
  of.stacks.emplace_back(elements, role);
  GroupElements& e = of.elements;
  (role == kDense ? e.dense : role == kPartial ? e.partial : e.experts) += elements;
}

void ChunkParameters::add(LayerContents& of, double elements, int role) const {
  if (s_.weights.frozen)
    (role == kExpert ? of.elements.frozen_experts : of.elements.frozen) += elements;
  else
    train(of, elements, role);
}

void ChunkParameters::add_weight(LayerContents& of, double elements, int role) const {
  if (!s_.weights.quantized) add(of, elements, role);
}

// The shorter matrix of each adapter is on every rank of the tensor group; in the order of backward.
void ChunkParameters::count_adapters_of_mlp(const Adapters& a, LayerContents& of) {
  const int shared = s_.group.tp > 1 ? kPartial : kDense;
  if (!a.mlp) return;
  const double rank = real(a.rank), in = real(a.on_mlp_input) * s_.dims.width;
  weights.down_adapters = rank * (s_.dims.hidden + s_.dims.width);
  weights.in_adapters = rank * in + s_.low.in * s_.dims.hidden;
  train(of, rank * s_.dims.hidden, shared), train(of, rank * s_.dims.width, kDense);
  train(of, rank * in, kDense), train(of, s_.low.in * s_.dims.hidden, shared);
}

// Every rank of the tensor group has the gradients of what makes the latents.
void ChunkParameters::count_adapters_of_latents(const Adapters& a, LayerContents& of) {
  const int shared = s_.group.tp > 1 ? kPartial : kDense;
  const double rank = real(a.rank), read = s_.latent.query > 0 ? s_.latent.query : s_.dims.hidden;
  weights.attention_out_adapters = rank * (s_.dims.hidden + s_.latent.values);
  weights.key_value_up_adapters = rank * (s_.latent.expanded + s_.latent.key_value);
  weights.query_up_adapters = rank * (s_.dims.query + read);
  weights.latents_adapters = rank * s_.latent.columns() + s_.low.latents * s_.dims.hidden;
  train(of, rank * s_.dims.hidden, shared), train(of, rank * s_.latent.values, kDense);
  train(of, rank * s_.latent.expanded, kDense), train(of, rank * s_.latent.key_value, shared);
  train(of, rank * s_.dims.query, kDense), train(of, rank * read, shared);
  train(of, rank * s_.latent.columns(), kDense), train(of, s_.low.latents * s_.dims.hidden, kDense);
}

void ChunkParameters::count_adapters_of_attention(const Adapters& a, LayerContents& of) {
  if (s_.latent.used) return count_adapters_of_latents(a, of);
  const int shared = s_.group.tp > 1 ? kPartial : kDense;
  const double rank = real(a.rank), key_value = s_.dims.key_value / s_.group.kv_sharers;
  const double out = (a.query ? s_.dims.query : 0) + (a.key ? key_value : 0) + (a.value ? key_value : 0);
  weights.query_key_value_adapters = rank * out + s_.low.query_key_value * s_.dims.hidden;
  if (a.attention_out) {
    weights.attention_out_adapters = rank * (s_.dims.hidden + s_.dims.query);
    train(of, rank * s_.dims.hidden, shared), train(of, rank * s_.dims.query, kDense);
  }
  train(of, rank * out, kDense), train(of, s_.low.query_key_value * s_.dims.hidden, shared);
}

// Counts in the order of backward.
void ChunkParameters::count_mlp(const ModelSpec& m, bool experts, LayerContents& of) {
  if (experts) {
    const double in = 2 * s_.dims.width, shared = s_.dims.shared_width * s_.dims.hidden;
    weights.in = s_.experts.local * in * s_.dims.hidden,
    weights.down = s_.experts.local * s_.dims.width * s_.dims.hidden;
    weights.router = s_.experts.count * s_.dims.hidden;
    weights.shared_in = 2 * shared, weights.shared_down = shared;
    add(of, m.linear_bias ? s_.experts.local * s_.dims.hidden : 0, kExpert),
        add_weight(of, weights.down, kExpert);
    add(of, m.linear_bias ? s_.experts.local * in : 0, kExpert), add_weight(of, weights.in, kExpert);
    add(of, weights.shared_down, kDense), add(of, weights.shared_in, kDense);
    add(of, m.linear_bias ? s_.experts.count : 0, kDense), add(of, weights.router, kDense);
    return;
  }
  const double in = (s_.block.gated ? 2 : 1) * s_.dims.dense_width;
  weights.dense_in = in * s_.dims.hidden, weights.dense_down = s_.dims.dense_width * s_.dims.hidden;
  if (m.experts == 0) weights.in = weights.dense_in, weights.down = weights.dense_down;
  add(of, m.linear_bias ? s_.dims.hidden : 0, kDense), add_weight(of, weights.dense_down, kDense);
  add(of, m.linear_bias ? in : 0, kDense), add_weight(of, weights.dense_in, kDense);
}

void ChunkParameters::count_latent_attention(LayerContents& of) {
  weights.attention_out = s_.latent.values * s_.dims.hidden;
  weights.key_value_up = s_.latent.expanded * s_.latent.key_value;
  weights.query_up = s_.dims.query * (s_.latent.query > 0 ? s_.latent.query : s_.dims.hidden);
  weights.latents = s_.latent.columns() * s_.dims.hidden;
  for (const double elements : {weights.attention_out, weights.key_value_up, weights.query_up,
                                s_.latent.key_value, s_.latent.query, weights.latents})
    add(of, elements, kDense);
}

void ChunkParameters::count_attention(const ModelSpec& m, LayerContents& of) {
  if (s_.latent.used) return count_latent_attention(of);
  const double query_columns = s_.dims.query + 2 * s_.dims.key_value / s_.group.kv_sharers;
  weights.query_key_value = query_columns * s_.dims.hidden,
  weights.attention_out = s_.dims.query * s_.dims.hidden;
  add(of, m.linear_bias ? s_.dims.hidden : 0, kDense), add_weight(of, weights.attention_out, kDense);
  add(of, family_of(m).sinks() ? s_.dims.heads : 0, kDense);
  for (int i = 0; i < (s_.block.qk_norm ? 2 : 0); ++i)
    add(of, s_.dims.head_dim, s_.group.tp > 1 ? kPartial : kDense);
  add(of, m.attention_bias ? query_columns : 0, kDense), add_weight(of, weights.query_key_value, kDense);
}

void ChunkParameters::count_cross_attention(const ModelSpec& m, LayerContents& of) {
  const double product = s_.dims.query * s_.dims.hidden;
  for (const double parts : {0.0, 2.0, 1.0})  // the output, keys and values, queries
    if (parts == 0)
      add(of, m.linear_bias ? s_.dims.hidden : 0, kDense), add(of, product, kDense);
    else
      add(of, m.attention_bias ? parts * s_.dims.query : 0, kDense), add(of, parts * product, kDense);
}

LayerContents ChunkParameters::count_layer(const Trial& t, bool experts, bool cross) {
  const double norm = s_.dims.hidden;
  const int norms = s_.group.rows_split ? kPartial : kDense;
  const Adapters adapters = adapters_of(t);
  LayerContents of;
  of.stacks.reserve(24);
  const QuantizedTensors codes = s_.weights.quantized ? quantized_tensors(t.spec) : QuantizedTensors{};
  const auto held = [&](i64 n) { return real(Nf4Extent{n / t.tp, n}.bytes()); };
  for (const i64 n : codes.dense) of.elements.quantized += held(n);
  for (const i64 n : codes.experts) of.elements.quantized_experts += held(n) / s_.group.ep;
  const double post_norm = family_of(t.spec).post_norms() ? norm : 0;
  add(of, s_.block.rms ? 0 : post_norm, norms), add(of, post_norm, norms);
  count_mlp(t.spec, experts, of);
  add(of, s_.block.rms ? 0 : norm, norms), add(of, norm, norms);
  if (s_.weights.frozen) count_adapters_of_mlp(adapters, of);
  of.mlp_stacks = of.stacks.size();
  add(of, s_.block.rms ? 0 : post_norm, norms), add(of, post_norm, norms);
  if (cross) count_cross_attention(t.spec, of), add(of, s_.block.rms ? 0 : norm, norms), add(of, norm, norms);
  of.cross_end = of.stacks.size();
  count_attention(t.spec, of);
  add(of, s_.block.rms ? 0 : norm, norms), add(of, norm, norms);
  if (s_.weights.frozen) count_adapters_of_attention(adapters, of);
  return of;
}

double ChunkParameters::padded(double elements) const {
  return std::ceil(elements / multiple_) * multiple_;
}

GroupElements ChunkParameters::padded(GroupElements e) const {
  return {padded(e.dense),          padded(e.partial),   padded(e.experts),          padded(e.frozen),
          padded(e.frozen_experts), padded(e.quantized), padded(e.quantized_experts)};
}

GroupElements ChunkParameters::sum_of_groups() const {
  GroupElements sum;
  const auto add = [&](const GroupElements& group, double times) {
    if (times == 0) return;
    const GroupElements e = copies ? padded(group) : group;
    sum.dense += times * e.dense, sum.partial += times * e.partial, sum.experts += times * e.experts;
    sum.frozen += times * e.frozen, sum.frozen_experts += times * e.frozen_experts;
    sum.quantized += times * e.quantized, sum.quantized_experts += times * e.quantized_experts;
  };
  if (has_embedding) add(embedding, 1);
  add(layer.elements, real(layers - dense_layers - encoder_layers));
  add(dense_layer.elements, real(dense_layers)), add(encoder_layer.elements, real(encoder_layers));
  add(encoder_end.elements, has_encoder() ? 1 : 0);
  if (has_head) add(head, 1);
  return copies ? sum : padded(sum);
}

GroupElements ChunkParameters::largest_bucket() const {
  GroupElements largest;
  if (((has_head && !tied_here) || has_embedding) && !s_.weights.frozen) largest.dense = weights.table;
  const GroupElements &each = layer.elements, &dense = dense_layer.elements;
  if (copies) {  // a group is a bucket; a table that another stage shares is one of its own
    const double end = has_embedding ? embedding.dense : has_head ? head.dense : 0;
    largest.dense = std::max(largest.dense, tied_elsewhere ? end - weights.table : end);
    return {std::max({largest.dense, each.dense, dense.dense}), s_.weights.frozen ? each.partial : 0,
            each.experts};
  }
  for (const LayerContents* of : {&layer, &dense_layer})
    for (const auto& [elements, role] : of->stacks)
      (role == kExpert ? largest.experts : largest.dense) =
          std::max(role == kExpert ? largest.experts : largest.dense, elements);
  const GroupElements sum = all();
  const double together = sum.dense - (tied_elsewhere ? weights.table : 0);
  largest.dense = std::max(largest.dense, std::min(bucket_bytes_ / s_.element, together));
  largest.experts = std::max(largest.experts, std::min(bucket_bytes_ / s_.element, sum.experts));
  return largest;
}

std::vector<GradientRoom> ChunkParameters::rooms(Backward backward) const {
  if (!sharded_ && backward == Backward::kNext)
    return std::vector<GradientRoom>(static_cast<std::size_t>(groups()));
  return copies ? rooms_of_groups(backward) : rooms_of_buckets(backward);
}

double ChunkParameters::room_left() const {
  if (!sharded_) return 0;
  const bool ends = has_embedding && !s_.weights.frozen;
  double last = under_way_last(ends ? embedding : at(0).elements);
  if (!copies)
    last = std::max(ends ? weights.table : at(0).stacks.back().first,
                    std::min(bucket_bytes_ / s_.element, all().dense));
  return s_.gradient * (adds_ ? 1 + of_dense_ : 1) * last;
}

// The bucket of a group that leaves last.
double ChunkParameters::under_way_last(const GroupElements& group) const {
  return padded(group.partial > 0 ? group.partial : group.dense);
}

// A group's buckets leave when its backward is over; the last of them is under way while the next group
// works. The experts' leave before the layer's backward is over.
std::vector<GradientRoom> ChunkParameters::rooms_of_groups(Backward backward) const {
  const bool first = backward == Backward::kFirst;
  std::vector<GradientRoom> rooms;
  rooms.reserve(static_cast<std::size_t>(groups()));
  double kept = 0;  // elements of the gradients of the groups after
  double left = 0;  // elements of the bucket that left last
  const GroupElements* last = nullptr;
  GroupElements own;  // of that group, padded: most groups are the same layer
  const auto add = [&](const GroupElements& group, double held) {
    if (std::exchange(last, &group) != &group) own = padded(group);
    GradientRoom room;
    const double here = own.trained() + held, expert_shards = of_experts_ * own.experts;
    const double shards = of_dense_ * (own.dense + own.partial) + expert_shards;
    if (!sharded_) {
      room.at_mlp.kept = room.at_cross.kept = room.at_attention.kept = room.at_end.kept = kept + here;
      kept += own.trained();
    } else {
      const double under_way = left * (first ? 1 : 1 + of_dense_);
      // Exchanges run one at a time: that of the group after has ended when the experts' bucket leaves.
      const GradientBytes before{kept, here + under_way};
      const GradientBytes later{first ? kept + expert_shards : 0, here + (first ? 0 : expert_shards)};
      room.at_mlp = before;
      room.at_cross = room.at_attention = own.experts > 0 && !leaves_last_ ? later : before;
      room.at_end = {first ? kept + shards : 0, here + (first ? 0 : of_dense_ * own.dense)};
      if (own.experts > 0 && leaves_last_) room.at_end = later;  // theirs is the first bucket to leave
      if (first) kept += shards;
    }
    for (GradientBytes* bytes : {&room.at_mlp, &room.at_cross, &room.at_attention, &room.at_end})
      bytes->kept *= s_.gradient, bytes->whole *= s_.gradient;
    rooms.push_back(room);
    left = under_way_last(group);
  };
  const double of_table = padded(embedding.dense), of_head = tied_here ? of_table : 0;
  if (has_head) add(head, of_head);
  // A table that the first stage holds too is a bucket of its own, and leaves before the norm's.
  if (has_head && tied_elsewhere && head.partial == 0) left = padded(head.dense - weights.table);
  for (i64 l = layers; l-- > 0;) {
    add(at(l).elements, l < encoder_layers ? of_table : of_head);
    if (has_encoder() && l == encoder_layers) add(encoder_end.elements, of_table);
  }
  if (has_embedding) add(embedding, 0);
  std::reverse(rooms.begin(), rooms.end());
  return rooms;
}

std::vector<GradientRoom> ChunkParameters::rooms_of_buckets(Backward backward) const {
  Buckets buckets(bucket_bytes_ / s_.element, backward, sharded_, of_dense_, of_experts_);
  // The buckets of each group's stacks, in the order of backward; those of group g begin at begins[g].
  std::vector<std::size_t> numbers, begins;
  const std::size_t count = static_cast<std::size_t>(groups());
  std::vector<const LayerContents*> of(has_head ? 1 : 0, nullptr);  // each group's layer, null of ends
  numbers.reserve(static_cast<std::size_t>(layers) * layer.stacks.size() + 6), begins.reserve(count + 1);
  const auto add = [&](double elements, int role) { numbers.push_back(buckets.add(elements, role)); };
  const int table = tied_elsewhere ? kTied : kDense, norms = s_.group.rows_split ? kPartial : kDense;
  if (has_head) begins.push_back(numbers.size());
  if (has_head && !s_.weights.frozen) {
    if (!tied_here) add(weights.table, table);
    for (int i = 0; i < (s_.block.rms ? 1 : 2); ++i) add(s_.dims.hidden, norms);
  }
  const auto group = [&](const LayerContents& contents) {
    begins.push_back(numbers.size()), of.push_back(&contents);
    for (const auto& [elements, role] : contents.stacks) add(elements, role);
  };
  for (i64 l = layers; l-- > 0;) {
    group(at(l));
    if (has_encoder() && l == encoder_layers) group(encoder_end);
  }
  of.resize(count, nullptr);
  if (has_embedding) begins.push_back(numbers.size());
  if (has_embedding && !s_.weights.frozen) {
    if (weights.positions > 0) add(weights.positions, kDense);
    add(weights.table, table);
    if (tied_here) buckets.make_room(numbers.back());
  }
  begins.push_back(numbers.size());
  std::vector<GradientRoom> rooms(count);
  for (std::size_t g = 0; g < count; ++g) {
    const bool ends = of[g] == nullptr;
    if (of[g] == &encoder_end) buckets.make_room(numbers.back());
    // An end's last stack leaves when nothing else of it is at work.
    const std::size_t end = begins[g + 1], before_last = end - (end > begins[g] ? 1 : 0);
    const std::size_t middle = ends ? before_last : begins[g] + of[g]->mlp_stacks;
    const std::size_t cross_end = ends ? before_last : begins[g] + of[g]->cross_end;
    for (std::size_t i = begins[g]; i < end; ++i) buckets.make_room(numbers[i]);
    GradientRoom& room = rooms[count - 1 - g];
    room.at_mlp = buckets.bytes(s_.gradient), buckets.take_top(s_.gradient);
    for (std::size_t i = begins[g]; i < middle; ++i) buckets.complete(numbers[i]);
    room.at_cross = buckets.bytes(s_.gradient);
    for (std::size_t i = middle; i < cross_end; ++i) buckets.complete(numbers[i]);
    room.at_attention = ends ? buckets.take_top(s_.gradient) : buckets.bytes(s_.gradient);
    for (std::size_t i = cross_end; i < begins[g + 1]; ++i) buckets.complete(numbers[i]);
    room.at_end = buckets.take_top(s_.gradient);
  }
  return rooms;
}

}  // namespace sweep::shape
