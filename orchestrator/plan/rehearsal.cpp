#include "orchestrator/plan/rehearsal.h"

#include <numeric>

#include "bench_kernels/shape/parallel_dims.h"

namespace sweep::plan {

Expected<std::vector<i64>> rehearsed_ranks(const Trial& trial, i64 most) {
  const auto dims = shape::ParallelDims::make(trial);
  if (!dims) return tl::unexpected(dims.error());
  std::vector<i64> ranks(static_cast<std::size_t>(dims->world() <= most ? dims->world() : dims->pp));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (dims->world() > most)
    for (i64& rank : ranks) rank = dims->rank_at({.pp = rank});
  return ranks;
}

}  // namespace sweep::plan
