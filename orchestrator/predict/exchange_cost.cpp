// The cost of a step beside its layers: exchanges between ranks, the update, and moves to the host.
#include <algorithm>
#include <cmath>

#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/quantized_base.h"
#include "bench_kernels/shape/splits.h"
#include "orchestrator/predict/cost_model.h"
#include "orchestrator/predict/trainer_profile.h"

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

// `bytes` are those on the wire, as the bus bandwidth counts them; `span`: ranks from the group's first to
// its last.
double CostModel::wire(const char* kind, double calls, double bytes, double ranks, double span) const {
  if (ranks <= 1) return 0;
  // Links are measured by nodes; the catalogue's reach over a rack.
  const auto nodes_of = [&](i64 gpus) { return std::max(1.0, span / real(gpus)); };
  if (const auto* link = p_.link(kind, backend_, std::min(ranks, span), nodes_of(t_.gpus_per_node)))
    return calls * link->latency_s + bytes / link->bandwidth;
  const double nodes = nodes_of(std::max(t_.gpus_per_node, h_.linked_gpus));
  constexpr double kLatency = 20e-6;
  const std::string_view what = kind;
  const bool ring = what == "all_reduce" || what == "all_gather" || what == "reduce_scatter";
  return calls * kLatency + bytes / h_.ring_bandwidth(ring ? ranks : 1, nodes);
}

// With tp_overlap the exchanges of the residual stream go in pieces beside the products: each piece has its start, and
// the bytes of the first one are waited for.
double CostModel::tensor() const {
  if (t_.tp <= 1) return 0;
  const auto v = shape::tensor_traffic(t_);
  const auto kv = shape::key_value_traffic(t_);
  const auto of_stream = [&](const char* kind, const shape::Volume& volume) {
    if (!t_.tp_overlap) return wire(kind, volume, t_.tp, t_.tp);
    return volume.calls > 0 ? wire(kind, kOverlapPieces * real(volume.calls),
                                   real(volume.bytes) / kOverlapPieces, tp_, tp_)
                            : 0;
  };
  return of_stream("all_reduce", v.all_reduce) + of_stream("all_gather", v.all_gather) +
         of_stream("reduce_scatter", v.reduce_scatter) + wire("all_gather", kv.all_gather, t_.tp, t_.tp) +
         wire("reduce_scatter", kv.reduce_scatter, t_.tp, t_.tp);
}

double CostModel::context() const {
  if (t_.cp <= 1) return 0;
  const auto v = shape::context_traffic(t_);
  return wire("send", v.send, t_.cp, t_.tp * t_.cp) + wire("all_to_all", v.all_to_all, t_.cp, t_.tp * t_.cp);
}

double CostModel::experts() const {
  if (t_.ep <= 1) return 0;
  const auto v = shape::expert_traffic(t_);
  return expert_load() * wire("all_to_all", v.all_to_all, t_.ep, t_.tp * t_.ep) +
         wire("all_to_all", v.counts, t_.ep, t_.tp * t_.ep) +
         wire("all_reduce", v.load, t_.dp, t_.tp * t_.dp);
}

double CostModel::data_parallel(const Numbers& trained, const Numbers& frozen, double computing) const {
  const i64 ranks = t_.dp * t_.cp, span = t_.tp * ranks;
  if (ranks <= 1) return 0;
  const double table = real(shape::padded_vocab(t_)) * hidden_ / tp_;
  // The table stays from forward to backward.
  const bool stays = t_.pp == 1 && (t_.spec.tie_embeddings || t_.spec.has_encoder());
  const double shared = stays ? table : 0, chunks = real(t_.vpp);
  const double codes = real(shape::quantized_weights(t_)) / (tp_ * real(t_.pp));
  shape::StateTraffic v;
  double passes = 0;  // passes in a step that gather the weights, on the last stage, which gathers most often
  for (i64 chunk = 0; chunk < t_.vpp; ++chunk) {
    const shape::PipelinePlace place{t_.pp - 1, chunk};
    passes += real(shape::weight_gathers(t_, place)) / chunks;
    v += shape::state_traffic(t_, trained.dense / chunks, adapters_.any() ? 0 : shared, place);
    v += shape::expert_state_traffic(t_, trained.experts / real(t_.ep) / chunks, place);
    v += shape::frozen_traffic(t_, (on_rank(frozen) - codes) / chunks, adapters_.any() ? shared : 0, place);
    v += shape::quantized_traffic(t_, kCodeBytes * codes / chunks, 0, place);
  }
  const double buckets =
      std::max(1.0, std::ceil(on_rank(trained) * element_ / (real(t_.grad_bucket_mb) * 1024 * 1024)));
  // ZeRO-3 gathers each layer and both ends for themselves, before forward and backward, and reduces them so.
  const double units = real(t_.spec.all_layers()) / real(t_.pp) + 2;
  const double gathers = t_.zero < 3 ? buckets : passes * units;
  const double reduces = (t_.zero >= 2 ? real(t_.grad_accum) : 1) * (t_.zero >= 3 ? units : buckets);
  double reduce = 0, gather = 0;
  const i64 set = shape::state_split(t_).optimizer;  // ranks of a shard set; one without ZeRO
  if (v.all_reduce > 0) reduce += wire("all_reduce", buckets, v.all_reduce, real(ranks / set), real(span));
  const auto in_set = [&](const char* kind, double calls, double bytes) {
    return bytes > 0 ? wire(kind, calls, bytes, real(set), real(t_.tp * set)) : 0;
  };
  reduce += in_set("reduce_scatter", reduces, v.reduce_scatter);
  gather += in_set("all_gather", gathers, v.all_gather);
  if (!on_gpu()) return reduce + gather;
  // Beside the passes of a GPU, but for the tables: the token table's gradient comes last and ZeRO-3 gathers it first;
  // the head's is gathered again where its backward follows its forward.
  const double micros = real(t_.grad_accum);
  const double share = std::min(1.0, table / std::max(1.0, on_rank(trained) + on_rank(frozen)));
  if (t_.zero < 3) {
    const double of_table = share * reduce / (t_.zero == 2 ? micros : 1);
    return gather + std::max(of_table, reduce - computing * 2 / 3 / (t_.zero == 2 ? 1 : micros));
  }
  const double in_forward = t_.reshard_after_forward ? gather / 2 : gather;
  const double waited = (t_.prefetch_forward == 0 ? in_forward : 0) +
                        (shape::blocks_ahead_in_backward(t_) == 0 ? gather - in_forward : 0);
  const double ends = reduce / micros + (gather - waited) / micros;
  return waited + std::max(share * ends, reduce + gather - waited - computing);
}

void CostModel::optimizer(const Numbers& trained, const Numbers& frozen, StepCost& out) const {
  const auto split = shape::state_split(t_);
  const auto on_device = [&](shape::StateBytes (*of)(const Trial&)) {
    if (t_.offload == Offload::kNone) return of(t_);
    Trial there = t_;
    there.offload = Offload::kNone;
    return of(there);
  };
  const auto bytes = on_device(shape::state_bytes), of_experts = on_device(shape::expert_state_bytes);
  // Parameters that a rank updates, and the bytes of gradients beside them: of its share also where it has all gradients.
  const double experts_over = real(t_.ep * (t_.zero >= 1 ? shape::expert_shard_ranks(t_) : 1));
  const double updated = trained.dense / real(split.optimizer) + trained.experts / experts_over;
  const double gradients = real(shape::bytes_of(shape::state_types(t_).gradients)) * updated;
  // Values, gradients and moments are read, values and moments written.
  const bool paged = t_.optimizer == OptimizerKind::kPagedAdamw;
  const double moved =  // moments that come from the host and go back
      paged ? 2 * updated * 2 * real(shape::bytes_of(shape::state_types(t_).moments)) : 0;
  const double states = trained.dense * bytes.optimizer + trained.experts * of_experts.optimizer;
  const double traffic = 2 * states + gradients + 2 * element_ * updated + moved;
  // Operators on lists take so many numbers in a launch (320 blocks of 65,536).
  constexpr double kOperators = 8, kListed = 320 * 65536.0;
  const double passes = passes_of(t_.optimizer), layers = real(t_.spec.all_layers()) / real(t_.pp);
  const double lists =
      t_.optimizer == OptimizerKind::kForeach ? std::ceil(updated / kListed) : facts_.layer_tensors * layers;
  const double launched = (passes > 1 ? kOperators * lists : 4) * p_.launch_s;
  const double moving = passes * memory(traffic);
  out.optimizer_s = on_gpu() ? std::max(moving, launched) : moving + launched;
  if (t_.grad_clip)
    out.optimizer_s += memory(2 * (trained.dense * bytes.gradients + trained.experts * of_experts.gradients));
  const bool on_disk = t_.offload == Offload::kDisk || t_.offload == Offload::kDiskParameters;
  const double link = on_disk ? kFiles : kHostLink;
  const auto away = [&](double of) { return h_.gpu.empty() ? memory(of) : of / link; };
  // Beside the update, but for what takes longer than it.
  if (paged) out.offload_s = std::max(0.0, away(moved) - out.optimizer_s);
  if (t_.offload == Offload::kNone) return;
  out.offload_s = away(2 * traffic);
  if (shape::parameters_outside(t_))
    out.offload_s +=
        real(t_.grad_accum) * away(2 * ((trained.dense + frozen.dense) * bytes.weights +
                                        (trained.experts + frozen.experts) * of_experts.weights));
}

}  // namespace sweep::predict
