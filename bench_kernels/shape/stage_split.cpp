#include "bench_kernels/shape/stage_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "bench_kernels/shape/count.h"
#include "bench_kernels/shape/family.h"

namespace sweep::shape {
namespace {

// The cost that one more layer, or an end, adds to a stage: FLOPs per token and parameters.
struct Cost {
  double flops = 0;
  i64 parameters = 0;
};

// Computed as the difference of two models, so that a layer's cost is written once (count.h). A model's first layers
// without experts count as the others: DeepSeek-V2 and V3 make them as wide as the experts that a token meets.
Cost layer_cost(const ModelSpec& spec, i64 seq_len) {
  ModelSpec one = spec, none = spec;
  none.layers = 0;
  if (spec.full_layers() > 0 && spec.full_layers() < spec.layers) {  // their mean
    const double all = model_flops_per_token(spec, seq_len) - model_flops_per_token(none, seq_len);
    return {all / static_cast<double>(spec.layers),
            (parameter_count(spec) - parameter_count(none)) / spec.layers};
  }
  one.layers = 1, one.dense_layers = 0;
  return {model_flops_per_token(one, seq_len) - model_flops_per_token(none, seq_len),
          parameter_count(one) - parameter_count(none)};
}

i64 activation_width(const Trial& t) {
  return t.precision == Precision::kFp32 ? 4 : 2;
}

}  // namespace

std::vector<StageShare> split_stages(const ModelSpec& spec, i64 stages, i64 seq_len) {
  const i64 dense = spec.experts > 0 ? spec.dense_layers : 0;
  if (stages == 1) return {StageShare{0, spec.layers, true, true, dense}};
  const Cost layer = layer_cost(spec, seq_len);
  ModelSpec none = spec;
  none.layers = 0;
  const i64 table = spec.vocab_size * spec.hidden_size;
  std::vector<Cost> costs(static_cast<std::size_t>(stages), layer);
  costs.front().parameters += table + position_elements(spec);
  costs.back().flops += model_flops_per_token(none, seq_len);
  costs.back().parameters += table;
  std::vector<StageShare> shares(costs.size(), StageShare{0, 1});
  for (i64 left = spec.layers - stages; left > 0; --left) {
    std::size_t least = 0;
    for (std::size_t s = 1; s < costs.size(); ++s) {
      if (std::tie(costs[s].flops, costs[s].parameters) <=
          std::tie(costs[least].flops, costs[least].parameters))
        least = s;
    }
    costs[least].flops += layer.flops;
    costs[least].parameters += layer.parameters;
    ++shares[least].layers;
  }
  for (std::size_t s = 1; s < shares.size(); ++s)
    shares[s].first_layer = shares[s - 1].first_layer + shares[s - 1].layers;
  for (StageShare& share : shares)
    share.dense_layers = std::clamp<i64>(dense - share.first_layer, 0, share.layers);
  shares.front().embedding = shares.back().head = true;
  return shares;
}

std::optional<std::string> pipeline_objection(const Trial& t) {
  const i64 layers = t.spec.layers;
  if (t.pp > layers) return fmt::format("pp {} > layers {}: a stage would be empty", t.pp, layers);
  if (t.vpp > 1 && t.schedule != Schedule::kInterleaved)
    return fmt::format("vpp {} > 1 with schedule {}: chunks need schedule interleaved", t.vpp, t.schedule);
  if (t.pp == 1 && t.schedule != Schedule::k1f1b)
    return fmt::format("schedule {} with pp 1: there is no pipeline to schedule; the same as 1f1b",
                       t.schedule);
  if (t.vpp > layers / t.pp)
    return fmt::format("pp {} x vpp {} > layers {}: a chunk would be empty", t.pp, t.vpp, layers);
  if (t.schedule == Schedule::kInterleaved && t.grad_accum % t.pp != 0)  // micro-batches go in groups of pp
    return fmt::format("schedule interleaved: grad_accum {} % pp {} = {}", t.grad_accum, t.pp,
                       t.grad_accum % t.pp);
  return std::nullopt;
}

std::optional<std::string> recompute_objection(const Trial& t) {
  if (t.schedule == Schedule::kZeroBubble && t.recompute != Recompute::kNone)
    return fmt::format(
        "schedule zero_bubble with recompute {}: weight gradients that are put off need what recomputation "
        "drops",
        t.recompute);
  if (t.recompute_every == 1) return std::nullopt;
  if (t.recompute != Recompute::kFull)
    return fmt::format("recompute_every {} with recompute {}: it counts layers of recompute full",
                       t.recompute_every, t.recompute);
  if (t.recompute_every > t.spec.layers)
    return fmt::format("recompute_every {} > layers {}", t.recompute_every, t.spec.layers);
  return std::nullopt;
}

PipelineTraffic pipeline_traffic(const Trial& t, i64 rank) {
  const i64 message =
      t.micro_batch_size * t.seq_len / t.cp / (t.sp ? t.tp : 1) * t.spec.hidden_size * activation_width(t);
  PipelineTraffic traffic;
  for (i64 chunk = 0; chunk < t.vpp; ++chunk) {
    const i64 stage = chunk * t.pp + rank;
    const i64 neighbours = (stage > 0 ? 1 : 0) + (stage + 1 < t.pp * t.vpp ? 1 : 0);
    traffic.sends += neighbours * t.grad_accum;
  }
  traffic.receives = traffic.sends;
  traffic.bytes = traffic.sends * message;
  return traffic;
}

}  // namespace sweep::shape
