#include "bench_kernels/shape/schedule_times.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace sweep::shape {

double cost_of(const Pipeline& p, const Costs& costs, Act act) {
  const double share = 1.0 / static_cast<double>(p.chunks);
  const bool split = splits_backward(p.kind);
  if (act == Act::kForward) return share * costs.forward;
  if (act == Act::kBackwardWeight) return share * costs.backward_weight;
  return share * (split ? costs.backward - costs.backward_weight : costs.backward);
}

namespace {

// When the forward and the backward of each virtual stage and micro-batch ended.
class Ends {
 public:
  explicit Ends(const Pipeline& p) : p_(p), at_(static_cast<std::size_t>(2 * p.stages() * p.micros)) {}
  std::optional<double>& of(i64 stage, i64 micro, bool forward) {
    return at_[static_cast<std::size_t>((stage * p_.micros + micro) * 2 + (forward ? 0 : 1))];
  }
  // When the computation's input is there; nothing: not yet.
  std::optional<double> ready(i64 rank, const Action& a) {
    const i64 stage = p_.stage(rank, a.chunk);
    if (a.act == Act::kForward) return stage == 0 ? 0.0 : of(stage - 1, a.micro, true);
    if (a.act == Act::kBackwardWeight) return of(stage, a.micro, false);
    const auto own = of(stage, a.micro, true);
    if (stage + 1 == p_.stages() || !own) return own;
    return of(stage + 1, a.micro, false);
  }

 private:
  const Pipeline& p_;
  std::vector<std::optional<double>> at_;
};

}  // namespace

std::vector<std::vector<Span>> run_computations(const Pipeline& p,
                                                const std::vector<ActionList>& computations,
                                                const Costs& costs) {
  return run_computations(p, computations, std::vector<Costs>(computations.size(), costs));
}

std::vector<std::vector<Span>> run_computations(const Pipeline& p,
                                                const std::vector<ActionList>& computations,
                                                std::span<const Costs> costs) {
  Ends ends(p);
  std::vector<std::vector<Span>> spans(computations.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < computations.size(); ++rank) {
      auto& mine = spans[rank];
      while (mine.size() < computations[rank].size()) {
        const Action& a = computations[rank][mine.size()];
        const auto ready = ends.ready(static_cast<i64>(rank), a);
        if (!ready) break;
        const double start = std::max(*ready, mine.empty() ? 0.0 : mine.back().end);
        mine.push_back({a, start, start + cost_of(p, costs[rank], a.act)});
        if (a.act != Act::kBackwardWeight)
          ends.of(p.stage(static_cast<i64>(rank), a.chunk), a.micro, a.act == Act::kForward) =
              mine.back().end;
        moved = true;
      }
    }
  }
  return spans;
}

}  // namespace sweep::shape
