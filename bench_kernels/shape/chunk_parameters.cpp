#include "bench_kernels/shape/chunk_parameters.h"

#include <numeric>

#include "bench_kernels/shape/splits.h"

namespace sweep::shape {
namespace {

constexpr int kDense = 0, kPartial = 1, kExpert = 2, kTied = 3;

// Gradient buckets of a chunk as backward completes them: roles apart, closed before they grow beyond a size.
class Buckets {
 public:
  // under_way: what a bucket takes while it is reduced, times itself.
  Buckets(double most_elements, double under_way, double experts_under_way)
      : most_(most_elements), of_dense_(under_way), of_experts_(experts_under_way) {}

  // Stacks come in the order of backward; the numbers are their buckets.
  std::size_t add(double elements, int role) {
    std::size_t& open = open_[role];
    if (open == kNone || of_[open].elements + elements > most_) open = of_.size(), of_.push_back({});
    of_[open].under_way = role == kExpert ? of_experts_ : of_dense_;
    of_[open].elements += elements, ++of_[open].missing;
    return open;
  }
  void make_room(std::size_t bucket) {
    Bucket& b = of_[bucket];
    if (!b.there) room_ += b.elements;
    b.there = true;
  }
  // A stack's gradient is complete: buckets leave in their order, one under way at a time.
  void complete(std::size_t bucket) {
    --of_[bucket].missing;
    for (; next_ < of_.size() && of_[next_].missing == 0; ++next_) {
      if (reducing_ != kNone) room_ -= of_[reducing_].under_way * of_[reducing_].elements;
      reducing_ = next_;
      room_ += (of_[reducing_].under_way - 1) * of_[reducing_].elements;
    }
  }
  double room() const { return room_; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Bucket {
    double elements = 0, under_way = 1;
    i64 missing = 0;
    bool there = false;
  };
  double most_, of_dense_, of_experts_, room_ = 0;
  std::vector<Bucket> of_;
  std::size_t open_[4] = {kNone, kNone, kNone, kNone}, next_ = 0, reducing_ = kNone;
};

}  // namespace

ChunkParameters::ChunkParameters(const Trial& t, const StepSizes& s, const StageShare& share) : s_(s) {
  has_embedding = share.embedding, has_head = share.head, layers = share.layers;
  tied_here = t.spec.tie_embeddings && has_embedding && has_head;
  tied_elsewhere = t.spec.tie_embeddings && !tied_here && (has_embedding || has_head);
  const StateTypes types = state_types(t);
  copies = t.zero >= 3 || types.casts() || t.offload == Offload::kParameters;
  if (t.recompute == Recompute::kFull) again_ = std::min(t.recompute_every, std::max<i64>(1, layers));
  bucket_bytes_ = copies ? 1e300 : real(t.grad_bucket_mb << 20);
  const i64 shard = t.dp_shard.value_or(t.dp) * t.cp, experts = std::max<i64>(1, t.dp * t.cp / t.ep);
  if (t.zero > 0) multiple_ = 32 * real(std::lcm(shard, experts));
  if (t.grad_accum > 1) under_way_ = 1 + 1 / real(shard), experts_under_way_ = 1 + 1 / real(experts);
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
  partial_first_ = a.attention_out || a.mlp;
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
  layer_stacks_.reserve(12);
  const auto add = [&](double elements, int role) {
    if (s_.frozen)
      (role == kExpert ? layer.frozen_experts : layer.frozen) += elements;
    else
      train(elements, role);
  };
  const double in = (s_.gated ? 2 : 1) * s_.width;
  if (m.experts > 0) {
    weights.in = s_.local_experts * in * s_.hidden, weights.down = s_.local_experts * s_.width * s_.hidden;
    weights.router = s_.experts * s_.hidden;
    add(weights.down, kExpert), add(weights.in, kExpert), add(weights.router, kDense);
  } else {
    weights.in = in * s_.hidden, weights.down = s_.width * s_.hidden;
    add(m.linear_bias ? s_.hidden : 0, kDense), add(weights.down, kDense);
    add(m.linear_bias ? in : 0, kDense), add(weights.in, kDense);
  }
  add(s_.rms ? 0 : norm, norms), add(norm, norms);
  if (s_.frozen) count_adapters_of_mlp(adapters);
  mlp_stacks_ = layer_stacks_.size();
  weights.query_key_value = query_columns * s_.hidden, weights.attention_out = s_.query * s_.hidden;
  add(m.linear_bias ? s_.hidden : 0, kDense), add(weights.attention_out, kDense);
  add(m.attention_bias ? query_columns : 0, kDense), add(weights.query_key_value, kDense);
  add(s_.rms ? 0 : norm, norms), add(norm, norms);
  if (s_.frozen) count_adapters_of_attention(adapters);
}

double ChunkParameters::padded(double elements) const {
  return std::ceil(elements / multiple_) * multiple_;
}

GroupElements ChunkParameters::padded(GroupElements e) const {
  return {padded(e.dense), padded(e.partial), padded(e.experts), padded(e.frozen), padded(e.frozen_experts)};
}

GroupElements ChunkParameters::all() const {
  GroupElements sum;
  const auto add = [&](const GroupElements& group, double times) {
    const GroupElements e = copies ? padded(group) : group;
    sum.dense += times * e.dense, sum.partial += times * e.partial, sum.experts += times * e.experts;
    sum.frozen += times * e.frozen, sum.frozen_experts += times * e.frozen_experts;
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

std::vector<GradientRoom> ChunkParameters::rooms(const Trial& t) const {
  if (t.zero < 2)
    return std::vector<GradientRoom>(static_cast<std::size_t>(layers) + has_embedding + has_head);
  return copies ? rooms_of_groups() : rooms_of_buckets();
}

double ChunkParameters::room_left(const Trial& t) const {
  if (t.zero < 2) return 0;
  const bool ends = has_embedding && !s_.frozen;
  double last = under_way_last(ends ? embedding : layer);
  if (!copies)
    last = std::max(ends ? weights.table : layer_stacks_.back().first,
                    std::min(bucket_bytes_ / s_.element, all().dense));
  return s_.gradient * under_way_ * last;
}

// The bucket of a group that leaves last.
double ChunkParameters::under_way_last(const GroupElements& group) const {
  const bool partial = group.partial > 0 && !(partial_first_ && group.dense > 0);
  return padded(partial ? group.partial : group.dense);
}

// A group's buckets leave when its backward is over; the last of them is under way while the next group
// works.
std::vector<GradientRoom> ChunkParameters::rooms_of_groups() const {
  std::vector<GradientRoom> rooms;
  const auto of = [&](const GroupElements& group, double times, double held, const GroupElements* after) {
    const GroupElements own = padded(group);
    GradientRoom room;
    room.at_mlp = room.at_attention = room.at_end = own.trained() * times + held;
    if (after) room.at_mlp += under_way_ * under_way_last(*after);
    room.at_attention = room.at_mlp;
    // The experts' leave before the layer's backward is over.
    for (double* bytes : {&room.at_mlp, &room.at_attention}) *bytes += (experts_under_way_ - 1) * own.experts;
    room.at_end += (under_way_ - 1) * own.dense;
    for (double* bytes : {&room.at_mlp, &room.at_attention, &room.at_end}) *bytes *= s_.gradient;
    return room;
  };
  const double shared = tied_here ? padded(embedding.dense) : 0;
  if (has_embedding) rooms.push_back(of(embedding, 1, 0, layers > 0 ? &layer : nullptr));
  for (i64 l = 0; l < layers; ++l)
    rooms.push_back(of(layer, real(l - first_of(l) + 1), shared,
                       l + 1 < layers ? &layer
                       : has_head     ? &head
                                      : nullptr));
  if (has_head) rooms.push_back(of(head, 1, shared, nullptr));
  return rooms;
}

std::vector<GradientRoom> ChunkParameters::rooms_of_buckets() const {
  Buckets buckets(bucket_bytes_ / s_.element, under_way_, experts_under_way_);
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
    const std::size_t middle = ends ? begins[g + 1] : begins[g] + mlp_stacks_;
    const std::size_t with = ends ? g : g + static_cast<std::size_t>(layer - first_of(layer));
    for (; roomy < begins[with + 1]; ++roomy) buckets.make_room(numbers[roomy]);
    GradientRoom& room = rooms[count - 1 - g];
    room.at_mlp = s_.gradient * buckets.room();
    for (std::size_t i = begins[g]; i < middle; ++i) buckets.complete(numbers[i]);
    room.at_attention = s_.gradient * buckets.room();
    for (std::size_t i = middle; i < begins[g + 1]; ++i) buckets.complete(numbers[i]);
    room.at_end = s_.gradient * buckets.room();
  }
  return rooms;
}

}  // namespace sweep::shape
