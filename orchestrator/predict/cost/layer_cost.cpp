#include "orchestrator/predict/cost/layer_cost.h"

#include <algorithm>
#include <cmath>

#include "bench_kernels/shape/count.h"
#include "bench_kernels/shape/documents.h"
#include "bench_kernels/shape/encoder.h"
#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/splits.h"

namespace sweep::predict {
namespace {

// FlashAttention's speed on a GPU beside the speed of products: assumed, as on phantom GPUs.
constexpr double kAttentionShare = 0.55 / 0.75;
// Kernels of a layer with experts beside those of a layer without: the router, rows that go to experts and come back,
// the sizes of grouped products. Counted by scripts/launch_table.py; bytes of a row: it is read and written twice.
constexpr double kExpertLaunches = 5, kExpertPasses = 4;

// Keys of which a query's scores are computed. A processor's kernel takes a window as a mask and skips none of them.
double computed_keys(const Trial& t, bool on_gpu) {
  if (on_gpu || !t.spec.sliding_window || *t.spec.sliding_window >= t.seq_len)
    return shape::causal_keys_per_token(t);
  Trial whole = t;
  whole.spec.sliding_window.reset();
  const double all = shape::keys_per_token(whole);
  return t.spec.mean_of_layers(all / 2, all);
}

const shape::MatmulCost* dense_cost(const CostCase& c) {
  return c.profile.product(c.trial.tf32 ? "tf32" : to_string(c.trial.precision));
}

// The weights of a layer that are kept as codes.
double quantized(const CostCase& c) {
  if (c.trial.quantize_base == QuantizeBase::kNone) return 0;
  return c.hidden * (2 * c.width + 2 * c.kv_width + c.mlps() * (c.gates() + 1) * c.intermediate / c.tp);
}

}  // namespace

LayerCost::LayerCost(const CostCase& c)
    : LayerCost(c, computed_keys(c.trial, c.on_gpu()), real(c.trial.seq_len)) {}

LayerCost::LayerCost(const CostCase& c, double keys, double columns_of_scores)
    : c_(c),
      dense_(dense_cost(c)),
      halves_(c.trial.precision == Precision::kFp8 ? c.profile.product("bf16") : dense_),
      products_(c, dense_),
      keys_(keys),
      columns_of_scores_(columns_of_scores) {}

Pass LayerCost::waited(const Pass& pass) const {
  const double launch = c_.kernels.graph ? 0 : c_.profile.launch_s;
  const double forward = launch * pass.forward_launches, backward = launch * pass.backward_launches;
  if (!c_.on_gpu()) return {pass.forward + forward, pass.backward + backward};
  return {std::max(pass.forward, forward), std::max(pass.backward, backward)};
}

Pass LayerCost::of_work(const shape::PassWork& w) const {
  return {c_.memory(w.forward.bytes) + w.forward.launches * kGpuKernel,
          c_.memory(w.backward.bytes) + w.backward.launches * kGpuKernel, w.forward.launches,
          w.backward.launches};
}

// With scores in memory all of them are computed, at the speed of products or that of memory.
Pass LayerCost::inner_attention() const {
  if (halves_ == nullptr) return {};
  const double flops = 4 * c_.tokens * keys_ * c_.width, rate = halves_->flops;
  if (!c_.on_gpu()) {
    const double inner = flops / rate;
    return {inner, 2.5 * inner};
  }
  const shape::LayerColumns sizes = columns(0);
  Pass out = of_work(shape::attention_work(c_.trial.spec, c_.kernels, sizes));
  if (c_.kernels.math) {
    const double scores = c_.tokens * columns_of_scores_;
    const double each = std::max(2 * scores * c_.width / rate, c_.memory(c_.element * scores * sizes.heads));
    return out += {2 * each, 4 * each};
  }
  const double inner = flops / (rate * kAttentionShare);
  return out += {inner, 2.5 * inner};
}

shape::LayerColumns LayerCost::columns(double mlp) const {
  return {c_.tokens,          c_.tokens / (c_.trial.sp ? c_.tp : 1),
          columns_of_scores_, c_.hidden,
          c_.width,           c_.kv_width,
          mlp / c_.tp,        real(c_.trial.spec.heads) / c_.tp,
          c_.element};
}

Pass LayerCost::experts() const {
  const Trial& t = c_.trial;
  const double many = real(t.spec.experts) / real(t.ep);
  const double served = t.capacity_percent > 0 ? std::min(1.0, real(t.capacity_percent) / 100) : 1;
  const double choices = c_.tokens * real(t.spec.experts_per_token) * served;
  const Pass each = products_.mlp(choices * c_.expert_load() / many, c_.intermediate);
  Pass sum{many * each.forward, many * each.backward, each.forward_launches, each.backward_launches};
  if (c_.on_gpu()) {
    const double rows = kExpertPasses * c_.memory(c_.element * choices * c_.hidden);
    sum += {rows, 1.5 * rows, kExpertLaunches, 2 * kExpertLaunches};
  }
  return t.spec.shared_experts == 0 ? sum : sum += products_.mlp(c_.tokens, real(t.spec.shared_width()));
}

// Codes are read, values written, tensor by tensor.
Pass LayerCost::dequantized() const {
  const double weights = quantized(c_);
  if (weights == 0) return {};
  const double launches = 4 + c_.mlps() * (c_.gates() + 1);  // 4 of attention
  const double made =
      c_.memory((c_.element + kCodeBytes) * weights) + (c_.on_gpu() ? launches * kGpuKernel : 0);
  return {made, made, launches, launches};
}

// Norms, positions, activations: on a GPU by their kernels, on a processor by passes over what a layer keeps.
Pass LayerCost::beside_products(double mlp) const {
  const Trial& t = c_.trial;
  if (c_.on_gpu()) {
    // A rank keeps the share of a layer's weights that ZeRO-3 leaves it; of the experts, the share of its ep rank's. What
    // fp8 units read is rounded when it is gathered.
    const double experts = c_.expert_parameters();
    const double shared = t.zero >= 3 ? real(shape::expert_shard_ranks(t)) : 1;
    const double shards = c_.kernels.fp8 ? 1 : real(shape::state_split(t).weights);
    const double held =
        (real(shape::parameter_count(t.spec)) - experts) / shards + experts / (real(t.ep) * shared);
    const double parameters = held / (c_.tp * real(t.spec.all_layers()));
    return of_work(shape::layer_work(t.spec, c_.kernels, columns(mlp), parameters));
  }
  const double moved = c_.memory(c_.facts.activation_passes * c_.element * c_.tokens * kept_columns(mlp));
  return {moved / 3, moved * 2 / 3, c_.facts.forward_launches, c_.facts.backward_launches};
}

double LayerCost::kept_columns(double mlp) const {
  return 4 * c_.hidden / (c_.trial.sp ? c_.tp : 1) + 4 * c_.width + 2 * c_.gates() * mlp / c_.tp;
}

Pass LayerCost::layer(bool has_experts) const {
  const Trial& t = c_.trial;
  const ModelSpec& spec = t.spec;
  const double mlp_columns = has_experts
                                 ? real(spec.experts_per_token + spec.shared_experts) * c_.intermediate
                                 : real(spec.dense_width());
  Pass out = products_.attention();
  out += inner_attention();
  out += has_experts ? experts() : products_.mlp(c_.tokens, real(spec.dense_width()));
  out += products_.adapters();
  out += dequantized();
  out += beside_products(mlp_columns);
  if (t.recompute == Recompute::kFull) out.recompute();
  if (t.recompute == Recompute::kSelective) {
    const Pass again = inner_attention();
    out += {0, again.forward, 0, again.forward_launches};
  }
  if (t.activation_offload) {
    const double moves = c_.element * c_.tokens * kept_columns(mlp_columns);
    const double beside = c_.on_gpu() ? moves / kHostLink : 0;  // the kernels of a GPU
    const double after = c_.on_gpu() ? 0 : c_.memory(2 * moves);
    out.forward = std::max(out.forward, beside) + after,
    out.backward = std::max(out.backward, beside) + after;
  }
  return out;
}

// Queries and output of the decoder's rows, keys and values of the encoder's; half of a layer's launches.
Pass LayerCost::cross_attention() const {
  const Trial& t = c_.trial;
  const double keys = real(shape::encoder_length(t)), encoded = real(t.micro_batch_size) * keys;
  const Pass own = products_.linear(c_.tokens, c_.width, c_.hidden),
             of_keys = products_.linear(encoded, 2 * c_.width, c_.hidden);
  const double inner = dense_ != nullptr ? 4 * c_.tokens * keys * c_.width / dense_->flops : 0;
  const double elements = 2 * (c_.tokens * (c_.hidden + c_.width) + encoded * c_.width);
  const double moved = c_.memory(c_.facts.activation_passes * c_.element * elements);
  Pass out{inner + moved / 3, 2.5 * inner + moved * 2 / 3, c_.facts.forward_launches / 2,
           c_.facts.backward_launches / 2};
  out += own.times(2);
  out += of_keys;
  if (t.recompute == Recompute::kFull) out.recompute();
  return out;
}

Pass LayerCost::encoder() const {
  const Trial& t = c_.trial;
  if (!t.spec.has_encoder()) return {};
  const double length = real(shape::encoder_length(t));
  CostCase rows = c_;
  rows.tokens = real(t.micro_batch_size) * length;
  Pass out = LayerCost(rows, length, length).layer(false).times(real(t.spec.encoder_layers));
  return out += cross_attention().times(real(t.spec.layers));
}

Pass LayerCost::head() const {
  const double vocab = real(shape::padded_vocab(c_.trial)) / c_.tp;
  Pass out = ProductCost(c_, halves_).linear(c_.tokens, vocab, c_.hidden);
  if (c_.on_gpu()) {
    const shape::KernelWork loss = shape::loss_work(c_.kernels, c_.tokens, vocab, c_.element);
    const shape::KernelWork half{loss.bytes / 2, loss.launches / 2};
    return out += of_work({half, half});
  }
  const double moved = c_.memory(c_.facts.logit_passes * 4 * c_.tokens * vocab) / 2;
  return out += {moved, moved, c_.facts.head_launches / 2, c_.facts.head_launches / 2};
}

}  // namespace sweep::predict
