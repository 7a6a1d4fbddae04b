#include "orchestrator/predict/time_model.h"

#include <algorithm>
#include <cmath>

#include "bench_kernels/shape/pipeline_time.h"
#include "bench_kernels/shape/stage_split.h"
#include "orchestrator/predict/expert_time.h"
#include "orchestrator/predict/step_cost.h"

namespace sweep::predict {

namespace {

// Tensor-parallel collectives of a layer's forward, which recomputation repeats.
constexpr double kForwardCollectives = 4;
// Bytes the optimizer reads and writes per parameter.
constexpr double kOptimizerTraffic = 30;
// Bytes that a score of `attention: math` moves where the profile has no figure: it passes five times in 16 bits,
// forward and backward, as Megatron-LM's does (profiles/megatron.json).
constexpr double kMathTraffic = 20;
// A ring of NCCL: until its first step, and each step over NVLink (baseLat and hwLat of the tuning model of NCCL 2.18: ring,
// protocol Simple).
constexpr double kRingStart = 8.4e-6, kNearStep = 3.4e-6;

// A micro-batch's seconds in parts as long as its forward: without gradients of weights a backward is one part, else two.
double forwards(const Layout& l) {
  return l.base.frozen ? 2 : 3;
}

// Interpolates log-log; beyond the table its ends hold.
double bandwidth(const std::vector<double>& nodes, const std::vector<double>& values, double n) {
  if (n <= nodes.front()) return values.front();
  for (std::size_t i = 1; i < nodes.size(); ++i)
    if (n <= nodes[i]) {
      const double at = std::log(n / nodes[i - 1]) / std::log(nodes[i] / nodes[i - 1]);
      return values[i - 1] * std::exp(at * std::log(values[i] / values[i - 1]));
    }
  return values.back();
}

struct Links {
  const Layout& l;
  const TrainerProfile& p;
  const shape::Hardware& h;
  bool measured() const { return !p.links.nodes.empty() && p.hardware == h.name; }
  // GPUs that the fast links join: a node, or a rack of several. Links are measured by nodes.
  double joined() const {
    return measured() ? l.ranks.gpus_per_node : std::max(l.ranks.gpus_per_node, real(h.linked_gpus));
  }
  double plain(double nodes) const { return nodes <= 1 ? h.intra_node_bandwidth : h.inter_node_bandwidth; }
  double all_gather(double ranks, double nodes) const {
    return measured() ? bandwidth(p.links.nodes, p.links.all_gather, nodes) : h.ring_bandwidth(ranks, nodes);
  }
  double all_reduce(double ranks, double nodes) const {
    return measured() ? bandwidth(p.links.nodes, p.links.all_reduce, nodes) : h.ring_bandwidth(ranks, nodes);
  }
};

double collectives(const Links& k) {
  return k.l.ranks.tp <= 1 ? 0 : k.p.facts.collectives + (k.l.passes.recompute ? kForwardCollectives : 0);
}

// Seconds for the bytes that a layer's tensor-parallel collectives carry.
double tensor_seconds(const Links& k) {
  const Layout& l = k.l;
  const double bytes = l.batch.tokens * l.model.hidden * l.types.element * (l.ranks.tp - 1) / l.ranks.tp /
                       (l.ranks.tp_overlap ? kOverlapPieces : 1);
  const double span = l.ranks.tp / k.joined();
  return collectives(k) * bytes /
         (span <= 1 ? k.h.intra_node_bandwidth * k.p.time.near_share
                    : k.all_gather(l.ranks.tp, span) * k.p.time.far_share);
}

// Keys and values around the ring of cp, forward, and with their gradients backward.
double context_seconds(const Links& k) {
  const Layout& l = k.l;
  if (l.ranks.cp <= 1) return 0;
  const double bytes =
      6 * (l.ranks.cp - 1) * l.batch.tokens * l.model.kv_width / l.ranks.tp * l.types.element;
  return bytes / k.plain(l.ranks.tp * l.ranks.cp / k.joined());
}

// Exchanges of data parallelism: those that the program may run beside its passes and those that it waits for. The
// gradient of a first stage's token table comes last and ZeRO-3 gathers it first, and the head's table is gathered again
// where its backward follows its forward: nothing is left to run beside that. Frozen tables have no gradient.
struct Exchanges {
  double beside = 0, waited = 0, ends = 0;
  double seconds(double passes) const { return waited + std::max(ends, beside - passes); }
};

// `codes`: those of the parameters that are kept as codes, which ZeRO-3 gathers.
Exchanges data_parallel(const Links& k, double parameters, double codes, double trained) {
  const Layout& l = k.l;
  if (l.ranks.dp * l.ranks.cp <= 1) return {};
  const ProfileFacts& f = k.p.facts;
  const auto span = [&](double ranks) {
    const double most = std::max(1.0, l.ranks.nodes * l.ranks.gpus_per_node / k.joined());
    return std::clamp(ranks * l.ranks.tp / k.joined(), 1.0, most);
  };
  const double ranks = l.ranks.dp * l.ranks.cp;
  const double reduce = f.gradient_bytes * trained / k.all_reduce(ranks, span(ranks));
  const double gathered = l.ranks.zero < 3
                              ? f.weight_bytes * trained
                              : f.weight_bytes * parameters + (kCodeBytes - f.weight_bytes) * codes;
  const double gather = gathered / k.all_gather(l.ranks.shard, span(l.ranks.shard));
  const double table = std::min(1.0, l.model.vocab * l.model.hidden / l.ranks.tp / parameters);
  const double last = l.base.frozen ? 0 : reduce;
  if (l.ranks.zero < 1) return {reduce, 0, table * last};
  if (l.ranks.zero < 3) return {0.5 * reduce, gather, table * 0.5 * last};
  return {l.batch.micros * (0.5 * reduce + 2 * gather), 0, table * (0.5 * last + 2 * gather)};
}

// Seconds from the first forward to the last backward. Under 1f1b the slowest stage works on every micro-batch and
// the others add their one, which is what a walk gives; other schedules are walked.
double pipeline_seconds(const Layout& l, const std::vector<double>& stages) {
  double slowest = 0, all = 0;
  for (const double s : stages) slowest = std::max(slowest, s), all += s;
  const shape::Pipeline& p = l.pipeline;
  constexpr i64 kMostWalked = 256;
  const bool can_be = p.ranks <= kMostWalked && (p.chunks == 1 || p.micros % p.ranks == 0);
  if (p.kind == Schedule::k1f1b || p.ranks == 1 || !can_be) return (l.batch.micros - 1) * slowest + all;
  const double parts = forwards(l), chunks = static_cast<double>(p.chunks);
  thread_local std::vector<shape::StageSeconds> virtual_stages;
  virtual_stages.clear();
  for (i64 chunk = 0; chunk < p.chunks; ++chunk)
    for (const double s : stages)
      virtual_stages.push_back({s / parts / chunks, s * (parts - 1) / parts / chunks});
  return shape::pipeline_seconds(p, virtual_stages, 0);
}

// The bytes of a layer that rounding to fp8 moves: of each product's input, of the gradient of its result and of
// its weight 16 bits are read, and two copies of a byte are written, one of them transposed (Transformer Engine).
double rounded_bytes(const Layout& l) {
  constexpr double kEach = 4;
  const double gates = l.model.gated ? 2 : 1, copies = l.experts.top_k;
  const double inputs = l.model.hidden + l.model.width + copies * l.model.hidden + l.model.wide;
  const double results =
      l.model.width + 2 * l.model.kv_width + l.model.hidden + gates * l.model.wide + copies * l.model.hidden;
  return kEach * (l.batch.tokens * (inputs + results) + l.model.layer_parameters) / l.ranks.tp;
}

// The bytes of a layer that operators of PyTorch move which no compiler has fused, and copies that put gathered sequences
// in order.
double loose_bytes(const Links& k) {
  const Layout& l = k.l;
  const ProfileFacts& f = k.p.facts;
  const double stream = l.model.hidden / (l.ranks.whole_norms ? 1 : l.ranks.tp),
               heads = (l.model.width + l.model.kv_width) / l.ranks.tp;
  const double columns = f.norm_traffic * (2 * stream + (l.model.normed_heads ? heads : 0)) +
                         f.turn_traffic * heads + f.residual_traffic * stream;
  return l.batch.tokens * columns;
}

double copied_bytes(const Links& k) {
  const Layout& l = k.l;
  return 2 * k.p.facts.gather_copies * collectives(k) * l.batch.tokens * l.model.hidden * l.types.element;
}

// How many times as large a share of the peak products reach here as where matmul_share was measured.
double reach_beside(const ProfileFacts& f, const shape::Hardware& h) {
  return h.product_reach > 0 && f.product_reach > 0 ? h.product_reach / f.product_reach : 1;
}

double attention_share(const ProfileFacts& f, const shape::Hardware& h) {
  const bool ampere = h.compute_capability.starts_with("8.");
  return ampere && f.attention_ampere > 0 ? f.attention_ampere : f.attention_share;
}

}  // namespace

void TimeModel::divide(const Trial& t, std::vector<StageWork>& stages) const {
  stages.assign(static_cast<std::size_t>(t.pp), {});
  if (t.pp > t.spec.layers) {
    for (auto& s : stages) s.empty = true;
    return;
  }
  const auto shares = shape::split_stages(t, t.pp);
  for (std::size_t i = 0; i < shares.size(); ++i)
    stages[i] = {real(shares[i].layers), 0, 1, shares[i].embedding, shares[i].head, shares[i].head, false};
}

void TimeModel::stage_times(const Layout& l, const TrainerProfile& p, const shape::Hardware& h,
                            StageTimes& out) const {
  const TimeParameters& t = p.time;
  const Links links{l, p, h};
  // Without a peak no time is told (why_no_time); memory asks whether the host or the GPU is behind.
  const double peak = h.peak_for(l.types.precision, l.types.tf32).value_or(1e12);
  // Attention and the head stay in 16 bits with fp8.
  const double half = l.types.fp8 ? h.peak_for(Precision::kBf16, false).value_or(peak) : peak;
  const double reach = l.types.fp32 ? 1 : reach_beside(p.facts, h);
  const double flops = peak * t.matmul_share * (l.types.fp8 ? 1 : reach),
               half_flops = half * t.matmul_share * reach;
  const double memory = h.memory_bandwidth * t.bandwidth_share, streamed = h.memory_bandwidth * kGpuMemory;
  const double again = 1 + (l.passes.recompute ? 1 : l.passes.selective ? p.facts.selective_again : 0) / 3;
  // A frozen weight has no gradient: its forward, which is computed again, is half of its products.
  const double each = l.base.frozen ? 4 * (1 + 1.5 * (again - 1)) / again : 6;
  const double products = each * l.model.active_parameters / l.ranks.tp * l.batch.tokens;
  const double of_score =
      l.passes.math_attention && p.facts.score_traffic == 0 ? kMathTraffic : p.facts.score_traffic;
  const double traffic = l.passes.written_out ? of_score : 0;
  const double share = traffic > 0 ? 1 : attention_share(p.facts, h);  // FlashAttention's share
  const double keys =
      traffic > 0 ? l.batch.sequence / 2 : l.batch.keys;  // scores that are written out are of all keys
  const double attention = 14 * l.batch.tokens * keys * l.model.width / l.ranks.tp / share;
  const double saved =
      (p.facts.hidden_saved * l.model.hidden + wide_tensors(l, p.facts) * l.model.wide) / l.ranks.tp;
  const double moved = 3 * l.types.element * saved * l.batch.tokens + (l.types.fp8 ? rounded_bytes(l) : 0) +
                       traffic * l.batch.tokens * l.batch.sequence * l.model.heads / l.ranks.tp;
  const double values = l.base.dequantized * (l.types.element + kCodeBytes);  // codes read, values written
  const ExpertTime experts = expert_time(l, p, flops, memory);
  const double beside = experts.gpu + loose_bytes(links) / streamed;
  const double calls = collectives(links);
  const CollectiveStarts waits =
      calls > 0 ? starts(t, calls, l.ranks.tp, l.ranks.tp / links.joined()) : CollectiveStarts{};
  out.layer_gpu = again * (products / flops + attention / half_flops + moved / memory + t.kernel_s + beside) +
                  values / memory + copied_bytes(links) / streamed + tensor_seconds(links) + waits.gpu +
                  context_seconds(links) + expert_exchange(l, p.facts, h, links.joined());
  const double hops = l.seen.slow_collectives ? t.hop_launch_s * std::pow(l.ranks.tp, t.hop_power) : 0;
  out.layer_host = again * (t.layer_launch_s + experts.host) + hops + waits.host;
  const double logits = l.batch.tokens * l.model.vocab / l.ranks.tp;
  const double head =
      head_share(t) * ((l.base.frozen ? 4 : 6) * logits * l.model.hidden / half_flops + 24 * logits / memory);
  out.of.clear();
  for (const StageWork& s : l.stages)
    out.of.push_back(
        {s.layers * out.layer_gpu + (s.head ? head : 0), s.layers * out.layer_host, s.layers * waits.both});
}

void TimePrediction::scale(double factor) {
  for (double* part :
       {&compute_s, &pipeline_s, &slow_messages_s, &retry_s, &data_parallel_s, &optimizer_s, &step_s})
    *part *= factor;
  tokens_per_s_gpu /= factor;
}

TimePrediction TimeModel::seconds(const Case& c, const MemoryPrediction& memory) const {
  TimePrediction out = plain_seconds(c, memory);
  out.residual = c.profile.residual.factor(c.layout, c.hardware.name);
  out.scale(out.residual);
  return out;
}

TimePrediction TimeModel::plain_seconds(const Case& c, const MemoryPrediction& memory) const {
  const Layout& l = c.layout;
  const TrainerProfile& p = c.profile;
  const shape::Hardware& h = c.hardware;
  const TimeParameters& t = p.time;
  const Links links{l, p, h};
  double slowest = 0, parameters = 0, codes = 0, trained = 0;
  thread_local std::vector<double> stages;
  stages.clear();
  for (const StageTime& s : c.times.of) {
    stages.push_back(std::pow(std::pow(s.gpu, 4) + std::pow(s.host, 4), 1.0 / 4) +
                     s.both);  // a smooth maximum
    slowest = std::max(slowest, stages.back());
  }
  for (const StageWork& s : l.stages) {
    if (s.parameters > parameters) parameters = s.parameters, codes = codes_of(l, s);
    trained = std::max(trained, l.base.frozen ? s.adapters : s.parameters);
  }
  TimePrediction out;
  out.compute_s = l.batch.micros * slowest;
  // Messages of a micro-batch on an inner rank: to each of its chunks and from it, forward and backward.
  const double messages = (l.ranks.pp > 2 ? 4 : l.ranks.pp > 1 ? 2 : 0) * real(l.pipeline.chunks);
  out.pipeline_s = pipeline_seconds(l, stages) - out.compute_s +
                   messages * t.message_s * (l.batch.micros + l.ranks.pp - 1);
  const double slow = messages * t.slow_message_s * l.seen.slow_messages;
  out.slow_messages_s = slow * (l.batch.micros + (l.ranks.pp - 1) / 2);
  if (memory.limit > 0) {
    const double share = memory.wanted * p.facts.need_share / memory.limit;
    out.retry_s = l.batch.micros * t.retry_s * std::clamp((share - p.facts.retry_share) / 0.025, 0.0, 1.0);
  }
  // Gradients are whole in the last micro-batch's backward; ZeRO-3 exchanges in every pass.
  const double passes =
      l.ranks.zero >= 3 ? out.compute_s : out.compute_s / l.batch.micros * (forwards(l) - 1) / forwards(l);
  out.data_parallel_s =
      t.data_parallel_share *
      data_parallel(links, parameters, codes, trained).seconds(p.facts.exchanges_beside * passes);
  const double owners = l.ranks.zero >= 1 ? l.ranks.shard : 1;
  out.optimizer_s = t.optimizer_share * trained * kOptimizerTraffic / owners / h.memory_bandwidth;
  out.step_s = out.compute_s + out.pipeline_s + out.slow_messages_s + out.retry_s + out.data_parallel_s +
               out.optimizer_s;
  out.tokens_per_s_gpu = l.batch.tokens * l.batch.micros / (out.step_s * l.ranks.tp * l.ranks.pp);
  return out;
}

double Uncertainty::*TimeModel::spread(const Layout& l) const {
  constexpr double kMany = 32;
  if (l.ranks.pp <= 1 || l.ranks.nodes <= 1) return &Uncertainty::time;
  return l.ranks.nodes < kMany ? &Uncertainty::time_far : &Uncertainty::time_many;
}

CollectiveStarts TimeModel::starts(const TimeParameters& t, double calls, double tp, double span) const {
  return {0, 0, calls * (span <= 1 ? t.near_latency_s * std::log2(tp) : t.far_latency_s * span)};
}

namespace {

// The program queues its collectives of tp and goes on: near_latency_s is the host's time for each, and far_latency_s that of
// a step between nodes. Such a collective keeps the GPU for its start and for the steps of a ring, of which one less than the
// nodes cross the network.
class QueuedTime final : public TimeModel {
 public:
  QueuedTime() : TimeModel("queued", kEager) {}

  CollectiveStarts starts(const TimeParameters& t, double calls, double tp, double span) const override {
    const double far = std::max(0.0, std::ceil(span) - 1), near = tp - 1 - far;
    return {calls * (kRingStart + near * kNearStep + far * t.far_latency_s), calls * t.near_latency_s, 0};
  }
};

}  // namespace

const TimeModel* time_model(std::string_view word) {
  static const TimeModel plain("plain", kEager);  // reads what eager PyTorch and our own step do
  static const QueuedTime queued;
  for (const TimeModel* model : {&plain, static_cast<const TimeModel*>(&queued), &nanotron_time()})
    if (word == model->word) return model;
  return nullptr;
}

}  // namespace sweep::predict
