#include "bench_kernels/shape/split_traffic.h"

#include <algorithm>
#include <vector>

#include "bench_kernels/shape/adapters.h"
#include "bench_kernels/shape/family.h"
#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/splits.h"
#include "bench_kernels/shape/stage_split.h"

namespace sweep::shape {
namespace {

constexpr i64 kAccumulated = 4;      // bytes of a statistic
constexpr i64 kCount = 8;            // bytes of a number of rows
constexpr i64 kStackAlignment = 64;  // bytes: parameters.cpp pads each stack of a bucket to it
constexpr i64 kShareAlignment = 32;  // elements: state_plan.cpp makes every share a multiple of it

i64 width(const Trial& t) {
  return t.precision == Precision::kFp32 ? 4 : 2;
}

// Tokens of one micro-batch that a context-parallel rank sees.
i64 tokens_of(const Trial& t) {
  return t.micro_batch_size * t.seq_len / t.cp;
}

i64 passes_again(const Trial& t) {
  return t.recompute == Recompute::kFull ? 1 : 0;
}

Volume times(i64 calls, i64 bytes) {
  return {calls, calls * bytes};
}

i64 rounded_up(i64 n, i64 multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// The parts of the model that a rank of the pipeline computes, over all its chunks.
struct Held {
  i64 layers = 0, embeddings = 0, heads = 0;
  i64 expert_layers = 0;
};

Held held_by(const Trial& t, i64 rank) {
  const auto shares = split_stages(t, t.pp * t.vpp);
  Held held;
  for (i64 stage = rank; stage < t.pp * t.vpp; stage += t.pp) {
    const StageShare& share = shares[static_cast<std::size_t>(stage)];
    held.layers += share.layers;
    held.expert_layers += t.spec.experts > 0 ? share.layers - share.dense_layers : 0;
    held.embeddings += share.embedding ? 1 : 0;
    held.heads += share.head ? 1 : 0;
  }
  return held;
}

// How many elements of a bucket one rank updates.
i64 updated_share(const Trial& t, i64 elements) {
  const i64 n = state_split(t).optimizer;
  return t.zero == 0 ? elements : rounded_up(elements, kShareAlignment * n) / n;
}

// Elements of a bucket of norms on one rank: of so many layers, and of the head. Norms of rows are split with sequence
// parallelism alone, those of heads in any case.
i64 share_of_norms(const Trial& t, i64 layers, i64 heads) {
  const i64 alignment = kStackAlignment / width(t);
  const i64 of_layer = family_of(t.spec).post_norms() ? 4 : 2;
  i64 elements = t.sp ? (of_layer * layers + heads) * (t.spec.rmsnorm ? 1 : 2) *
                            rounded_up(t.spec.hidden_size, alignment)
                      : 0;
  if (family_of(t.spec).qk_norm) elements += 2 * layers * rounded_up(t.spec.head_dim, alignment);
  return updated_share(t, elements);
}

// The same of the adapters' matrices that every rank of the tensor group holds whole: A where the layer's outputs are
// split, B where its inputs are.
i64 share_of_adapters(const Trial& t, i64 layers) {
  const Adapters a = adapters_of(t);
  const i64 alignment = kStackAlignment / width(t);
  const ModelSpec& m = t.spec;
  std::vector<i64> columns;  // columns of a layer's matrices; each is multiplied by the adapters' rank
  if (m.latent())
    columns = {m.kv_lora_rank, m.q_lora_rank > 0 ? m.q_lora_rank : m.hidden_size, m.hidden_size};
  else
    for (const i64 count : {a.on_attention_input, i64{a.attention_out}, a.on_mlp_input, i64{a.mlp}})
      columns.push_back(count * m.hidden_size);
  i64 elements = 0;
  for (const i64 each : columns) elements += layers * rounded_up(each * a.rank, alignment);
  return updated_share(t, elements);
}

// How many of an even choice of experts their capacity serves.
i64 choices_served(const Trial& t, i64 choices) {
  if (t.capacity_percent == 0) return choices;
  const i64 hundredths = 100 * t.spec.experts;
  return std::min(choices, rounded_up(choices * t.capacity_percent, hundredths) / 100);
}

// Each chunk has its norms (or adapters) in one bucket, or each block where the kernels read copies.
Volume partial_gradients(const Trial& t, i64 rank) {
  const bool by_block = t.zero >= 3 || state_types(t).casts() || parameters_outside(t);
  const i64 gradient = bytes_of(state_types(t).gradients);
  const auto shares = split_stages(t, t.pp * t.vpp);
  Volume sum;
  const bool adapters = t.lora_rank > 0;
  const auto add = [&](i64 layers, i64 heads) {
    const i64 elements = adapters ? share_of_adapters(t, layers) : share_of_norms(t, layers, heads);
    if (elements > 0) sum += times(1, 2 * (elements * gradient * (t.tp - 1) / t.tp));
  };
  for (i64 stage = rank; stage < t.pp * t.vpp; stage += t.pp) {
    const StageShare& share = shares[static_cast<std::size_t>(stage)];
    if (!by_block) {
      add(share.layers, share.head ? 1 : 0);
      continue;
    }
    for (i64 layer = 0; layer < share.layers; ++layer) add(1, 0);
    if (share.head) add(0, 1);
  }
  return sum;
}

}  // namespace

TensorTraffic tensor_traffic(const Trial& t, i64 rank) {
  const auto once = [&](i64 payload) { return payload * (t.tp - 1) / t.tp; };
  const i64 tokens = tokens_of(t), rows = once(tokens * t.spec.hidden_size * width(t));
  const i64 statistics = once(tokens * kAccumulated), micro = t.grad_accum;
  const Held held = held_by(t, rank);
  TensorTraffic traffic;
  const i64 entries = padded_vocab(t) / t.tp, chunk = loss_rows(tokens, entries, width(t));
  traffic.all_reduce = {2 * micro * held.heads * ((tokens + chunk - 1) / chunk),
                        micro * held.heads * 2 * (statistics + 2 * statistics)};
  traffic.all_reduce +=
      times(micro * held.expert_layers, 2 * once(tokens * t.spec.experts_per_token * kAccumulated));
  const i64 latents = t.spec.kv_lora_rank + t.spec.q_lora_rank + t.spec.rope_head_dim;
  if (t.spec.latent())
    traffic.all_reduce += times(micro * held.layers, 2 * once(tokens * latents * width(t)));
  const i64 again = passes_again(t), of_queries = t.spec.q_lora_rank > 0 ? 0 : 1;
  const i64 sums = (3 + of_queries + 2 * again) * held.layers + held.embeddings + held.heads;
  const Adapters adapters = adapters_of(t);
  if (t.sp || adapters.any() || family_of(t.spec).qk_norm) traffic.all_reduce += partial_gradients(t, rank);
  if (!t.sp) {
    traffic.all_reduce += times(micro * sums, 2 * rows);
    return traffic;
  }
  const i64 of_head =
      t.schedule == Schedule::kZeroBubble && t.pp > 1 ? 2 : 1;  // again for the weights' gradients
  i64 gathers = ((t.spec.latent() ? 5 : 6) + 2 * again) * held.layers - held.expert_layers + held.embeddings +
                of_head * held.heads;
  // Rows that only a weight's gradient reads are not gathered where the weight is frozen.
  if (adapters.any())
    gathers -= held.embeddings + held.layers * (adapters.on_attention_input == 0) +
               (held.layers - held.expert_layers) * (adapters.on_mlp_input == 0);
  traffic.all_gather = times(micro * gathers, rows);
  traffic.reduce_scatter = times(micro * sums, rows);
  return traffic;
}

KeyValueTraffic key_value_traffic(const Trial& t, i64 rank) {
  const i64 ranks = kv_sharers(t), uses = t.grad_accum * held_by(t, rank).layers;
  if (ranks == 1) return {};
  const i64 heads = tokens_of(t) * 2 * t.spec.head_dim * width(t) * (ranks - 1) / ranks;
  return {times(uses * (1 + passes_again(t)), heads), times(uses, heads)};
}

ContextTraffic context_traffic(const Trial& t, i64 rank) {
  const i64 kv = 2 * kv_heads_of_rank(t) * t.spec.head_dim, q = t.spec.heads / t.tp * t.spec.head_dim;
  const i64 row = tokens_of(t) * width(t), uses = t.grad_accum * held_by(t, rank).layers;
  const bool selective = t.recompute == Recompute::kSelective;
  if (t.cp_comm_type == CpCommType::kRing) {
    const i64 rounds = 3 + (selective ? 1 : passes_again(t));
    return {times(rounds * uses * (t.cp - 1), row * kv), {}};
  }
  const auto once = [&](i64 payload) { return payload * (t.cp - 1) / t.cp; };
  const i64 passes = 2 + passes_again(t);
  ContextTraffic traffic;
  traffic.all_to_all = {2 * passes * uses, passes * uses * once(row * (q + kv) + row * q)};
  if (selective) traffic.all_to_all += times(uses, once(row * q));
  return traffic;
}

ExpertTraffic expert_traffic(const Trial& t, i64 rank) {
  const i64 row = t.spec.hidden_size * width(t), choices = tokens_of(t) * t.spec.experts_per_token;
  const i64 uses = t.grad_accum * held_by(t, rank).expert_layers, forwards = 1 + passes_again(t);
  ExpertTraffic traffic;
  if (t.ep > 1) {
    traffic.all_to_all =
        times((2 + 2 * forwards) * uses, choices_served(t, choices) * row * (t.ep - 1) / t.ep);
    if (t.routing == Routing::kLearned)
      traffic.counts = times(forwards * uses, t.spec.experts * kCount * (t.ep - 1));
  }
  const i64 ranks = t.dp * t.cp;
  if (ranks > 1 && t.spec.router_aux_coef > 0)
    traffic.load = times(forwards * uses, 2 * t.spec.experts * kAccumulated * (ranks - 1) / ranks);
  return traffic;
}

Volume tied_traffic(const Trial& t, i64 rank) {
  const Held held = held_by(t, rank);
  if (!t.spec.tie_embeddings || t.lora_rank > 0 || t.pp == 1 || held.embeddings + held.heads == 0) return {};
  const i64 table = rounded_up(padded_vocab(t) / t.tp * t.spec.hidden_size, kStackAlignment / width(t));
  return times(1, updated_share(t, table) * bytes_of(state_types(t).gradients));  // two ranks: twice a half
}

}  // namespace sweep::shape
