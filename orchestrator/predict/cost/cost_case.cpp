#include "orchestrator/predict/cost/cost_case.h"

#include <algorithm>
#include <cmath>

#include "bench_kernels/shape/splits.h"
#include "orchestrator/predict/memory.h"
#include "orchestrator/predict/trainer_profile.h"

namespace sweep::predict {
namespace {

// The measured copy nearest in size: caches hold small ones. Null: none was measured.
const CopyTiming* nearest_copy(const std::vector<CopyTiming>& copies, double bytes) {
  if (copies.size() == 1) return &copies.front();
  const CopyTiming* near = nullptr;
  double least = 1e300;
  for (const CopyTiming& c : copies)
    if (const double away = std::abs(std::log(real(c.bytes) / std::max(bytes, 1.0))); away < least)
      near = &c, least = away;
  return near;
}

}  // namespace

CostCase::CostCase(const Trial& t, const shape::HardwareProfile& p, const shape::Hardware& h,
                   const shape::KernelChoice& k)
    : trial(t),
      profile(p),
      hardware(h),
      facts(built_in_profile("sweep")->facts),
      kernels(k),
      adapters(shape::adapters_of(t)) {
  const ModelSpec& m = t.spec;
  tp = real(t.tp), element = element_bytes(t.precision);
  tokens = real(t.micro_batch_size) * real(t.seq_len) / real(t.cp);
  hidden = real(m.hidden_size), width = real(m.heads * m.head_dim) / tp;
  kv_width = real(shape::kv_heads_of_rank(t) * m.head_dim), intermediate = real(m.intermediate_size);
}

double CostCase::memory(double bytes) const {
  const CopyTiming* near = nearest_copy(profile.copies, bytes);
  const double bandwidth = near != nullptr ? real(near->bytes) / near->seconds : hardware.memory_bandwidth;
  return bytes / bandwidth;
}

double CostCase::expert_parameters() const {
  const ModelSpec& m = trial.spec;
  if (m.experts == 0) return 0;
  return real(m.layers - m.dense_layers) * real(m.experts) * (gates() + 1) * hidden * intermediate;
}

// Hot experts are the first eighth (routing.cpp). The load is bounded by the capacity. Of the ranks of a step the slowest
// counts.
double CostCase::expert_load() const {
  const Trial& t = trial;
  if (t.routing != Routing::kSkewed || t.ep <= 1) return 1;
  const double experts = real(t.spec.experts), own = experts / real(t.ep);
  const double hot = std::max(1.0, std::floor(experts / 8)), share = real(t.hot_percent) / 100;
  const double rest = hot < experts ? (1 - share) / (experts - hot) : 0;
  const double first = std::min(hot, own) * share / hot + std::max(0.0, own - hot) * rest;
  const double load = std::max({1.0, first * real(t.ep), own * rest * real(t.ep)});
  return t.capacity_percent > 0 ? std::min(load, std::max(1.0, real(t.capacity_percent) / 100)) : load;
}

}  // namespace sweep::predict
