#include "orchestrator/predict/cost/exchange_cost.h"

#include <algorithm>
#include <cmath>

#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/quantized_base.h"
#include "bench_kernels/shape/splits.h"

namespace sweep::predict {
namespace {

const char* backend_name(const Trial& t) {
  if (t.backend != CommBackend::kAuto) return to_string(t.backend).data();
  return t.hardware != "cpu" ? "nccl" : t.nodes > 1 ? "gloo" : "shm";
}

}  // namespace

ExchangeCost::ExchangeCost(const CostCase& c) : c_(c), backend_(backend_name(c.trial)) {}

double ExchangeCost::wire(const char* kind, double calls, double bytes, double ranks, double span) const {
  if (ranks <= 1) return 0;
  // Links are measured by nodes; the catalogue's reach over a rack.
  const auto nodes_of = [&](i64 gpus) { return std::max(1.0, span / real(gpus)); };
  if (const auto* link =
          c_.profile.link(kind, backend_, std::min(ranks, span), nodes_of(c_.trial.gpus_per_node)))
    return calls * link->latency_s + bytes / link->bandwidth;
  const double nodes = nodes_of(std::max(c_.trial.gpus_per_node, c_.hardware.linked_gpus));
  constexpr double kLatency = 20e-6;
  const std::string_view what = kind;
  const bool ring = what == "all_reduce" || what == "all_gather" || what == "reduce_scatter";
  return calls * kLatency + bytes / c_.hardware.ring_bandwidth(ring ? ranks : 1, nodes);
}

// With tp_overlap it goes in pieces beside the products: each piece has its start, and the bytes of the first one are
// waited for.
double ExchangeCost::of_stream(const char* kind, const shape::Volume& v) const {
  const Trial& t = c_.trial;
  if (!t.tp_overlap) return wire(kind, v, t.tp, t.tp);
  if (v.calls <= 0) return 0;
  return wire(kind, kOverlapPieces * real(v.calls), real(v.bytes) / kOverlapPieces, c_.tp, c_.tp);
}

double ExchangeCost::tensor() const {
  const Trial& t = c_.trial;
  if (t.tp <= 1) return 0;
  const auto v = shape::tensor_traffic(t);
  const auto kv = shape::key_value_traffic(t);
  return of_stream("all_reduce", v.all_reduce) + of_stream("all_gather", v.all_gather) +
         of_stream("reduce_scatter", v.reduce_scatter) + wire("all_gather", kv.all_gather, t.tp, t.tp) +
         wire("reduce_scatter", kv.reduce_scatter, t.tp, t.tp);
}

double ExchangeCost::context() const {
  const Trial& t = c_.trial;
  if (t.cp <= 1) return 0;
  const auto v = shape::context_traffic(t);
  return wire("send", v.send, t.cp, t.tp * t.cp) + wire("all_to_all", v.all_to_all, t.cp, t.tp * t.cp);
}

double ExchangeCost::experts() const {
  const Trial& t = c_.trial;
  if (t.ep <= 1) return 0;
  const auto v = shape::expert_traffic(t);
  return c_.expert_load() * wire("all_to_all", v.all_to_all, t.ep, t.tp * t.ep) +
         wire("all_to_all", v.counts, t.ep, t.tp * t.ep) + wire("all_reduce", v.load, t.dp, t.tp * t.dp);
}

ExchangeCost::OfStates ExchangeCost::of_states(const StepParameters& parameters, double table) const {
  const Trial& t = c_.trial;
  const auto& [trained, frozen] = parameters;
  // The table stays from forward to backward.
  const bool stays = t.pp == 1 && (t.spec.tie_embeddings || t.spec.has_encoder());
  const double shared = stays ? table : 0, chunks = real(t.vpp);
  const double codes = real(shape::quantized_weights(t)) / (c_.tp * real(t.pp));
  OfStates out;
  for (i64 chunk = 0; chunk < t.vpp; ++chunk) {
    const shape::PipelinePlace place{t.pp - 1, chunk};
    out.gathers += real(shape::weight_gathers(t, place)) / chunks;
    out.sent += shape::state_traffic(t, trained.dense / chunks, c_.adapters.any() ? 0 : shared, place);
    out.sent += shape::expert_state_traffic(t, trained.experts / real(t.ep) / chunks, place);
    out.sent +=
        shape::frozen_traffic(t, (on_rank(frozen) - codes) / chunks, c_.adapters.any() ? shared : 0, place);
    out.sent += shape::quantized_traffic(t, kCodeBytes * codes / chunks, 0, place);
  }
  return out;
}

double ExchangeCost::data_parallel(const StepParameters& parameters, double computing) const {
  const Trial& t = c_.trial;
  const i64 ranks = t.dp * t.cp, span = t.tp * ranks;
  if (ranks <= 1) return 0;
  const auto& [trained, frozen] = parameters;
  const double table = real(shape::padded_vocab(t)) * c_.hidden / c_.tp;
  const auto [sent, passes] = of_states(parameters, table);
  const double buckets =
      std::max(1.0, std::ceil(on_rank(trained) * c_.element / (real(t.grad_bucket_mb) * 1024 * 1024)));
  // ZeRO-3 gathers each layer and both ends for themselves, before forward and backward, and reduces them so.
  const double units = real(t.spec.all_layers()) / real(t.pp) + 2;
  const double gathers = t.zero < 3 ? buckets : passes * units;
  const double reduces = (t.zero >= 2 ? real(t.grad_accum) : 1) * (t.zero >= 3 ? units : buckets);
  double reduce = 0, gather = 0;
  const i64 set = shape::state_split(t).optimizer;  // ranks of a shard set; one without ZeRO
  if (sent.all_reduce > 0)
    reduce += wire("all_reduce", buckets, sent.all_reduce, real(ranks / set), real(span));
  const auto in_set = [&](const char* kind, double calls, double bytes) {
    return bytes > 0 ? wire(kind, calls, bytes, real(set), real(t.tp * set)) : 0;
  };
  reduce += in_set("reduce_scatter", reduces, sent.reduce_scatter);
  gather += in_set("all_gather", gathers, sent.all_gather);
  if (!c_.on_gpu()) return reduce + gather;
  // Beside the passes of a GPU, but for the tables: the token table's gradient comes last and ZeRO-3 gathers it first;
  // the head's is gathered again where its backward follows its forward.
  const double micros = real(t.grad_accum);
  const double share = std::min(1.0, table / std::max(1.0, on_rank(trained) + on_rank(frozen)));
  if (t.zero < 3) {
    const double of_table = share * reduce / (t.zero == 2 ? micros : 1);
    return gather + std::max(of_table, reduce - computing * 2 / 3 / (t.zero == 2 ? 1 : micros));
  }
  const double in_forward = t.reshard_after_forward ? gather / 2 : gather;
  const double waited = (t.prefetch_forward == 0 ? in_forward : 0) +
                        (shape::blocks_ahead_in_backward(t) == 0 ? gather - in_forward : 0);
  const double ends = reduce / micros + (gather - waited) / micros;
  return waited + std::max(share * ends, reduce + gather - waited - computing);
}

double ExchangeCost::message() const {
  const Trial& t = c_.trial;
  return wire("send", 1, c_.tokens * c_.hidden * c_.element / (t.sp ? c_.tp : 1), 2, t.world());
}

}  // namespace sweep::predict
