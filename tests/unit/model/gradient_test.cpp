// The model's hand-written backward against the same model spelt in plain operators with automatic
// differentiation, in fp64.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <map>

#include "bench_kernels/model/stage.h"
#include "tests/unit/model/gradient_room.h"

namespace sweep::model {
namespace {

using Named = std::map<std::string, at::Tensor>;

class Reference {
 public:
  // scale: of adapters, where the weights have them.
  Reference(const ModelSpec& spec, Named weights, double scale)
      : s_(spec), w_(std::move(weights)), gpt2_(spec.family == "gpt2"), scale_(scale) {}

  at::Tensor loss(const at::Tensor& tokens, const at::Tensor& labels, std::int64_t seq) {
    const std::string outer = gpt2_ ? "transformer." : "model.";
    const std::string table = outer + (gpt2_ ? "wte" : "embed_tokens") + ".weight";
    at::Tensor x = w_.at(table).index_select(0, tokens).view({-1, seq, s_.hidden_size});
    if (!s_.rope) x = x + w_.at(outer + "wpe.weight").narrow(0, 0, seq);
    for (std::int64_t layer = 0; layer < s_.layers; ++layer) {
      const std::string block = outer + (gpt2_ ? "h." : "layers.") + std::to_string(layer) + ".";
      const at::Tensor normed = norm(block + (gpt2_ ? "ln_1" : "input_layernorm"), x);
      layer_ = layer;
      x = x + (s_.latent() ? latent_attention(block, normed) : attention(block, normed));
      x = x + (s_.has_experts(layer)
                   ? moe(block, norm(block + "post_attention_layernorm", x))
                   : mlp(block, norm(block + (gpt2_ ? "ln_2" : "post_attention_layernorm"), x)));
    }
    x = norm(outer + (gpt2_ ? "ln_f" : "norm"), x);
    const at::Tensor logits = x.matmul(w_.at(s_.tie_embeddings ? table : "lm_head.weight").t()).flatten(0, 1);
    return logits.logsumexp(-1).sub(logits.gather(1, labels.unsqueeze(1)).squeeze(1)).mean() + auxiliary_;
  }

 private:
  at::Tensor norm(const std::string& name, const at::Tensor& x) {
    const double eps = name.ends_with("_a_layernorm") ? 1e-6 : s_.norm_eps;  // latents have their own
    if (s_.rmsnorm) return x * (x.square().mean(-1, true) + eps).rsqrt() * w_.at(name + ".weight");
    const at::Tensor c = x - x.mean(-1, true);
    return c * (c.square().mean(-1, true) + s_.norm_eps).rsqrt() * w_.at(name + ".weight") +
           w_.at(name + ".bias");
  }
  at::Tensor linear(const std::string& name, const at::Tensor& x) {
    const at::Tensor& w = w_.at(name + ".weight");
    at::Tensor y = x.matmul(gpt2_ ? w : w.t());
    if (w_.count(name + ".lora_A.weight"))
      y = y +
          x.matmul(w_.at(name + ".lora_A.weight").t()).matmul(w_.at(name + ".lora_B.weight").t()) * scale_;
    return w_.count(name + ".bias") ? y + w_.at(name + ".bias") : y;
  }
  at::Tensor turned(const at::Tensor& x) {  // [B, S, H, D]
    const std::int64_t half = x.size(3) / 2;
    // Frequencies and angles are rounded to float, as the model's tables (and the reference implementations')
    // are.
    const at::Tensor exponent = at::arange(half, at::kFloat).mul(2).div(static_cast<double>(x.size(3)));
    const bool local = !s_.full_attention(layer_) && s_.rope_local_theta > 0;
    const at::Tensor f = at::pow(local ? s_.rope_local_theta : s_.rope_theta, exponent.to(at::kDouble))
                             .to(at::kFloat)
                             .reciprocal();
    const at::Tensor a = at::arange(x.size(1), at::kFloat).unsqueeze(1).mul(f).to(at::kDouble).unsqueeze(1);
    const at::Tensor x1 = x.narrow(3, 0, half), x2 = x.narrow(3, half, half);
    return at::cat({x1 * a.cos() - x2 * a.sin(), x2 * a.cos() + x1 * a.sin()}, 3);
  }
  at::Tensor attention(const std::string& block, const at::Tensor& x) {
    const std::int64_t b = x.size(0), n = x.size(1);
    at::Tensor q, k, v;
    if (gpt2_) {
      const auto parts = linear(block + "attn.c_attn", x).chunk(3, -1);
      q = parts[0], k = parts[1], v = parts[2];
    } else {
      q = linear(block + "self_attn.q_proj", x), k = linear(block + "self_attn.k_proj", x),
      v = linear(block + "self_attn.v_proj", x);
    }
    q = q.view({b, n, s_.heads, s_.head_dim}), k = k.view({b, n, s_.kv_heads, s_.head_dim}),
    v = v.view(k.sizes());
    if (w_.contains(block + "self_attn.q_norm.weight"))
      q = norm(block + "self_attn.q_norm", q), k = norm(block + "self_attn.k_norm", k);
    if (s_.rope) q = turned(q), k = turned(k);
    const auto sinks = w_.find(block + "self_attn.sinks");
    return linear(block + (gpt2_ ? "attn.c_proj" : "self_attn.o_proj"),
                  attended(q, k, v, sinks == w_.end() ? at::Tensor() : sinks->second));
  }
  // Numbers of the rotary part side by side are a pair.
  at::Tensor turned_pairs(const at::Tensor& x) {
    return turned(x.unflatten(3, {-1, 2}).transpose(3, 4).flatten(3));
  }
  at::Tensor latent_attention(const std::string& block, const at::Tensor& x) {
    const std::int64_t b = x.size(0), n = x.size(1), rotary = s_.rope_head_dim, plain = s_.head_dim - rotary;
    const std::string part = block + "self_attn.";
    const at::Tensor q =
        (s_.q_lora_rank > 0
             ? linear(part + "q_b_proj", norm(part + "q_a_layernorm", linear(part + "q_a_proj", x)))
             : linear(part + "q_proj", x))
            .view({b, n, s_.heads, s_.head_dim});
    const at::Tensor latent = linear(part + "kv_a_proj_with_mqa", x);
    const at::Tensor kv =
        linear(part + "kv_b_proj", norm(part + "kv_a_layernorm", latent.narrow(2, 0, s_.kv_lora_rank)))
            .view({b, n, s_.heads, plain + s_.v_head_dim});
    const at::Tensor shared = turned_pairs(latent.narrow(2, s_.kv_lora_rank, rotary).unsqueeze(2));
    const at::Tensor queries = at::cat({q.narrow(3, 0, plain), turned_pairs(q.narrow(3, plain, rotary))}, 3);
    const at::Tensor keys = at::cat({kv.narrow(3, 0, plain), shared.expand({b, n, s_.heads, rotary})}, 3);
    return linear(part + "o_proj", attended(queries, keys, kv.narrow(3, plain, s_.v_head_dim)));
  }
  at::Tensor attended(const at::Tensor& q, at::Tensor k, at::Tensor v, const at::Tensor& sinks = {}) {
    const std::int64_t b = q.size(0), n = q.size(1), groups = s_.heads / s_.kv_heads;
    k = k.repeat_interleave(groups, 2), v = v.repeat_interleave(groups, 2);
    const at::Tensor row = at::arange(n).unsqueeze(1), column = at::arange(n).unsqueeze(0);
    at::Tensor hidden = column.gt(row);
    if (const auto window = s_.window(layer_)) hidden = hidden.logical_or(column.le(row - *window));
    at::Tensor scores = q.transpose(1, 2).matmul(k.transpose(1, 2).transpose(2, 3)) /
                        std::sqrt(s_.query_pre_attn_scalar > 0 ? s_.query_pre_attn_scalar : s_.head_dim);
    scores = scores.masked_fill(hidden, -INFINITY);
    if (sinks.defined())
      scores = at::cat({scores, sinks.view({1, -1, 1, 1}).expand({b, s_.heads, n, 1})}, -1);
    const at::Tensor out = scores.softmax(-1).narrow(-1, 0, n).matmul(v.transpose(1, 2));
    return out.transpose(1, 2).reshape({b, n, -1});
  }
  at::Tensor mlp(const std::string& block, const at::Tensor& x) {
    if (s_.swiglu) return gated(x, block + "mlp.");
    const at::Tensor u = linear(block + "mlp.c_fc", x);
    return linear(block + "mlp.c_proj",
                  0.5 * u * (1 + (std::sqrt(2 / M_PI) * (u + 0.044715 * u.pow(3))).tanh()));
  }

  // Every expert on every token, weighed by the normalised top-k probabilities; the load-balancing loss on
  // the side.
  at::Tensor moe(const std::string& block, const at::Tensor& x) {
    const bool gpt_oss = s_.family == "gpt_oss", mixtral = !s_.latent() && !gpt_oss;
    const std::string prefix = block + (mixtral ? "block_sparse_moe." : "mlp.");
    const at::Tensor flat = x.flatten(0, 1), logits = linear(prefix + (gpt_oss ? "router" : "gate"), flat);
    const bool sigmoid = s_.family == "deepseek_v3";
    const at::Tensor probs = sigmoid ? logits.sigmoid() : logits.softmax(-1);
    const auto [top, chosen] = probs.topk(s_.experts_per_token, -1);
    const at::Tensor share = s_.family == "deepseek_v2" ? top : top / top.sum(-1, true);
    const at::Tensor weights = at::zeros_like(probs).scatter(1, chosen, share * s_.routed_scaling);
    const at::Tensor load = at::zeros_like(probs).scatter(1, chosen, 1.0).mean(0);
    auxiliary_ =
        auxiliary_ + s_.router_aux_coef * static_cast<double>(s_.experts) * (load * probs.mean(0)).sum();
    at::Tensor out = at::zeros_like(flat);
    for (std::int64_t e = 0; e < s_.experts; ++e) {
      const std::string expert = prefix + "experts." + std::to_string(e) + ".";
      const at::Tensor result =
          mixtral ? gated(flat, expert + "w1", expert + "w3", expert + "w2") : gated(flat, expert);
      out = out + result * weights.narrow(1, e, 1);
    }
    if (s_.shared_experts > 0) out = out + gated(flat, prefix + "shared_experts.");
    return out.view_as(x);
  }
  at::Tensor gated(const at::Tensor& x, const std::string& prefix) {
    return gated(x, prefix + "gate_proj", prefix + "up_proj", prefix + "down_proj");
  }
  at::Tensor gated(const at::Tensor& x, const std::string& gate, const std::string& up,
                   const std::string& down) {
    const at::Tensor g = linear(gate, x);
    if (s_.family == "gpt_oss") {
      const at::Tensor clamped = g.clamp_max(7.0);
      return linear(down, clamped * (1.702 * clamped).sigmoid() * (linear(up, x).clamp(-7.0, 7.0) + 1));
    }
    return linear(down, g * g.sigmoid() * linear(up, x));
  }

  ModelSpec s_;
  std::int64_t layer_ = 0;  // at work
  Named w_;
  bool gpt2_;
  double scale_;
  at::Tensor auxiliary_ = at::zeros({}, at::kDouble);
};

ModelSpec llama() {
  ModelSpec s;
  s.layers = 2, s.hidden_size = 32, s.heads = 4, s.kv_heads = 2, s.head_dim = 8, s.intermediate_size = 48,
  s.vocab_size = 61;
  return s;
}
ModelSpec gpt2() {
  ModelSpec s = llama();
  s.family = "gpt2", s.kv_heads = 4, s.max_positions = 16, s.tie_embeddings = true, s.attention_bias = true,
  s.linear_bias = true;
  s.rmsnorm = s.swiglu = s.rope = false;
  return s;
}

// A layer without experts, then one with them.
ModelSpec deepseek() {
  ModelSpec s = llama();
  s.family = "deepseek_v2", s.kv_heads = s.heads, s.head_dim = 14, s.rope_head_dim = 4, s.v_head_dim = 6;
  s.kv_lora_rank = 10, s.experts = 4, s.experts_per_token = 2, s.shared_experts = 2;
  s.dense_layers = 1, s.dense_intermediate_size = 40, s.intermediate_size = 24;
  return s;
}

struct Case {  // printed by its name
  const char* name;
  ModelSpec spec;
  Attention attention;
  std::optional<LoraTargets> adapters = {};
  std::int64_t loss_chunk = shape::kLossChunk;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

class Gradient : public ::testing::TestWithParam<Case> {};

// With adapters they have gradients, and nothing else has room for any.
void expect_gradients(const Parameters& parameters, const Named& weights, bool adapters) {
  for (const auto& named : parameters.all()) {
    const bool trains = !adapters || named.name.find(".lora_") != std::string::npos;
    ASSERT_EQ(parameters.bucket_of(named.stack).grads.defined(), trains) << named.name;
    if (!trains) continue;
    const at::Tensor& wanted = weights.at(named.name).grad();
    const double scale = wanted.abs().max().item<double>();
    EXPECT_GT(scale, 0) << named.name;
    EXPECT_LE((parameters.gradient(named) - wanted).abs().max().item<double>(), 1e-9 * (scale + 1e-3))
        << named.name;
  }
}

shape::Adapters adapters_in(const Case& c) {
  Trial trial;
  if (!c.adapters) return {};
  trial.spec = c.spec, trial.lora_rank = 3, trial.lora_alpha = 8, trial.lora_targets = *c.adapters;
  return shape::adapters_of(trial);
}

// Two micro-steps with half the scale each are one step on both batches.
TEST_P(Gradient, EqualsAutomaticDifferentiation) {
  constexpr std::int64_t kSeq = 12;
  const ModelSpec& spec = GetParam().spec;
  at::manual_seed(3);
  AloneLayout layout;
  Options options;
  options.type = at::kDouble, options.attention = GetParam().attention, options.seq_len = kSeq;
  options.seed = 5, options.routing = Routing::kLearned;
  options.adapters = adapters_in(GetParam());
  options.loss_chunk = GetParam().loss_chunk;
  Stage model(spec, options, layout.value(), {0, spec.layers, true, true});
  Parameters& parameters = model.parameters();
  parameters.layout({at::TensorOptions(at::kDouble)});
  Named weights;
  {
    const at::NoGradGuard no_grad;
    for (const auto& named : parameters.all()) {
      const at::Tensor tensor = parameters.value(named);
      at::Tensor(tensor).add_(
          at::randn(tensor.sizes(), at::kDouble).mul_(0.2));  // biases and norms away from their start
      weights[named.name] = tensor.clone().set_requires_grad(true);
    }
  }
  const at::Tensor tokens = at::randint(spec.vocab_size, {2, 3 * kSeq}, at::kLong);
  const at::Tensor labels = at::randint(spec.vocab_size, {2, 3 * kSeq}, at::kLong);
  // Per micro-batch: the auxiliary loss of a batch is not the mean of its parts'.
  const auto reference = [&](int micro) {
    return Reference(spec, weights, options.adapters.scale).loss(tokens[micro], labels[micro], kSeq);
  };
  const at::Tensor expected = (reference(0) + reference(1)) / 2;
  torch::autograd::backward({expected}, {at::ones({}, at::kDouble)});

  make_gradient_room(parameters);
  const at::Tensor total = at::zeros({1}, at::kDouble);
  for (int micro = 0; micro < 2; ++micro) {
    const MicroBatch step{tokens[micro], labels[micro], 0.5, total};
    Stage::Tape tape;
    model.forward(step, {}, tape);
    model.backward(step, {}, std::move(tape));
  }
  if (spec.router_aux_coef == 0) {  // it is no part of the loss that is shown
    EXPECT_NEAR(total.item<double>() / (6 * kSeq), expected.item<double>(), 1e-10);
  }
  expect_gradients(parameters, weights, GetParam().adapters.has_value());
}

std::vector<Case> latent_cases() {
  ModelSpec deepseek_v3 = deepseek();
  deepseek_v3.family = "deepseek_v3", deepseek_v3.q_lora_rank = 14, deepseek_v3.routed_scaling = 2.5;
  return {{"deepseek_v2_flash", deepseek(), Attention::kFlash},
          {"deepseek_v2_math", deepseek(), Attention::kMath},
          {"deepseek_v3", deepseek_v3, Attention::kFlash},
          {"deepseek_v2_lora", deepseek(), Attention::kFlash, LoraTargets::kAttention},
          {"deepseek_v3_lora", deepseek_v3, Attention::kMath, LoraTargets::kAttention}};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Attention a : {Attention::kFlash, Attention::kMath}) {
    const bool flash = a == Attention::kFlash;
    all.push_back({flash ? "llama_flash" : "llama_math", llama(), a});
    all.push_back({flash ? "gpt2_flash" : "gpt2_math", gpt2(), a});
    ModelSpec window = llama();
    window.family = "mistral", window.sliding_window = 5;
    all.push_back({flash ? "mistral_flash" : "mistral_math", window, a});
    window.layers = 3, window.sliding_window_pattern = 2, window.rope_local_theta = 100;
    window.query_pre_attn_scalar = 13;
    all.push_back({flash ? "windows_by_layer_flash" : "windows_by_layer_math", window, a});
  }
  ModelSpec qwen2 = llama();
  qwen2.family = "qwen2", qwen2.attention_bias = true, qwen2.tie_embeddings = true, qwen2.kv_heads = 1;
  all.push_back({"qwen2", qwen2, Attention::kFlash});
  const std::int64_t eight_rows = 8 * qwen2.vocab_size * 8;  // of 36
  all.push_back({"qwen2_loss_in_chunks", qwen2, Attention::kFlash, {}, eight_rows});
  all.push_back({"gpt2_loss_in_chunks", gpt2(), Attention::kFlash, {}, eight_rows});
  ModelSpec qwen3 = llama();
  qwen3.family = "qwen3", qwen3.head_dim += 2;
  all.push_back({"qwen3_flash", qwen3, Attention::kFlash});
  all.push_back({"qwen3_math", qwen3, Attention::kMath});
  all.push_back({"qwen3_lora", qwen3, Attention::kFlash, LoraTargets::kAttention});
  ModelSpec mixtral = llama();
  mixtral.family = "mixtral", mixtral.experts = 4, mixtral.experts_per_token = 2;
  all.push_back({"mixtral", mixtral, Attention::kFlash});
  all.push_back({"llama_lora", llama(), Attention::kFlash, LoraTargets::kAllLinear});
  all.push_back({"llama_lora_query_value", llama(), Attention::kMath, LoraTargets::kQueryValue});
  all.push_back({"llama_lora_mlp", llama(), Attention::kFlash, LoraTargets::kMlp});
  all.push_back(
      {"llama_lora_loss_in_chunks", llama(), Attention::kFlash, LoraTargets::kAllLinear, eight_rows});
  all.push_back({"gpt2_lora", gpt2(), Attention::kFlash, LoraTargets::kAllLinear});
  all.push_back({"qwen2_lora", qwen2, Attention::kFlash, LoraTargets::kAllLinear});
  all.push_back({"mixtral_lora", mixtral, Attention::kFlash, LoraTargets::kAttention});
  const std::vector<Case> latent = latent_cases();
  all.insert(all.end(), latent.begin(), latent.end());
  ModelSpec gpt_oss = llama();
  gpt_oss.family = "gpt_oss", gpt_oss.experts = 4, gpt_oss.experts_per_token = 2;
  gpt_oss.attention_bias = gpt_oss.linear_bias = true, gpt_oss.sliding_window = 5,
  gpt_oss.sliding_window_pattern = 2;
  all.push_back({"gpt_oss", gpt_oss, Attention::kFlash});
  all.push_back({"gpt_oss_lora", gpt_oss, Attention::kFlash, LoraTargets::kAttention});
  mixtral.router_aux_coef = 0.1;
  all.push_back({"mixtral_auxiliary_loss", mixtral, Attention::kFlash});
  return all;
}
// Whatever the rows beyond the vocabulary hold, they take no probability, and their gradient is zero.
TEST(PaddedVocabulary, TakesNoProbabilityAndGetsNoGradient) {
  constexpr std::int64_t kSeq = 12;
  for (ModelSpec spec : {llama(), gpt2()}) {
    double loss[2];
    for (const bool padded : {false, true}) {
      AloneLayout layout;
      Options options;
      options.type = at::kDouble, options.seq_len = kSeq, options.vocab_multiple = padded ? 8 : 1;
      Stage model(spec, options, layout.value(), {0, spec.layers, true, true});
      Parameters& p = model.parameters();
      p.layout({at::TensorOptions(at::kDouble)});
      make_gradient_room(p);
      const auto rows_beyond = [&](Parameters::Id id, const at::Tensor& flat) {
        return p.stacks()[id].view(flat).narrow(0, spec.vocab_size, p.stacks()[id].rows() - spec.vocab_size);
      };
      std::vector<Parameters::Id> tables{kTable};
      for (const auto& named : p.all())
        if (named.name == "lm_head.weight") tables.push_back(named.stack);
      ASSERT_EQ(tables.size(), spec.tie_embeddings ? 1u : 2u);
      for (const auto id : tables) {
        ASSERT_EQ(rows_beyond(id, p.bucket_of(id).values).size(0), padded ? 3 : 0);
        rows_beyond(id, p.bucket_of(id).values).fill_(100.0);
      }
      const at::Tensor total = at::zeros({1}, at::kDouble);
      const at::Tensor tokens = at::arange(2 * kSeq, at::kLong), labels = tokens.add(1);
      Stage::Tape tape;
      model.forward({tokens, labels, 1, total}, {}, tape);
      model.backward({tokens, labels, 1, total}, {}, std::move(tape));
      loss[padded ? 1 : 0] = total.item<double>();
      for (const auto id : tables)
        EXPECT_EQ(rows_beyond(id, p.bucket_of(id).grads).abs().sum().item<double>(), 0) << spec.family;
    }
    EXPECT_DOUBLE_EQ(loss[0], loss[1]) << spec.family;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Gradient, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sweep::model
