#include "orchestrator/predict/cost/update_cost.h"

#include <algorithm>
#include <cmath>

#include "bench_kernels/shape/model_states.h"

namespace sweep::predict {
namespace {

// Bytes per second of a node's files for each of its ranks: assumed, of one NVMe drive.
constexpr double kFiles = 3e9;

double passes_of(OptimizerKind kind) {
  if (kind == OptimizerKind::kPlain) return 3;
  if (kind == OptimizerKind::kAdafactor) return 4;  // gradients and values; its own state is small
  return kind == OptimizerKind::kForeach ? 3 : 1;
}

}  // namespace

UpdateCost update_cost(const CostCase& c, const StepParameters& parameters) {
  const Trial& t = c.trial;
  const auto& [trained, frozen] = parameters;
  UpdateCost out;
  const auto split = shape::state_split(t);
  const auto on_device = [&](shape::StateBytes (*of)(const Trial&)) {
    if (t.offload == Offload::kNone) return of(t);
    Trial there = t;
    there.offload = Offload::kNone;
    return of(there);
  };
  const auto bytes = on_device(shape::state_bytes), of_experts = on_device(shape::expert_state_bytes);
  // Parameters that a rank updates, and the bytes of gradients beside them: of its share also where it has all gradients.
  const double experts_over = real(t.ep * (t.zero >= 1 ? shape::expert_shard_ranks(t) : 1));
  const double updated = trained.dense / real(split.optimizer) + trained.experts / experts_over;
  const double gradients = real(shape::bytes_of(shape::state_types(t).gradients)) * updated;
  // Values, gradients and moments are read, values and moments written.
  const bool paged = t.optimizer == OptimizerKind::kPagedAdamw;
  const double moved =  // moments that come from the host and go back
      paged ? 2 * updated * 2 * real(shape::bytes_of(shape::state_types(t).moments)) : 0;
  const double states = trained.dense * bytes.optimizer + trained.experts * of_experts.optimizer;
  const double traffic = 2 * states + gradients + 2 * c.element * updated + moved;
  // Operators on lists take so many numbers in a launch (320 blocks of 65,536).
  constexpr double kOperators = 8, kListed = 320 * 65536.0;
  const double passes = passes_of(t.optimizer), layers = real(t.spec.all_layers()) / real(t.pp);
  const double lists =
      t.optimizer == OptimizerKind::kForeach ? std::ceil(updated / kListed) : c.facts.layer_tensors * layers;
  const double launched = (passes > 1 ? kOperators * lists : 4) * c.profile.launch_s;
  const double moving = passes * c.memory(traffic);
  out.optimizer_s = c.on_gpu() ? std::max(moving, launched) : moving + launched;
  if (t.grad_clip)
    out.optimizer_s +=
        c.memory(2 * (trained.dense * bytes.gradients + trained.experts * of_experts.gradients));
  const bool on_disk = t.offload == Offload::kDisk || t.offload == Offload::kDiskParameters;
  const double link = on_disk ? kFiles : kHostLink;
  const auto away = [&](double of) { return c.on_gpu() ? of / link : c.memory(of); };
  // Beside the update, but for what takes longer than it.
  if (paged) out.offload_s = std::max(0.0, away(moved) - out.optimizer_s);
  if (t.offload == Offload::kNone) return out;
  out.offload_s = away(2 * traffic);
  if (shape::parameters_outside(t))
    out.offload_s += real(t.grad_accum) * away(2 * ((trained.dense + frozen.dense) * bytes.weights +
                                                    (trained.experts + frozen.experts) * of_experts.weights));
  return out;
}

}  // namespace sweep::predict
