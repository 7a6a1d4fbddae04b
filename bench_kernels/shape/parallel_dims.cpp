#include "bench_kernels/shape/parallel_dims.h"

#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <optional>
#include <utility>

#include "bench_kernels/shape/splits.h"

namespace sweep::shape {
namespace {

// The product, or nothing when it does not fit 64 bits.
std::optional<i64> product(std::initializer_list<i64> factors) {
  i64 result = 1;
  for (const i64 f : factors)
    if (__builtin_mul_overflow(result, f, &result)) return std::nullopt;
  return result;
}

}  // namespace

Expected<ParallelDims> ParallelDims::make(const Trial& t) {
  const std::pair<const char*, i64> degrees[] = {{"dp", t.dp},
                                                 {"tp", t.tp},
                                                 {"pp", t.pp},
                                                 {"cp", t.cp},
                                                 {"ep", t.ep},
                                                 {"nodes", t.nodes},
                                                 {"gpus_per_node", t.gpus_per_node}};
  for (const auto& [name, value] : degrees)
    if (value < 1) return fail(fmt::format("{} = {}, but a degree is at least 1", name, value));
  const auto world = product({t.dp, t.tp, t.pp, t.cp});
  const auto placed = product({t.nodes, t.gpus_per_node});
  if (!world || !placed)
    return fail(fmt::format("dp {} x tp {} x pp {} x cp {} on {} nodes x {} ranks is beyond 64 bits", t.dp,
                            t.tp, t.pp, t.cp, t.nodes, t.gpus_per_node));
  if (*world != *placed)
    return fail(fmt::format("dp {} x tp {} x pp {} x cp {} = {} ranks, but nodes {} x gpus_per_node {} = {}",
                            t.dp, t.tp, t.pp, t.cp, *world, t.nodes, t.gpus_per_node, *placed));
  if ((t.dp * t.cp) % t.ep != 0)
    return fail(fmt::format("ep {} does not divide dp {} x cp {} = {}", t.ep, t.dp, t.cp, t.dp * t.cp));
  const i64 dp_shard = t.dp_shard.value_or(t.dp);
  if (dp_shard < 1 || t.dp % dp_shard != 0)
    return fail(fmt::format("dp_shard {} does not divide dp {}", dp_shard, t.dp));
  return ParallelDims{t.dp, t.tp, t.pp, t.cp, t.ep, dp_shard, shape::kv_sharers(t)};
}

const char* name_of(Dimension dimension) {
  constexpr std::array<const char*, kDimensions> kNames{"world",     "tp", "cp",        "pp",   "dp", "shard",
                                                        "replicate", "ep", "expert_dp", "ends", "kv"};
  return kNames[static_cast<std::size_t>(dimension)];
}

Place ParallelDims::place(i64 rank) const {
  return {rank % tp, rank / tp % cp, rank / (tp * cp) % dp, rank / (tp * cp * dp)};
}

i64 ParallelDims::rank_at(const Place& p) const {
  return ((p.pp * dp + p.dp) * cp + p.cp) * tp + p.tp;
}

// Two ranks share a group when they agree in everything that the group's dimension does not span.
bool ParallelDims::together(Dimension dimension, i64 left, i64 right) const {
  const Place a = place(left), b = place(right);
  const i64 token_a = a.dp * cp + a.cp, token_b = b.dp * cp + b.cp;  // which share of the tokens
  const bool stage = a.pp == b.pp, tensor = a.tp == b.tp, tokens = token_a == token_b;
  switch (dimension) {
    case Dimension::kWorld:
      return true;
    case Dimension::kTensor:
      return stage && tokens;
    case Dimension::kContext:
      return stage && tensor && a.dp == b.dp;
    case Dimension::kPipeline:
      return tensor && tokens;
    case Dimension::kData:
      return stage && tensor;
    case Dimension::kShard:
      return stage && tensor && a.dp / dp_shard == b.dp / dp_shard;
    case Dimension::kReplicate:
      return stage && tensor && a.dp % dp_shard == b.dp % dp_shard && a.cp == b.cp;
    case Dimension::kExpert:
      return stage && tensor && token_a / ep == token_b / ep;
    case Dimension::kExpertData:
      return stage && tensor && token_a % ep == token_b % ep;
    case Dimension::kEnds: {
      const auto end = [this](const Place& p) { return p.pp == 0 || p.pp == pp - 1; };
      return left == right || (tensor && tokens && end(a) && end(b));
    }
    case Dimension::kKeyValue:
      return stage && tokens && a.tp / kv_sharers == b.tp / kv_sharers;
  }
  return false;
}

std::vector<i64> ParallelDims::group(Dimension dimension, i64 rank) const {
  std::vector<i64> members;
  for (i64 other = 0; other < world(); ++other)
    if (together(dimension, rank, other)) members.push_back(other);
  return members;
}

}  // namespace sweep::shape
