#include "orchestrator/plan/rehearsal.h"

#include <numeric>

#include "bench_kernels/shape/optimizer_states.h"
#include "bench_kernels/shape/parallel_dims.h"
#include "orchestrator/predict/memory.h"

namespace sweep::plan {

Expected<std::vector<i64>> rehearsed_ranks(const Trial& trial, i64 most) {
  SWEEP_GET(const auto dims, shape::ParallelDims::make(trial));
  std::vector<i64> ranks(static_cast<std::size_t>(dims.world() <= most ? dims.world() : dims.pp));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (dims.world() > most)
    for (i64& rank : ranks) rank = dims.rank_at({.pp = rank});
  return ranks;
}

double rehearsed_host_bytes(const Trial& trial, i64 most) {
  if (trial.offload != Offload::kOptimizer && trial.offload != Offload::kParameters) return 0;
  const auto ranks = rehearsed_ranks(trial, most);
  Trial on_device = trial;
  on_device.offload = Offload::kNone;
  const auto types = shape::state_types(trial);
  const double moments = shape::moment_bytes_each(trial.optimizer, types);
  const double of_state = moments == 0 ? 0 : moments / (moments + (types.master ? 4 : 0));
  double of_stages = 0;
  for (const auto& stage : predict::estimate_memory(on_device, shape::Ranks::kAll).of_ranks)
    of_stages += stage[shape::MemoryPart::kOptimizer] * of_state;
  const auto started = ranks ? static_cast<double>(ranks->size()) : 0;
  return of_stages * started / static_cast<double>(trial.pp);
}

}  // namespace sweep::plan
