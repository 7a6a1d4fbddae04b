#include "bench_kernels/shape/parallel_dims.h"

#include <array>

#include "bench_kernels/shape/rank_algebra.h"
#include "bench_kernels/shape/splits.h"

namespace sweep::shape {
Expected<ParallelDims> ParallelDims::make(const Trial& t) {
  const RankSizes sizes = RankSizes::of(t);
  if (const auto violation = broken_by_ranks(sizes)) return tl::unexpected(error_of(*violation, sizes));
  return ParallelDims{t.dp, t.tp, t.pp, t.cp, t.ep, sizes.dp_shard, shape::kv_sharers(t)};
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
  const i64 token_a = a.dp * cp + a.cp, token_b = b.dp * cp + b.cp;  // numbers of their shares of the tokens
  const bool stage = a.pp == b.pp, tensor = a.tp == b.tp, tokens = token_a == token_b;
  const bool set = stage && tensor && a.dp / dp_shard == b.dp / dp_shard;
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
      return set;
    case Dimension::kReplicate:
      return stage && tensor && a.dp % dp_shard == b.dp % dp_shard && a.cp == b.cp;
    case Dimension::kExpert:
      return stage && tensor && token_a / ep == token_b / ep;
    case Dimension::kExpertData:
      return set && token_a % ep == token_b % ep;
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
