#include "bench_kernels/shape/stage_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/number_in.h"
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

// The numbers of stage_layers, which stand apart by one space each; empty where the text is no such list.
std::vector<i64> listed_layers(std::string_view text) {
  std::vector<i64> layers;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const auto number = number_in<i64>(text.substr(at, end - at));
    if (!number || *number < 1 || *number > 1'000'000 || end + 1 == text.size()) return {};
    layers.push_back(*number);
    at = end + 1;
  }
  return layers;
}

std::optional<std::string> listed_objection(const Trial& t) {
  if (t.stage_layers.empty()) return {};
  if (t.pp == 1) return "stage_layers with pp 1: there is one stage, which has all layers; leave it out";
  if (t.vpp > 1)
    return fmt::format("stage_layers with vpp {}: it lists the layers of stages, not of chunks; use vpp 1",
                       t.vpp);
  const auto layers = listed_layers(t.stage_layers);
  const i64 sum = std::accumulate(layers.begin(), layers.end(), i64{0});
  if (static_cast<i64>(layers.size()) == t.pp && sum == t.spec.layers) return {};
  return fmt::format(
      "stage_layers '{}': pp {} takes {} numbers from 1, one space apart, whose sum is the model's {} layers",
      t.stage_layers.substr(0, 60), t.pp, t.pp, t.spec.layers);
}

// The first layers, the layers without experts and the ends, of shares that know how many layers they have.
std::vector<StageShare> completed(std::vector<StageShare> shares, const ModelSpec& spec) {
  const i64 dense = spec.experts > 0 ? spec.dense_layers : 0;
  for (std::size_t s = 1; s < shares.size(); ++s)
    shares[s].first_layer = shares[s - 1].first_layer + shares[s - 1].layers;
  for (StageShare& share : shares)
    share.dense_layers = std::clamp<i64>(dense - share.first_layer, 0, share.layers);
  shares.front().embedding = shares.back().head = true;
  return shares;
}

i64 activation_width(const Trial& t) {
  return t.precision == Precision::kFp32 ? 4 : 2;
}

std::vector<StageShare> balanced(const ModelSpec& spec, i64 stages, i64 seq_len) {
  if (stages == 1) return completed({StageShare{0, spec.layers}}, spec);
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
  return completed(std::move(shares), spec);
}

}  // namespace

// Keeps the last answers: a plan asks several times for each trial, by chunks and by ranks, and neighbours mostly have
// the same stages.
std::vector<StageShare> split_stages(const ModelSpec& spec, i64 stages, i64 seq_len) {
  struct Answer {
    ModelSpec spec;
    i64 stages = 0, seq_len = 0;
    std::vector<StageShare> shares;
  };
  thread_local std::array<Answer, 2> last;
  for (const Answer& a : last)
    if (a.stages == stages && a.seq_len == seq_len && a.spec == spec) return a.shares;
  std::swap(last.front(), last.back());
  last.front() = {spec, stages, seq_len, balanced(spec, stages, seq_len)};
  return last.front().shares;
}

std::vector<StageShare> split_stages(const Trial& t, i64 stages) {
  const auto listed = listed_layers(t.stage_layers);
  if (static_cast<i64>(listed.size()) != stages) return split_stages(t.spec, stages, t.seq_len);
  std::vector<StageShare> shares;
  for (const i64 layers : listed) shares.push_back({0, layers});
  return completed(std::move(shares), t.spec);
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
  if (auto sentence = listed_objection(t)) return sentence;
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
