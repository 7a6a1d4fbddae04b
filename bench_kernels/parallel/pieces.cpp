#include "bench_kernels/parallel/pieces.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sweep::parallel {

using model::Parameters;

namespace {

constexpr std::int64_t kGathered = std::int64_t{64} << 20;  // bytes of a gather's buffer

}  // namespace

StatePieces::Lasting StatePieces::weights_of(std::size_t b) const {
  const comm::Channel& shard = *values_.peers(b).shard;
  const std::int64_t part = parameters_.buckets()[b].elements / shard.size();
  return {"weight", values_.lasting(b), plan_.values_sharded() ? part * shard.rank() : 0};
}

std::vector<StatePieces::Lasting> StatePieces::lasting(std::size_t b) const {
  const comm::Channel& shard = *values_.peers(b).shard;
  const std::int64_t part = parameters_.buckets()[b].elements / shard.size(), first = part * shard.rank();
  std::vector<Lasting> all{weights_of(b)};
  for (auto& [state, values] : optimizer_.kept(b)) all.push_back({state, values, first});
  return all;
}

// One of the ranks of the tensor group that hold the same rows, and of the two ends that hold a tied table.
bool StatePieces::saves(const model::Stack& stack, const model::Part& part) const {
  if (stack.role == model::Role::kTied && mesh_[Dimension::kEnds].rank() > 0) return false;
  const std::int64_t held = stack.columns > 0 && part.slice.dimension == 1 ? stack.columns : part.rows;
  if (part.slice.whole == 0) return mesh_[Dimension::kTensor].rank() == 0;
  const bool shared = mesh_[Dimension::kTensor].size() * held / part.slice.whole > 1;
  return !shared || mesh_[Dimension::kKeyValue].rank() == 0;
}

// Gives the numbers in a range of the bucket, tensor by tensor.
void StatePieces::cut(std::size_t b, const Lasting& state, std::pair<std::int64_t, std::int64_t> range,
                      const TakePiece& take) const {
  for (const Parameters::Id id : parameters_.buckets()[b].stacks) {
    const auto& stack = parameters_.stacks()[id];
    const std::int64_t columns = std::max<std::int64_t>(1, stack.columns);
    std::int64_t at = stack.offset;
    for (std::size_t i = 0; i < stack.parts.size(); ++i) {
      const auto& part = stack.parts[i];
      const std::int64_t whole = stack.quantized ? stack.kept(part) : part.real_rows() * columns;
      const std::int64_t begin = std::max(at, range.first), end = std::min(at + whole, range.second);
      if (begin < end && saves(stack, part))
        take({part.name,
              state.state,
              begin - at,
              whole,
              state.values.narrow(0, begin - state.begin, end - begin),
              {stack.quantized ? &parameters_ : nullptr, id, i}});
      at += stack.kept(part);
    }
  }
}

// The ranks that hold the same part save an equal share of it each.
void StatePieces::saved(const TakePiece& take) const {
  for (const std::size_t b : values_.trained()) {
    const auto& peers = values_.peers(b);
    const std::int64_t part = parameters_.buckets()[b].elements / peers.shard->size();
    const std::int64_t first = part * peers.shard->rank(), n = peers.copies->size(), i = peers.copies->rank();
    for (const Lasting& state : lasting(b))
      cut(b, state, {first + part * i / n, first + part * (i + 1) / n}, take);
  }
}

void StatePieces::gathered(const TakePiece& take) const {
  const at::NoGradGuard no_grad;
  for (const std::size_t b : values_.trained()) {
    if (values_.peers(b).copies->rank() > 0) continue;
    for (const Lasting& state : lasting(b)) gather(b, state, take);
  }
}

void StatePieces::gather(std::size_t b, const Lasting& state, const TakePiece& take) const {
  comm::Channel& shard = *values_.peers(b).shard;
  const std::int64_t elements = parameters_.buckets()[b].elements, n = shard.size(), part = elements / n;
  if (state.values.numel() == elements) {  // all of it is here
    if (shard.rank() == 0) cut(b, state, {0, elements}, take);
    return;
  }
  const auto options = parameters_.buckets()[b].values.options().dtype(state.values.scalar_type());
  const std::int64_t most = std::min(
      part,
      std::max<std::int64_t>(1, kGathered / n / static_cast<std::int64_t>(state.values.element_size())));
  for (std::int64_t at = 0; at < part; at += most) {
    const std::int64_t size = std::min(most, part - at);
    const at::Tensor all = at::empty({n * size}, options);
    at::Tensor own = all.narrow(0, shard.rank() * size, size);
    own.copy_(state.values.narrow(0, at, size));
    shard.all_gather(own, all).wait();
    for (std::int64_t r = 0; shard.rank() == 0 && r < n; ++r) {
      const std::int64_t begin = r * part + at;
      cut(b, {state.state, all.narrow(0, r * size, size), begin}, {begin, begin + size}, take);
    }
  }
}

std::vector<std::size_t> StatePieces::loaded() const {
  const auto& buckets = parameters_.buckets();
  const bool base = std::ranges::any_of(buckets, &model::Bucket::frozen);
  std::vector<std::size_t> loaded;
  for (std::size_t b = 0; b < buckets.size(); ++b)
    if (buckets[b].frozen == base) loaded.push_back(b);
  return loaded;
}

void StatePieces::kept_weights(const TakePiece& take) const {
  for (const std::size_t b : loaded()) {
    const Lasting kept = weights_of(b);
    cut(b, kept, {kept.begin, kept.begin + kept.values.numel()}, take);
  }
}

void StatePieces::gathered_weights(const TakePiece& take) const {
  const at::NoGradGuard no_grad;
  for (const std::size_t b : loaded())
    if (values_.peers(b).copies->rank() == 0) gather(b, weights_of(b), take);
}

// The others add zeros: a broadcast, of which each rank keeps what it keeps.
void StatePieces::spread_weights(const TakePiece& fill) const {
  const at::NoGradGuard no_grad;
  comm::Channel& data = mesh_[Dimension::kData];
  for (const std::size_t b : loaded()) {
    const Lasting kept = weights_of(b);
    const std::int64_t elements = parameters_.buckets()[b].elements, end = kept.begin + kept.values.numel();
    const std::int64_t most =
        std::min(elements, kGathered / static_cast<std::int64_t>(kept.values.element_size()));
    const auto options = parameters_.buckets()[b].values.options().dtype(kept.values.scalar_type());
    for (std::int64_t at = 0; at < elements; at += most) {
      const std::int64_t size = std::min(most, elements - at);
      const at::Tensor buffer = at::zeros({size}, options);
      if (data.rank() == 0) cut(b, {kept.state, buffer, at}, {at, at + size}, fill);
      // No backend adds bytes; eight at once are the same, as all but one rank have zeros.
      data.all_reduce(parameters_.buckets()[b].quantized ? buffer.view(at::kLong) : buffer).wait();
      const std::int64_t from = std::max(at, kept.begin), to = std::min(at + size, end);
      if (from < to)
        kept.values.narrow(0, from - kept.begin, to - from).copy_(buffer.narrow(0, from - at, to - from));
    }
  }
}

}  // namespace sweep::parallel
