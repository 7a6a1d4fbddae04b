#include "orchestrator/predict/step_cost.h"

#include <algorithm>
#include <cmath>

#include "bench_kernels/shape/adapters.h"
#include "bench_kernels/shape/count.h"
#include "bench_kernels/shape/documents.h"
#include "bench_kernels/shape/encoder.h"
#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/pipeline_time.h"
#include "bench_kernels/shape/quantized_base.h"
#include "bench_kernels/shape/split_traffic.h"
#include "bench_kernels/shape/splits.h"
#include "bench_kernels/shape/stage_split.h"
#include "orchestrator/predict/layout.h"
#include "orchestrator/predict/memory.h"
#include "orchestrator/predict/trainer_profile.h"

namespace sweep::predict {
namespace {

// The share of attention's products that is computed: it skips what is masked, half of a long sequence.
constexpr double kCausal = 0.5;
// Bytes per second between a GPU and pinned host memory: assumed, of the 31.5 GB/s of PCIe 4.0's standard (16 lanes).
constexpr double kHostLink = 25e9;
// Bytes per second of a node's files for each of its ranks: assumed, of one NVMe drive.
constexpr double kFiles = 3e9;
double passes_of(OptimizerKind kind) {
  if (kind == OptimizerKind::kPlain) return 3;
  if (kind == OptimizerKind::kAdafactor) return 4;  // of gradients and values: its own state is small
  return kind == OptimizerKind::kForeach ? 2.5 : 1;
}

const char* backend_name(const Trial& t) {
  if (t.backend != CommBackend::kAuto) return to_string(t.backend).data();
  return t.hardware != "cpu" ? "nccl" : t.nodes > 1 ? "gloo" : "shm";
}

// Computes the cost of one trial on one profile, part by part.
class CostModel {
 public:
  CostModel(const Trial& t, const shape::HardwareProfile& p, const shape::Hardware& h)
      : t_(t),
        p_(p),
        h_(h),
        facts_(built_in_profile("sweep")->facts),
        backend_(backend_name(t)),
        product_(p.product(t.tf32 ? "tf32" : to_string(t.precision))),
        adapters_(shape::adapters_of(t)) {
    const ModelSpec& m = t.spec;
    tp_ = real(t.tp), element_ = element_bytes(t.precision);
    tokens_ = real(t.micro_batch_size) * real(t.seq_len) / real(t.cp), keys_ = shape::keys_per_token(t);
    hidden_ = real(m.hidden_size), width_ = real(m.heads * m.head_dim) / tp_;
    kv_width_ = real(shape::kv_heads_of_rank(t) * m.head_dim), intermediate_ = real(m.intermediate_size);
  }

  StepCost cost();

 private:
  struct Pass {
    double forward = 0, backward = 0;
  };
  double product(double m, double n, double k) const { return product_ ? product_->seconds(m, n, k) : 0; }
  // A product and, backward, those of its two gradients; of a frozen weight only that of the input.
  Pass linear(double m, double n, double k) const {
    return {product(m, n, k), product(m, k, n) + (adapters_.any() ? 0 : product(n, k, m))};
  }
  // So many adapters that read rows of `in` columns and give `out` in all.
  void adapt(Pass& pass, double count, double in, double out) const;
  Pass adapters() const;
  double quantized() const;    // weights of a layer that are kept as codes
  double dequantized() const;  // time to make their values once
  double memory(double bytes) const;
  double wire(const char* kind, double calls, double bytes, double ranks, double span) const;
  double wire(const char* kind, const shape::Volume& v, i64 ranks, i64 span) const {
    return v.calls > 0 ? wire(kind, real(v.calls), real(v.bytes), real(ranks), real(span)) : 0;
  }
  double gates() const { return t_.spec.swiglu ? 2 : 1; }
  // Of a layer on a rank: its experts, or one.
  double mlps() const { return t_.spec.experts > 0 ? real(t_.spec.experts) / real(t_.ep) : 1; }
  Pass attention() const;
  Pass attention_products() const;
  Pass mlp(double rows, double width) const;
  Pass experts_mlp() const;
  Pass layer(bool has_experts) const;
  Pass cross_attention() const;
  Pass encoder() const;
  Pass head() const;
  double expert_load() const;
  double tensor() const;
  double context() const;
  double experts() const;
  double message() const {
    return wire("send", 1, tokens_ * hidden_ * element_ / (t_.sp ? tp_ : 1), 2, t_.world());
  }
  double data_parallel(double trained, double frozen) const;
  void stages(StepCost&) const;
  void optimizer(double trained, double frozen, StepCost&) const;

  const Trial& t_;
  const shape::HardwareProfile& p_;
  const shape::Hardware& h_;
  const ProfileFacts& facts_;
  const char* backend_;
  const shape::MatmulCost* product_;
  shape::Adapters adapters_;
  double tp_ = 1, element_ = 4, tokens_ = 0, keys_ = 0, hidden_ = 0, width_ = 0, kv_width_ = 0,
         intermediate_ = 0, causal_ = kCausal;
};

// Uses the measured copy nearest in size: caches hold small ones.
double CostModel::memory(double bytes) const {
  const CopyTiming* near = nullptr;
  double least = 1e300;
  for (const CopyTiming& c : p_.copies)
    if (const double away = std::abs(std::log(real(c.bytes) / std::max(bytes, 1.0))); away < least)
      near = &c, least = away;
  const double bandwidth = near != nullptr ? real(near->bytes) / near->seconds : h_.memory_bandwidth;
  return bytes / bandwidth;
}

// `bytes` are those on the wire, as the bus bandwidth counts them; `span`: ranks from the group's first to
// its last.
double CostModel::wire(const char* kind, double calls, double bytes, double ranks, double span) const {
  if (ranks <= 1) return 0;
  const double nodes = std::max(1.0, span / real(t_.gpus_per_node));
  if (const auto* link = p_.link(kind, backend_, std::min(ranks, span), nodes))
    return calls * link->latency_s + bytes / link->bandwidth;
  constexpr double kLatency = 20e-6;
  const std::string_view what = kind;
  const bool ring = what == "all_reduce" || what == "all_gather" || what == "reduce_scatter";
  return calls * kLatency + bytes / h_.ring_bandwidth(ring ? ranks : 1, nodes);
}

// To queries, keys and values, and from the heads. Each rank of a tensor group makes the latents.
CostModel::Pass CostModel::attention_products() const {
  const ModelSpec& m = t_.spec;
  std::vector<Pass> passes;
  if (m.latent()) {
    const double heads = real(m.heads) / tp_, values = heads * real(m.v_head_dim);
    passes = {linear(tokens_, real(m.q_lora_rank + m.kv_lora_rank + m.rope_head_dim), hidden_),
              linear(tokens_, width_, m.q_lora_rank > 0 ? real(m.q_lora_rank) : hidden_),
              linear(tokens_, heads * real(m.head_dim - m.rope_head_dim) + values, real(m.kv_lora_rank)),
              linear(tokens_, hidden_, values)};
  } else {
    passes = {linear(tokens_, width_ + 2 * kv_width_, hidden_), linear(tokens_, hidden_, width_)};
  }
  Pass sum;
  for (const Pass& pass : passes) sum.forward += pass.forward, sum.backward += pass.backward;
  return sum;
}

CostModel::Pass CostModel::attention() const {
  const Pass products = attention_products();
  const double flops = 4 * tokens_ * keys_ * width_ * causal_;
  const double inner = product_ != nullptr ? flops / product_->flops : 0;
  return {products.forward + inner, products.backward + 2.5 * inner};
}

// Rows of the busiest rank's experts over an even share (routing.cpp: hot experts are the first eighth),
// bounded by the capacity. Of the ranks of a step the slowest counts.
double CostModel::expert_load() const {
  if (t_.routing != Routing::kSkewed || t_.ep <= 1) return 1;
  const double experts = real(t_.spec.experts), own = experts / real(t_.ep);
  const double hot = std::max(1.0, std::floor(experts / 8)), share = real(t_.hot_percent) / 100;
  const double rest = hot < experts ? (1 - share) / (experts - hot) : 0;
  const double busiest = std::min(hot, own) * share / hot + std::max(0.0, own - hot) * rest;
  const double load = std::max(1.0, busiest * real(t_.ep));
  return t_.capacity_percent > 0 ? std::min(load, std::max(1.0, real(t_.capacity_percent) / 100)) : load;
}

CostModel::Pass CostModel::mlp(double rows, double width) const {
  const Pass up = linear(rows, gates() * width / tp_, hidden_), down = linear(rows, hidden_, width / tp_);
  return {up.forward + down.forward, up.backward + down.backward};
}

CostModel::Pass CostModel::experts_mlp() const {
  const double many = real(t_.spec.experts) / real(t_.ep);
  const Pass each = mlp(tokens_ * real(t_.spec.experts_per_token) * expert_load() / many, intermediate_);
  Pass sum{many * each.forward, many * each.backward};
  if (t_.spec.shared_experts == 0) return sum;
  const Pass shared = mlp(tokens_, real(t_.spec.shared_width()));
  return {sum.forward + shared.forward, sum.backward + shared.backward};
}

// Forward the low rows and each adapter's part of the outputs; backward both gradients of each.
void CostModel::adapt(Pass& pass, double count, double in, double out) const {
  const double rank = real(adapters_.rank);
  const double products = product(tokens_, count * rank, in) + product(tokens_, out, rank);
  pass.forward += products + (1 + count) * p_.launch_s;
  pass.backward += 2 * products + (2 + 2 * count) * p_.launch_s;
}

CostModel::Pass CostModel::adapters() const {
  Pass pass;
  for (const shape::AdapterProducts& p : shape::adapter_products(t_))
    adapt(pass, real(p.count), real(p.in) / (p.divided == shape::Divided::kInputs ? tp_ : 1),
          real(p.out) / (p.divided == shape::Divided::kOutputs ? tp_ : 1));
  return pass;
}

double CostModel::quantized() const {
  if (t_.quantize_base == QuantizeBase::kNone) return 0;
  return hidden_ * (2 * width_ + 2 * kv_width_ + mlps() * (gates() + 1) * intermediate_ / tp_);
}

// Codes are read, values written, tensor by tensor.
double CostModel::dequantized() const {
  if (quantized() == 0) return 0;
  return memory((element_ + kCodeBytes) * quantized()) +
         (4 + mlps() * (gates() + 1)) * p_.launch_s;  // 4 of attention
}

CostModel::Pass CostModel::layer(bool has_experts) const {
  const ModelSpec& spec = t_.spec;
  const Pass a = attention(), low = adapters(),
             m = has_experts ? experts_mlp() : mlp(tokens_, real(spec.dense_width()));
  const double columns = has_experts ? real(spec.experts_per_token + spec.shared_experts) * intermediate_
                                     : real(spec.dense_width());
  const double whole = 4 * hidden_ / (t_.sp ? tp_ : 1) + 4 * width_ + 2 * gates() * columns / tp_;
  const double moved = memory(facts_.activation_passes * element_ * tokens_ * whole);
  Pass out{
      a.forward + m.forward + low.forward + dequantized() + moved / 3 + facts_.forward_launches * p_.launch_s,
      a.backward + m.backward + low.backward + dequantized() + moved * 2 / 3 +
          facts_.backward_launches * p_.launch_s};
  if (t_.recompute == Recompute::kFull) out.backward += out.forward;
  if (t_.recompute == Recompute::kSelective && product_ != nullptr)
    out.backward += 4 * tokens_ * keys_ * width_ * causal_ / product_->flops;
  if (t_.activation_offload) {
    const double moves = element_ * tokens_ * whole;
    const double beside = h_.gpu.empty() ? 0 : moves / kHostLink;  // the kernels of a GPU
    const double after = h_.gpu.empty() ? memory(2 * moves) : 0;
    out = {std::max(out.forward, beside) + after, std::max(out.backward, beside) + after};
  }
  return out;
}

// Queries and output of the decoder's rows, keys and values of the encoder's; half of a layer's launches.
CostModel::Pass CostModel::cross_attention() const {
  const double keys = real(shape::encoder_length(t_)), encoded = real(t_.micro_batch_size) * keys;
  const Pass own = linear(tokens_, width_, hidden_), of_keys = linear(encoded, 2 * width_, hidden_);
  const double inner = product_ != nullptr ? 4 * tokens_ * keys * width_ / product_->flops : 0;
  const double elements = 2 * (tokens_ * (hidden_ + width_) + encoded * width_);
  const double moved = memory(facts_.activation_passes * element_ * elements);
  Pass out{2 * own.forward + of_keys.forward + inner + moved / 3 + facts_.forward_launches / 2 * p_.launch_s,
           2 * own.backward + of_keys.backward + 2.5 * inner + moved * 2 / 3 +
               facts_.backward_launches / 2 * p_.launch_s};
  if (t_.recompute == Recompute::kFull) out.backward += out.forward;
  return out;
}

// The cost that an encoder adds: its own layers, and cross-attention in the decoder's.
CostModel::Pass CostModel::encoder() const {
  if (!t_.spec.has_encoder()) return {};
  CostModel side = *this;
  side.keys_ = real(shape::encoder_length(t_)), side.tokens_ = real(t_.micro_batch_size) * side.keys_;
  side.causal_ = 1;
  const Pass each = side.layer(false), cross = cross_attention();
  const double n = real(t_.spec.encoder_layers), m = real(t_.spec.layers);
  return {n * each.forward + m * cross.forward, n * each.backward + m * cross.backward};
}

CostModel::Pass CostModel::head() const {
  const double vocab = real(shape::padded_vocab(t_)) / tp_;
  const Pass p = linear(tokens_, vocab, hidden_);
  const double moved = memory(facts_.logit_passes * 4 * tokens_ * vocab) / 2;
  const double launched = facts_.head_launches * p_.launch_s / 2;
  return {p.forward + moved + launched, p.backward + moved + launched};
}

double CostModel::tensor() const {
  if (t_.tp <= 1) return 0;
  const auto v = shape::tensor_traffic(t_);
  const auto kv = shape::key_value_traffic(t_);
  return wire("all_reduce", v.all_reduce, t_.tp, t_.tp) + wire("all_gather", v.all_gather, t_.tp, t_.tp) +
         wire("reduce_scatter", v.reduce_scatter, t_.tp, t_.tp) +
         wire("all_gather", kv.all_gather, t_.tp, t_.tp) +
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

double CostModel::data_parallel(double trained, double frozen) const {
  const i64 ranks = t_.dp * t_.cp, span = t_.tp * t_.cp * t_.dp;
  if (ranks <= 1) return 0;
  auto v = shape::state_traffic(t_, trained);
  const double codes = real(shape::quantized_weights(t_)) / (tp_ * real(t_.pp));
  v.all_gather += shape::frozen_traffic(t_, frozen - codes).all_gather +
                  shape::quantized_traffic(t_, kCodeBytes * codes, 0).all_gather;
  const double buckets =
      std::max(1.0, std::ceil(trained * element_ / (real(t_.grad_bucket_mb) * 1024 * 1024)));
  // ZeRO-3 gathers each layer and both ends for themselves, before forward and backward, and reduces them so.
  const double units = real(t_.grad_accum) * (real(t_.spec.all_layers()) / real(t_.pp) + 2);
  const double gathers = t_.zero < 3 ? buckets : t_.reshard_after_forward ? 2 * units : units;
  const double reduces = t_.zero >= 3 ? units : t_.zero == 2 ? real(t_.grad_accum) * buckets : buckets;
  double out = 0;
  if (v.all_reduce > 0) out += wire("all_reduce", buckets, v.all_reduce, real(ranks), real(span));
  if (v.reduce_scatter > 0) out += wire("reduce_scatter", reduces, v.reduce_scatter, real(ranks), real(span));
  if (v.all_gather > 0) out += wire("all_gather", gathers, v.all_gather, real(ranks), real(span));
  return out;
}

void CostModel::stages(StepCost& out) const {
  const shape::Pipeline p = shape::Pipeline::of(t_);
  const bool experts = t_.spec.experts > 0;
  const Pass each = layer(experts), dense = experts && t_.spec.dense_layers > 0 ? layer(false) : each,
             last = head();
  thread_local std::vector<shape::StageSeconds> seconds;
  seconds.clear();
  if (p.ranks == 1) {
    const double first = real(t_.spec.dense_layers), layers = real(t_.spec.layers) - first;
    const Pass beside = encoder();
    seconds.push_back({layers * each.forward + first * dense.forward + last.forward + beside.forward,
                       layers * each.backward + first * dense.backward + last.backward + beside.backward});
    out.compute_s = real(t_.grad_accum) * (seconds[0].forward + seconds[0].backward);
    return;
  }
  for (const auto& s : shape::split_stages(t_.spec, p.stages(), t_.seq_len)) {
    const double first = real(s.dense_layers), layers = real(s.layers) - first;
    seconds.push_back({layers * each.forward + first * dense.forward + (s.head ? last.forward : 0),
                       layers * each.backward + first * dense.backward + (s.head ? last.backward : 0)});
  }
  // Messages of processors keep both ends busy: they copy.
  double between = message();
  if (h_.gpu.empty()) {
    for (auto& s : seconds) s.forward += between, s.backward += between;
    between = 0;
  }
  std::vector<double> busy(static_cast<std::size_t>(p.ranks), 0.0);
  for (i64 stage = 0; stage < p.stages(); ++stage) {
    const auto& s = seconds[static_cast<std::size_t>(stage)];
    busy[static_cast<std::size_t>(p.rank_of(stage))] += s.forward + s.backward;
  }
  out.compute_s = real(t_.grad_accum) * *std::max_element(busy.begin(), busy.end());
  out.pipeline_s =
      shape::pipeline_seconds(p, {seconds.data(), static_cast<std::size_t>(p.stages())}, between) -
      out.compute_s;
}

void CostModel::optimizer(double trained, double frozen, StepCost& out) const {
  const auto split = shape::state_split(t_);
  Trial on_device = t_;
  on_device.offload = Offload::kNone;
  const auto bytes = shape::state_bytes(on_device);
  // Values, gradients and moments are read, values and moments written.
  const bool paged = t_.optimizer == OptimizerKind::kPagedAdamw;
  const double moved =  // moments that come from the host and go back
      paged ? 2 * trained * 2 * real(shape::bytes_of(shape::state_types(t_).moments)) / real(split.optimizer)
            : 0;
  const double traffic =
      trained * (2 * bytes.optimizer + bytes.gradients + 2 * element_ / real(split.optimizer)) + moved;
  const double tensors = facts_.layer_tensors * real(t_.spec.all_layers()) / real(t_.pp);
  const double passes = passes_of(t_.optimizer);
  out.optimizer_s = passes * memory(traffic) + (passes > 1 ? 4 * passes * tensors : 4) * p_.launch_s;
  if (t_.grad_clip) out.optimizer_s += memory(trained * bytes.gradients * 2);
  const bool on_disk = t_.offload == Offload::kDisk || t_.offload == Offload::kDiskParameters;
  const double link = on_disk ? kFiles : kHostLink;
  const auto away = [&](double of) { return h_.gpu.empty() ? memory(of) : of / link; };
  // Beside the update, but for what takes longer than it.
  if (paged) out.offload_s = std::max(0.0, away(moved) - out.optimizer_s);
  if (t_.offload == Offload::kNone) return;
  out.offload_s = away(2 * traffic);
  if (shape::parameters_outside(t_))
    out.offload_s += real(t_.grad_accum) * away(2 * (trained + frozen) * bytes.weights);
}

StepCost CostModel::cost() {
  StepCost out;
  const double parameters = real(shape::parameter_count(t_.spec)) / (tp_ * real(t_.pp));
  const double adapters = real(shape::adapter_parameter_count(t_)) / (tp_ * real(t_.pp));
  const double trained = adapters_.any() ? adapters : parameters, frozen = adapters_.any() ? parameters : 0;
  stages(out);
  out.tensor_s = tensor(), out.context_s = context(), out.expert_s = experts();
  out.data_parallel_s = data_parallel(trained, frozen);
  optimizer(trained, frozen, out);
  out.step_s = out.compute_s + out.pipeline_s + out.tensor_s + out.context_s + out.expert_s +
               out.data_parallel_s + out.optimizer_s + out.offload_s;
  return out;
}

}  // namespace

StepCost step_cost(const Trial& t, const shape::HardwareProfile& p, const shape::Hardware& h) {
  return CostModel(t, p, h).cost();
}

}  // namespace sweep::predict
