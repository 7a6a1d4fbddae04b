#include "orchestrator/predict/step_cost.h"

#include <algorithm>
#include <cmath>

#include "bench_kernels/shape/count.h"
#include "bench_kernels/shape/documents.h"
#include "bench_kernels/shape/encoder.h"
#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/pipeline_time.h"
#include "bench_kernels/shape/splits.h"
#include "bench_kernels/shape/stage_split.h"
#include "orchestrator/predict/cost_model.h"
#include "orchestrator/predict/memory.h"
#include "orchestrator/predict/trainer_profile.h"

namespace sweep::predict {
namespace {

// FlashAttention's speed on a GPU beside the speed of products: assumed, as on phantom GPUs.
constexpr double kAttentionShare = 0.55 / 0.75;
// Kernels of a layer with experts beside those of a layer without: the router, rows that go to experts and come back,
// the sizes of grouped products. Counted by scripts/launch_table.py; bytes of a row: it is read and written twice.
constexpr double kExpertLaunches = 5, kExpertPasses = 4;

const char* backend_name(const Trial& t) {
  if (t.backend != CommBackend::kAuto) return to_string(t.backend).data();
  return t.hardware != "cpu" ? "nccl" : t.nodes > 1 ? "gloo" : "shm";
}

// Keys of which a query's scores are computed. A processor's kernel takes a window as a mask and skips none of them.
double computed_keys(const Trial& t, bool on_gpu) {
  if (on_gpu || !t.spec.sliding_window || *t.spec.sliding_window >= t.seq_len)
    return shape::causal_keys_per_token(t);
  Trial whole = t;
  whole.spec.sliding_window.reset();
  const double all = shape::keys_per_token(whole);
  return t.spec.mean_of_layers(all / 2, all);
}

}  // namespace

CostModel::CostModel(const Trial& t, const shape::HardwareProfile& p, const shape::Hardware& h,
                     const shape::KernelChoice& kernels)
    : t_(t),
      p_(p),
      h_(h),
      facts_(built_in_profile("sweep")->facts),
      backend_(backend_name(t)),
      product_(p.product(t.tf32 ? "tf32" : to_string(t.precision))),
      half_(t.precision == Precision::kFp8 ? p.product("bf16") : product_),
      adapters_(shape::adapters_of(t)),
      kernels_(kernels) {
  const ModelSpec& m = t.spec;
  tp_ = real(t.tp), element_ = element_bytes(t.precision);
  tokens_ = real(t.micro_batch_size) * real(t.seq_len) / real(t.cp);
  keys_ = computed_keys(t, on_gpu()), columns_of_scores_ = real(t.seq_len);
  hidden_ = real(m.hidden_size), width_ = real(m.heads * m.head_dim) / tp_;
  kv_width_ = real(shape::kv_heads_of_rank(t) * m.head_dim), intermediate_ = real(m.intermediate_size);
}

CostModel::Pass& CostModel::Pass::operator+=(const Pass& other) {
  forward += other.forward, backward += other.backward;
  forward_launches += other.forward_launches, backward_launches += other.backward_launches;
  return *this;
}

CostModel::Pass CostModel::Pass::times(double n) const {
  return {n * forward, n * backward, n * forward_launches, n * backward_launches};
}

CostModel::Pass CostModel::waited(const Pass& pass) const {
  const double launch = kernels_.graph ? 0 : p_.launch_s;
  const double forward = launch * pass.forward_launches, backward = launch * pass.backward_launches;
  if (!on_gpu()) return {pass.forward + forward, pass.backward + backward};
  return {std::max(pass.forward, forward), std::max(pass.backward, backward)};
}

CostModel::Pass CostModel::of_work(const shape::PassWork& w) const {
  return {memory(w.forward.bytes) + w.forward.launches * kGpuKernel,
          memory(w.backward.bytes) + w.backward.launches * kGpuKernel, w.forward.launches,
          w.backward.launches};
}

CostModel::Pass CostModel::linear(double m, double n, double k) const {
  const bool trained = !adapters_.any();
  const double launches = on_gpu() ? 1 : 0;
  return {product(m, n, k), product(m, k, n) + (trained ? product(n, k, m) : 0), launches,
          launches * (trained ? 2 : 1)};
}

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

double CostModel::memory(double bytes) const {
  const CopyTiming* near = nearest_copy(p_.copies, bytes);
  const double bandwidth = near != nullptr ? real(near->bytes) / near->seconds : h_.memory_bandwidth;
  return bytes / bandwidth;
}

// Products to queries, keys and values, and from the heads. Each rank of a tensor group makes the latents.
CostModel::Pass CostModel::attention_products() const {
  const ModelSpec& m = t_.spec;
  if (!m.latent()) {
    Pass sum = linear(tokens_, width_ + 2 * kv_width_, hidden_);
    return sum += linear(tokens_, hidden_, width_);
  }
  const double heads = real(m.heads) / tp_, values = heads * real(m.v_head_dim);
  Pass sum = linear(tokens_, real(m.q_lora_rank + m.kv_lora_rank + m.rope_head_dim), hidden_);
  sum += linear(tokens_, width_, m.q_lora_rank > 0 ? real(m.q_lora_rank) : hidden_);
  sum += linear(tokens_, heads * real(m.head_dim - m.rope_head_dim) + values, real(m.kv_lora_rank));
  return sum += linear(tokens_, hidden_, values);
}

// Scores and what they make of the values. With scores in memory all of them are computed, at the speed of products or
// that of memory.
CostModel::Pass CostModel::inner_attention() const {
  if (half_ == nullptr) return {};
  const double flops = 4 * tokens_ * keys_ * width_, rate = half_->flops;
  if (!on_gpu()) {
    const double inner = flops / rate;
    return {inner, 2.5 * inner};
  }
  const shape::LayerColumns sizes = columns(0);
  Pass out = of_work(shape::attention_work(t_.spec, kernels_, sizes));
  if (kernels_.math) {
    const double scores = tokens_ * columns_of_scores_;
    const double each = std::max(2 * scores * width_ / rate, memory(element_ * scores * sizes.heads));
    return out += {2 * each, 4 * each};
  }
  const double inner = flops / (rate * kAttentionShare);
  return out += {inner, 2.5 * inner};
}

CostModel::Pass CostModel::attention() const {
  Pass out = attention_products();
  return out += inner_attention();
}

shape::LayerColumns CostModel::columns(double mlp) const {
  return {tokens_,
          tokens_ / (t_.sp ? tp_ : 1),
          columns_of_scores_,
          hidden_,
          width_,
          kv_width_,
          mlp / tp_,
          real(t_.spec.heads) / tp_,
          element_};
}

// Rows of the busiest rank's experts over an even share (routing.cpp: hot experts are the first eighth),
// bounded by the capacity. Of the ranks of a step the slowest counts.
double CostModel::expert_load() const {
  if (t_.routing != Routing::kSkewed || t_.ep <= 1) return 1;
  const double experts = real(t_.spec.experts), own = experts / real(t_.ep);
  const double hot = std::max(1.0, std::floor(experts / 8)), share = real(t_.hot_percent) / 100;
  const double rest = hot < experts ? (1 - share) / (experts - hot) : 0;
  const double first = std::min(hot, own) * share / hot + std::max(0.0, own - hot) * rest;
  const double load = std::max({1.0, first * real(t_.ep), own * rest * real(t_.ep)});
  return t_.capacity_percent > 0 ? std::min(load, std::max(1.0, real(t_.capacity_percent) / 100)) : load;
}

CostModel::Pass CostModel::mlp(double rows, double width) const {
  Pass out = linear(rows, gates() * width / tp_, hidden_);
  return out += linear(rows, hidden_, width / tp_);
}

double CostModel::expert_parameters() const {
  const ModelSpec& m = t_.spec;
  if (m.experts == 0) return 0;
  return real(m.layers - m.dense_layers) * real(m.experts) * (gates() + 1) * hidden_ * intermediate_;
}

CostModel::Pass CostModel::experts_mlp() const {
  const double many = real(t_.spec.experts) / real(t_.ep);
  const double served = t_.capacity_percent > 0 ? std::min(1.0, real(t_.capacity_percent) / 100) : 1;
  const double choices = tokens_ * real(t_.spec.experts_per_token) * served;
  const Pass each = mlp(choices * expert_load() / many, intermediate_);
  Pass sum{many * each.forward, many * each.backward, each.forward_launches, each.backward_launches};
  if (on_gpu()) {
    const double rows = kExpertPasses * memory(element_ * choices * hidden_);
    sum += {rows, 1.5 * rows, kExpertLaunches, 2 * kExpertLaunches};
  }
  return t_.spec.shared_experts == 0 ? sum : sum += mlp(tokens_, real(t_.spec.shared_width()));
}

// Forward the low rows and each adapter's part of the outputs; backward both gradients of each.
void CostModel::adapt(Pass& pass, double count, double in, double out) const {
  const double rank = real(adapters_.rank);
  const double products = product(tokens_, count * rank, in) + product(tokens_, out, rank);
  pass += {products, 2 * products, 1 + count, 2 + 2 * count};
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
CostModel::Pass CostModel::dequantized() const {
  if (quantized() == 0) return {};
  const double launches = 4 + mlps() * (gates() + 1);  // 4 of attention
  const double made = memory((element_ + kCodeBytes) * quantized()) + (on_gpu() ? launches * kGpuKernel : 0);
  return {made, made, launches, launches};
}

// Norms, positions, activations: on a GPU by their kernels, on a processor by passes over what a layer keeps.
CostModel::Pass CostModel::beside_products(double mlp) const {
  if (on_gpu()) {
    // A rank keeps the share of a layer's weights that ZeRO-3 leaves it; of the experts, the share of its ep rank's.
    const double experts = expert_parameters();
    const double shared = t_.zero >= 3 ? real(shape::expert_shard_ranks(t_)) : 1;
    const double held =
        (real(shape::parameter_count(t_.spec)) - experts) / real(shape::state_split(t_).weights) +
        experts / (real(t_.ep) * shared);
    const double parameters = held / (tp_ * real(t_.spec.all_layers()));
    return of_work(shape::layer_work(t_.spec, kernels_, columns(mlp), parameters));
  }
  const double moved = memory(facts_.activation_passes * element_ * tokens_ * kept_columns(mlp));
  return {moved / 3, moved * 2 / 3, facts_.forward_launches, facts_.backward_launches};
}

double CostModel::kept_columns(double mlp) const {
  return 4 * hidden_ / (t_.sp ? tp_ : 1) + 4 * width_ + 2 * gates() * mlp / tp_;
}

CostModel::Pass CostModel::layer(bool has_experts) const {
  const ModelSpec& spec = t_.spec;
  const double mlp_columns = has_experts ? real(spec.experts_per_token + spec.shared_experts) * intermediate_
                                         : real(spec.dense_width());
  Pass out = attention();
  out += has_experts ? experts_mlp() : mlp(tokens_, real(spec.dense_width()));
  out += adapters();
  out += dequantized();
  out += beside_products(mlp_columns);
  if (t_.recompute == Recompute::kFull) out.recompute();
  if (t_.recompute == Recompute::kSelective) {
    const Pass again = inner_attention();
    out += {0, again.forward, 0, again.forward_launches};
  }
  if (t_.activation_offload) {
    const double moves = element_ * tokens_ * kept_columns(mlp_columns);
    const double beside = on_gpu() ? moves / kHostLink : 0;  // the kernels of a GPU
    const double after = on_gpu() ? 0 : memory(2 * moves);
    out.forward = std::max(out.forward, beside) + after,
    out.backward = std::max(out.backward, beside) + after;
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
  Pass out{inner + moved / 3, 2.5 * inner + moved * 2 / 3, facts_.forward_launches / 2,
           facts_.backward_launches / 2};
  out += own.times(2);
  out += of_keys;
  if (t_.recompute == Recompute::kFull) out.recompute();
  return out;
}

// The cost that an encoder adds: its own layers, and cross-attention in the decoder's.
CostModel::Pass CostModel::encoder() const {
  if (!t_.spec.has_encoder()) return {};
  CostModel side = *this;
  side.keys_ = side.columns_of_scores_ = real(shape::encoder_length(t_));
  side.tokens_ = real(t_.micro_batch_size) * side.keys_;
  Pass out = side.layer(false).times(real(t_.spec.encoder_layers));
  return out += cross_attention().times(real(t_.spec.layers));
}

CostModel::Pass CostModel::head() const {
  const double vocab = real(shape::padded_vocab(t_)) / tp_;
  CostModel halves = *this;
  halves.product_ = half_;
  Pass out = halves.linear(tokens_, vocab, hidden_);
  if (on_gpu()) {
    const shape::KernelWork loss = shape::loss_work(kernels_, tokens_, vocab, element_);
    const shape::KernelWork half{loss.bytes / 2, loss.launches / 2};
    return out += of_work({half, half});
  }
  const double moved = memory(facts_.logit_passes * 4 * tokens_ * vocab) / 2;
  return out += {moved, moved, facts_.head_launches / 2, facts_.head_launches / 2};
}

void CostModel::stages(StepCost& out) const {
  const shape::Pipeline p = shape::Pipeline::of(t_);
  const bool experts = t_.spec.experts > 0;
  const Pass each = layer(experts), dense = experts && t_.spec.dense_layers > 0 ? layer(false) : each,
             last = head();
  const auto of_stage = [&](double layers, double first, bool has_head) {
    Pass sum = each.times(layers - first);
    sum += dense.times(first);
    if (has_head) sum += last;
    return sum;
  };
  thread_local std::vector<shape::StageSeconds> seconds;
  seconds.clear();
  if (p.ranks == 1) {
    Pass all = of_stage(real(t_.spec.layers), real(t_.spec.dense_layers), true);
    all = waited(all += encoder());
    out.compute_s = real(t_.grad_accum) * (all.forward + all.backward);
    return;
  }
  for (const auto& s : shape::split_stages(t_, p.stages())) {
    const Pass own = waited(of_stage(real(s.layers), real(s.dense_layers), s.head));
    seconds.push_back({own.forward, own.backward});
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

StepCost CostModel::cost() {
  StepCost out;
  const ModelSpec& m = t_.spec;
  const double split = tp_ * real(t_.pp), of_experts = expert_parameters() / split;
  const Numbers model{real(shape::parameter_count(m)) / split - of_experts, of_experts};
  const Numbers adapters{real(shape::adapter_parameter_count(t_)) / split, 0};
  const Numbers trained = adapters_.any() ? adapters : model, frozen = adapters_.any() ? model : Numbers{};
  stages(out);
  out.tensor_s = tensor(), out.context_s = context(), out.expert_s = experts();
  out.data_parallel_s = data_parallel(trained, frozen, out.compute_s);
  optimizer(trained, frozen, out);
  out.step_s = out.compute_s + out.pipeline_s + out.tensor_s + out.context_s + out.expert_s +
               out.data_parallel_s + out.optimizer_s + out.offload_s;
  return out;
}

StepCost step_cost(const Trial& t, const shape::HardwareProfile& p, const shape::Hardware& h,
                   const shape::KernelChoice& kernels) {
  return CostModel(t, p, h, kernels).cost();
}

StepCost step_cost(const Trial& t, const shape::HardwareProfile& p, const shape::Hardware& h) {
  return step_cost(t, p, h, shape::kernel_choice(t));
}

}  // namespace sweep::predict
