#include "bench_kernels/shape/chunk_parameters.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "bench_kernels/shape/quantized_base.h"
#include "bench_kernels/shape/splits.h"

namespace sweep::shape {
namespace {

constexpr int kDense = 0, kPartial = 1, kExpert = 2, kTied = 3;

// Gradient buckets of a chunk as backward completes them: roles apart, closed before they grow beyond a size.
class Buckets {
 public:
  // The shares are those of shards.
  Buckets(double most_elements, Backward backward, bool sharded, double of_dense, double of_experts)
      : most_(most_elements),
        first_(backward == Backward::kFirst),
        sharded_(sharded),
        of_dense_(of_dense),
        of_experts_(of_experts) {}

  // Stacks come in the order of backward; the numbers are their buckets.
  std::size_t add(double elements, int role) {
    std::size_t& open = open_[role];
    if (open == kNone || of_[open].elements + elements > most_) open = of_.size(), of_.push_back({});
    of_[open].share = role == kExpert ? of_experts_ : of_dense_;
    of_[open].elements += elements, ++of_[open].missing;
    return open;
  }
  void make_room(std::size_t bucket) {
    Bucket& b = of_[bucket];
    if (!b.there) (sharded_ ? now_.whole : now_.kept) += b.elements;
    b.there = true;
  }
  // A stack's gradient is complete: a bucket leaves when all of its are, one under way at a time.
  void complete(std::size_t bucket) {
    if (--of_[bucket].missing > 0 || !sharded_) return;
    if (reducing_ != kNone) now_.whole -= of_[reducing_].elements * (first_ ? 1 : 1 + of_[reducing_].share);
    reducing_ = bucket;
    (first_ ? now_.kept : now_.whole) += of_[bucket].share * of_[bucket].elements;
    if (now_.total() > top_.total()) top_ = now_;
  }
  // The most since the last time that it was asked for, and what there is now.
  GradientBytes take_top(double width) {
    const GradientBytes top = std::exchange(top_, now_);
    return {width * top.kept, width * top.whole};
  }
  GradientBytes bytes(double width) const { return {width * now_.kept, width * now_.whole}; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Bucket {
    double elements = 0, share = 1;
    i64 missing = 0;
    bool there = false;
  };
  double most_;
  bool first_, sharded_;
  double of_dense_, of_experts_;
  GradientBytes now_, top_;  // in elements
  std::vector<Bucket> of_;
  std::size_t open_[4] = {kNone, kNone, kNone, kNone}, reducing_ = kNone;
};

}  // namespace

ChunkParameters::ChunkParameters(const Trial& t, const StepSizes& s, const StageShare& share) : s_(s) {
  has_embedding = share.embedding, has_head = share.head, layers = share.layers;
  tied_here = t.spec.tie_embeddings && has_embedding && has_head;
  tied_elsewhere = t.spec.tie_embeddings && !tied_here && (has_embedding || has_head);
  const StateTypes types = state_types(t);
  copies = t.zero >= 3 || types.casts() || t.offload == Offload::kParameters;
  bucket_bytes_ = copies ? 1e300 : real(t.grad_bucket_mb << 20);
  const i64 shard = t.dp_shard.value_or(t.dp) * t.cp, experts = std::max<i64>(1, t.dp * t.cp / t.ep);
  if (t.zero > 0) multiple_ = 32 * real(std::lcm(shard, experts));
  sharded_ = t.zero >= 2, adds_ = t.grad_accum > 1;
  of_dense_ = 1 / real(shard), of_experts_ = 1 / real(experts);
  count_layer(t);
  const double norm = (s.rms ? 1 : 2) * s.hidden;
  weights.table = s.vocabulary * s.hidden;
  weights.positions = t.spec.rope ? 0 : real(t.spec.max_positions) * s.hidden;
  const double table = tied_here ? 0 : weights.table;
  if (s.frozen) {
    embedding.frozen = weights.table + weights.positions, head.frozen = table + norm;
    tied_elsewhere = false;  // nothing is summed over the two ends
    return;
  }
  embedding.dense = weights.table + weights.positions;
  head.dense = table + (s.rows_split ? 0 : norm);
  head.partial = s.rows_split ? norm : 0;
}

void ChunkParameters::train(double elements, int role) {
  if (elements <= 0) return;
  layer_stacks_.emplace_back(elements, role);
  (role == kDense ? layer.dense : role == kPartial ? layer.partial : layer.experts) += elements;
}

// The shorter matrix of each adapter is on every rank of the tensor group; in the order of backward.
void ChunkParameters::count_adapters_of_mlp(const Adapters& a) {
  const int shared = s_.tp > 1 ? kPartial : kDense;
  if (!a.mlp) return;
  const double rank = real(a.rank), in = real(a.on_mlp_input) * s_.width;
  weights.down_adapters = rank * (s_.hidden + s_.width);
  weights.in_adapters = rank * in + s_.low_in * s_.hidden;
  train(rank * s_.hidden, shared), train(rank * s_.width, kDense);
  train(rank * in, kDense), train(s_.low_in * s_.hidden, shared);
}

void ChunkParameters::count_adapters_of_attention(const Adapters& a) {
  const int shared = s_.tp > 1 ? kPartial : kDense;
  const double rank = real(a.rank), key_value = s_.key_value / s_.kv_sharers;
  const double out = (a.query ? s_.query : 0) + (a.key ? key_value : 0) + (a.value ? key_value : 0);
  weights.query_key_value_adapters = rank * out + s_.low_query_key_value * s_.hidden;
  if (a.attention_out) {
    weights.attention_out_adapters = rank * (s_.hidden + s_.query);
    train(rank * s_.hidden, shared), train(rank * s_.query, kDense);
  }
  train(rank * out, kDense), train(s_.low_query_key_value * s_.hidden, shared);
}

void ChunkParameters::count_layer(const Trial& t) {
  const ModelSpec& m = t.spec;
  const double norm = s_.hidden, query_columns = s_.query + 2 * s_.key_value / s_.kv_sharers;
  const int norms = s_.rows_split ? kPartial : kDense;
  const Adapters adapters = adapters_of(t);
  layer_stacks_.reserve(14);
  const auto add = [&](double elements, int role) {
    if (s_.frozen)
      (role == kExpert ? layer.frozen_experts : layer.frozen) += elements;
    else
      train(elements, role);
  };
  const auto add_weight = [&](double elements) {  // of a linear layer; quantized it is counted apart
    if (!s_.quantized) add(elements, kDense);
  };
  for (const i64 n : s_.quantized ? quantized_tensors(m) : std::vector<i64>{})
    layer.quantized += real(Nf4Extent{n / t.tp, n}.bytes());
  const double in = (s_.gated ? 2 : 1) * s_.width;
  if (m.experts > 0) {
    weights.in = s_.local_experts * in * s_.hidden, weights.down = s_.local_experts * s_.width * s_.hidden;
    weights.router = s_.experts * s_.hidden;
    add(weights.down, kExpert), add(weights.in, kExpert), add(weights.router, kDense);
  } else {
    weights.in = in * s_.hidden, weights.down = s_.width * s_.hidden;
    add(m.linear_bias ? s_.hidden : 0, kDense), add_weight(weights.down);
    add(m.linear_bias ? in : 0, kDense), add_weight(weights.in);
  }
  add(s_.rms ? 0 : norm, norms), add(norm, norms);
  if (s_.frozen) count_adapters_of_mlp(adapters);
  mlp_stacks_ = layer_stacks_.size();
  weights.query_key_value = query_columns * s_.hidden, weights.attention_out = s_.query * s_.hidden;
  add(m.linear_bias ? s_.hidden : 0, kDense), add_weight(weights.attention_out);
  for (int i = 0; i < (s_.qk_norm ? 2 : 0); ++i) add(s_.head_dim, s_.tp > 1 ? kPartial : kDense);
  add(m.attention_bias ? query_columns : 0, kDense), add_weight(weights.query_key_value);
  add(s_.rms ? 0 : norm, norms), add(norm, norms);
  if (s_.frozen) count_adapters_of_attention(adapters);
}

double ChunkParameters::padded(double elements) const {
  return std::ceil(elements / multiple_) * multiple_;
}

GroupElements ChunkParameters::padded(GroupElements e) const {
  return {padded(e.dense),  padded(e.partial),        padded(e.experts),
          padded(e.frozen), padded(e.frozen_experts), padded(e.quantized)};
}

GroupElements ChunkParameters::all() const {
  GroupElements sum;
  const auto add = [&](const GroupElements& group, double times) {
    const GroupElements e = copies ? padded(group) : group;
    sum.dense += times * e.dense, sum.partial += times * e.partial, sum.experts += times * e.experts;
    sum.frozen += times * e.frozen, sum.frozen_experts += times * e.frozen_experts;
    sum.quantized += times * e.quantized;
  };
  if (has_embedding) add(embedding, 1);
  add(layer, real(layers));
  if (has_head) add(head, 1);
  return copies ? sum : padded(sum);
}

GroupElements ChunkParameters::largest_bucket() const {
  GroupElements largest;
  if (((has_head && !tied_here) || has_embedding) && !s_.frozen) largest.dense = weights.table;
  if (copies) return {std::max(largest.dense, layer.dense), s_.frozen ? layer.partial : 0, layer.experts};
  for (const auto& [elements, role] : layer_stacks_)
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
    return std::vector<GradientRoom>(static_cast<std::size_t>(layers) + has_embedding + has_head);
  return copies ? rooms_of_groups(backward) : rooms_of_buckets(backward);
}

double ChunkParameters::room_left() const {
  if (!sharded_) return 0;
  const bool ends = has_embedding && !s_.frozen;
  double last = under_way_last(ends ? embedding : layer);
  if (!copies)
    last = std::max(ends ? weights.table : layer_stacks_.back().first,
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
  double kept = 0;  // elements of the gradients of the groups after
  const GroupElements* after = nullptr;
  const auto add = [&](const GroupElements& group, double held) {
    const GroupElements own = padded(group);
    GradientRoom room;
    const double here = own.trained() + held, expert_shards = of_experts_ * own.experts;
    const double shards = of_dense_ * (own.dense + own.partial) + expert_shards;
    if (!sharded_) {
      room.at_mlp.kept = room.at_attention.kept = room.at_end.kept = kept + here;
      kept += own.trained();
    } else {
      const double under_way = after ? under_way_last(*after) * (first ? 1 : 1 + of_dense_) : 0;
      // The bucket under way ends where the experts' leaves.
      const GradientBytes before{kept, here + under_way};
      const GradientBytes later{first ? kept + expert_shards : 0, here + (first ? 0 : expert_shards)};
      room.at_attention = own.experts > 0 ? later : before;
      room.at_mlp = room.at_attention.total() > before.total() ? room.at_attention : before;
      room.at_end = {first ? kept + shards : 0, here + (first ? 0 : of_dense_ * own.dense)};
      if (first) kept += shards;
    }
    for (GradientBytes* bytes : {&room.at_mlp, &room.at_attention, &room.at_end})
      bytes->kept *= s_.gradient, bytes->whole *= s_.gradient;
    rooms.push_back(room);
    after = &group;
  };
  const double shared = tied_here ? padded(embedding.dense) : 0;
  if (has_head) add(head, shared);
  for (i64 l = 0; l < layers; ++l) add(layer, shared);
  if (has_embedding) add(embedding, 0);
  std::reverse(rooms.begin(), rooms.end());
  return rooms;
}

std::vector<GradientRoom> ChunkParameters::rooms_of_buckets(Backward backward) const {
  Buckets buckets(bucket_bytes_ / s_.element, backward, sharded_, of_dense_, of_experts_);
  // The buckets of each group's stacks, in the order of backward; those of group g begin at begins[g].
  std::vector<std::size_t> numbers, begins;
  const std::size_t count = static_cast<std::size_t>(layers) + has_embedding + has_head;
  numbers.reserve(static_cast<std::size_t>(layers) * layer_stacks_.size() + 6), begins.reserve(count + 1);
  const auto add = [&](double elements, int role) { numbers.push_back(buckets.add(elements, role)); };
  const int table = tied_elsewhere ? kTied : kDense, norms = s_.rows_split ? kPartial : kDense;
  if (has_head && s_.frozen) begins.push_back(numbers.size());
  if (has_head && !s_.frozen) {
    begins.push_back(numbers.size());
    if (!tied_here) add(weights.table, table);
    for (int i = 0; i < (s_.rms ? 1 : 2); ++i) add(s_.hidden, norms);
  }
  for (i64 l = 0; l < layers; ++l) {
    begins.push_back(numbers.size());
    for (const auto& [elements, role] : layer_stacks_) add(elements, role);
  }
  if (has_embedding && s_.frozen) begins.push_back(numbers.size());
  if (has_embedding && !s_.frozen) {
    begins.push_back(numbers.size());
    if (weights.positions > 0) add(weights.positions, kDense);
    add(weights.table, table);
    if (tied_here) buckets.make_room(numbers.back());
  }
  begins.push_back(numbers.size());
  std::vector<GradientRoom> rooms(count);
  std::size_t roomy = 0;  // stacks whose buckets have been given room
  for (std::size_t g = 0; g < count; ++g) {
    const i64 layer = layers - 1 - (static_cast<i64>(g) - has_head);
    const bool ends = layer < 0 || layer >= layers;
    // An end's last stack leaves when nothing else of it is at work.
    const std::size_t end = begins[g + 1], before_last = end - (end > begins[g] ? 1 : 0);
    const std::size_t middle = ends ? before_last : begins[g] + mlp_stacks_;
    for (; roomy < begins[g + 1]; ++roomy) buckets.make_room(numbers[roomy]);
    GradientRoom& room = rooms[count - 1 - g];
    room.at_mlp = buckets.bytes(s_.gradient);
    buckets.take_top(s_.gradient);
    for (std::size_t i = begins[g]; i < middle; ++i) buckets.complete(numbers[i]);
    room.at_attention = ends ? buckets.take_top(s_.gradient) : buckets.bytes(s_.gradient);
    for (std::size_t i = middle; i < begins[g + 1]; ++i) buckets.complete(numbers[i]);
    room.at_end = buckets.take_top(s_.gradient);
  }
  return rooms;
}

}  // namespace sweep::shape
