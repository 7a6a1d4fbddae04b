// An encoder-decoder's hand-written backward against the same model in plain operators with automatic
// differentiation, in fp64: a source of another length than the target, in two micro-batches.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <map>

#include "bench_kernels/model/stage.h"
#include "tests/unit/model/gradient_room.h"

namespace sweep::model {
namespace {

constexpr std::int64_t kTarget = 12;

ModelSpec blenderbot() {
  ModelSpec s;
  s.family = "blenderbot", s.layers = 3, s.encoder_layers = 2;
  s.hidden_size = 32, s.heads = s.kv_heads = 4, s.head_dim = 8, s.intermediate_size = 48, s.vocab_size = 61;
  s.max_positions = 20, s.tie_embeddings = s.attention_bias = s.linear_bias = true;
  s.rmsnorm = s.swiglu = s.rope = false;
  return s;
}

// Computes what transformers' BlenderbotForConditionalGeneration does.
class PlainEncoderDecoder {
 public:
  PlainEncoderDecoder(const ModelSpec& spec, std::map<std::string, at::Tensor> weights)
      : s_(spec), w_(std::move(weights)) {}

  at::Tensor loss(const at::Tensor& source, const at::Tensor& target, const at::Tensor& labels,
                  std::int64_t source_length) {
    at::Tensor encoded = embedded("model.encoder.", source, source_length);
    for (std::int64_t layer = 0; layer < s_.encoder_layers; ++layer) {
      const std::string block = "model.encoder.layers." + std::to_string(layer) + ".";
      encoded = encoded + self_attention(block, encoded, false);
      encoded = encoded + mlp(block, encoded);
    }
    encoded = norm("model.encoder.layer_norm", encoded);
    at::Tensor x = embedded("model.decoder.", target, kTarget);
    for (std::int64_t layer = 0; layer < s_.layers; ++layer) {
      const std::string block = "model.decoder.layers." + std::to_string(layer) + ".";
      x = x + self_attention(block, x, true);
      x = x + attention(block + "encoder_attn.", norm(block + "encoder_attn_layer_norm", x), encoded, false);
      x = x + mlp(block, x);
    }
    const at::Tensor logits =
        norm("model.decoder.layer_norm", x).matmul(w_.at("model.shared.weight").t()).flatten(0, 1);
    return logits.logsumexp(-1).sub(logits.gather(1, labels.unsqueeze(1)).squeeze(1)).mean();
  }

 private:
  at::Tensor embedded(const std::string& side, const at::Tensor& tokens, std::int64_t seq) {
    const at::Tensor rows =
        w_.at("model.shared.weight").index_select(0, tokens).view({-1, seq, s_.hidden_size});
    return rows * std::sqrt(static_cast<double>(s_.hidden_size)) +
           w_.at(side + "embed_positions.weight").narrow(0, 0, seq);
  }
  at::Tensor norm(const std::string& name, const at::Tensor& x) {
    return at::layer_norm(x, {s_.hidden_size}, w_.at(name + ".weight"), w_.at(name + ".bias"), s_.norm_eps);
  }
  at::Tensor linear(const std::string& name, const at::Tensor& x) {
    return x.matmul(w_.at(name + ".weight").t()) + w_.at(name + ".bias");
  }
  at::Tensor heads(const std::string& name, const at::Tensor& x) {
    return linear(name, x).view({x.size(0), x.size(1), s_.heads, s_.head_dim}).transpose(1, 2);
  }
  at::Tensor attention(const std::string& name, const at::Tensor& x, const at::Tensor& from, bool causal) {
    const at::Tensor q = heads(name + "q_proj", x), k = heads(name + "k_proj", from),
                     v = heads(name + "v_proj", from);
    at::Tensor scores = q.matmul(k.transpose(2, 3)) / std::sqrt(static_cast<double>(s_.head_dim));
    if (causal) scores = scores + at::full({x.size(1), x.size(1)}, -INFINITY, at::kDouble).triu(1);
    return linear(name + "out_proj", scores.softmax(-1).matmul(v).transpose(1, 2).flatten(2));
  }
  at::Tensor self_attention(const std::string& block, const at::Tensor& x, bool causal) {
    const at::Tensor h = norm(block + "self_attn_layer_norm", x);
    return attention(block + "self_attn.", h, h, causal);
  }
  at::Tensor mlp(const std::string& block, const at::Tensor& x) {
    const at::Tensor in = linear(block + "fc1", norm(block + "final_layer_norm", x));
    return linear(block + "fc2", at::gelu(in));
  }

  ModelSpec s_;
  std::map<std::string, at::Tensor> w_;
};

ModelSpec t5(bool tied) {
  ModelSpec s = blenderbot();
  s.family = "t5", s.max_positions = 0, s.head_dim = 10, s.tie_embeddings = tied;
  s.attention_bias = s.linear_bias = false, s.rmsnorm = s.swiglu = true;
  return s;
}

ModelSpec t5_v1_0() {
  ModelSpec s = t5(true);
  s.family = "t5_v1_0", s.swiglu = false;
  return s;
}

// Computes what transformers' T5ForConditionalGeneration does, versions 1.1 and 1.0, with one table for both ends or two.
class PlainT5 {
 public:
  PlainT5(const ModelSpec& spec, std::map<std::string, at::Tensor> weights)
      : s_(spec), w_(std::move(weights)) {}

  at::Tensor loss(const at::Tensor& source, const at::Tensor& target, const at::Tensor& labels,
                  std::int64_t source_length) {
    at::Tensor encoded = embedded(source, source_length);
    at::Tensor bias = position_bias("encoder", source_length, true);
    for (std::int64_t layer = 0; layer < s_.encoder_layers; ++layer) {
      const std::string block = "encoder.block." + std::to_string(layer) + ".layer.";
      encoded = encoded + self_attention(block, encoded, bias);
      encoded = encoded + mlp(block + "1.", encoded);
    }
    encoded = norm("encoder.final_layer_norm", encoded);
    at::Tensor x = embedded(target, kTarget);
    bias = position_bias("decoder", kTarget, false) +
           at::full({kTarget, kTarget}, -INFINITY, at::kDouble).triu(1);
    for (std::int64_t layer = 0; layer < s_.layers; ++layer) {
      const std::string block = "decoder.block." + std::to_string(layer) + ".layer.";
      x = x + self_attention(block, x, bias);
      x = x + attention(block + "1.EncDecAttention.", norm(block + "1.layer_norm", x), encoded,
                        at::zeros({1}, at::kDouble));
      x = x + mlp(block + "2.", x);
    }
    x = norm("decoder.final_layer_norm", x);
    if (s_.tie_embeddings) x = x / std::sqrt(static_cast<double>(s_.hidden_size));
    const at::Tensor logits =
        x.matmul(w_.at(s_.tie_embeddings ? "shared.weight" : "lm_head.weight").t()).flatten(0, 1);
    return logits.logsumexp(-1).sub(logits.gather(1, labels.unsqueeze(1)).squeeze(1)).mean();
  }

 private:
  at::Tensor embedded(const at::Tensor& tokens, std::int64_t seq) {
    return w_.at("shared.weight").index_select(0, tokens).view({-1, seq, s_.hidden_size});
  }
  // [heads, seq, seq] by the distance of each pair; sequences here are shorter than 128.
  at::Tensor position_bias(const std::string& side, std::int64_t seq, bool both) {
    const int count = both ? 16 : 32, exact = count / 2;
    std::vector<std::int64_t> rows;
    for (std::int64_t q = 0; q < seq; ++q)
      for (std::int64_t k = 0; k < seq; ++k) {
        const std::int64_t away = both ? std::abs(q - k) : std::max<std::int64_t>(q - k, 0);
        const double share = std::log(static_cast<double>(away) / exact) / std::log(128.0 / exact);
        const std::int64_t row =
            away < exact ? away : exact + static_cast<std::int64_t>(share * (count - exact));
        rows.push_back(row + (both && k > q ? count : 0));
      }
    return w_.at(side + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight")
        .index_select(0, at::tensor(rows))
        .view({seq, seq, s_.heads})
        .permute({2, 0, 1});
  }
  at::Tensor norm(const std::string& name, const at::Tensor& x) {
    return x * (x.pow(2).mean(-1, true) + s_.norm_eps).rsqrt() * w_.at(name + ".weight");
  }
  at::Tensor linear(const std::string& name, const at::Tensor& x) {
    return x.matmul(w_.at(name + ".weight").t());
  }
  at::Tensor heads(const std::string& name, const at::Tensor& x) {
    return linear(name, x).view({x.size(0), x.size(1), s_.heads, s_.head_dim}).transpose(1, 2);
  }
  at::Tensor attention(const std::string& name, const at::Tensor& x, const at::Tensor& from,
                       const at::Tensor& bias) {
    const at::Tensor scores = heads(name + "q", x).matmul(heads(name + "k", from).transpose(2, 3)) + bias;
    return linear(name + "o", scores.softmax(-1).matmul(heads(name + "v", from)).transpose(1, 2).flatten(2));
  }
  at::Tensor self_attention(const std::string& block, const at::Tensor& x, const at::Tensor& bias) {
    const at::Tensor h = norm(block + "0.layer_norm", x);
    return attention(block + "0.SelfAttention.", h, h, bias);
  }
  at::Tensor mlp(const std::string& part, const at::Tensor& x) {
    const at::Tensor h = norm(part + "layer_norm", x);
    const std::string dense = part + "DenseReluDense.";
    if (!s_.swiglu) return linear(dense + "wo", linear(dense + "wi", h).relu());
    return linear(dense + "wo", at::gelu(linear(dense + "wi_0", h), "tanh") * linear(dense + "wi_1", h));
  }

  ModelSpec s_;
  std::map<std::string, at::Tensor> w_;
};

struct EncoderCase {
  const char* name;
  Attention attention;
  std::int64_t source;
  Recompute recompute;
  ModelSpec spec = blenderbot();
};
void PrintTo(const EncoderCase& c, std::ostream* out) {
  *out << c.name;
}

at::Tensor reference_loss(const ModelSpec& spec, const std::map<std::string, at::Tensor>& weights,
                          const at::Tensor& source, const at::Tensor& target, const at::Tensor& labels,
                          std::int64_t source_length) {
  if (spec.family.starts_with("t5"))
    return PlainT5(spec, weights).loss(source, target, labels, source_length);
  return PlainEncoderDecoder(spec, weights).loss(source, target, labels, source_length);
}

class EncoderDecoder : public ::testing::TestWithParam<EncoderCase> {};

TEST_P(EncoderDecoder, EqualsAutomaticDifferentiation) {
  const ModelSpec& spec = GetParam().spec;
  const std::int64_t source_length = GetParam().source;
  at::manual_seed(4);
  AloneLayout layout;
  Options options;
  options.type = at::kDouble, options.attention = GetParam().attention,
  options.recompute = GetParam().recompute;
  options.recompute_every = options.recompute == Recompute::kFull ? 2 : 1;
  options.seq_len = kTarget, options.encoder_seq_len = source_length, options.seed = 5;
  Stage model(spec, options, layout.value(), {0, spec.layers, true, true});
  Parameters& parameters = model.parameters();
  parameters.layout({at::TensorOptions(at::kDouble)});
  std::map<std::string, at::Tensor> weights;
  {
    const at::NoGradGuard no_grad;
    for (const auto& named : parameters.all()) {
      const at::Tensor tensor = parameters.value(named);
      at::Tensor(tensor).add_(at::randn(tensor.sizes(), at::kDouble).mul_(0.2));
      weights[named.name] = tensor.clone().set_requires_grad(true);
    }
  }
  const auto drawn = [&](std::int64_t rows) { return at::randint(spec.vocab_size, {2, rows}, at::kLong); };
  const at::Tensor sources = drawn(3 * source_length), targets = drawn(3 * kTarget),
                   labels = drawn(3 * kTarget);
  const auto loss_of = [&](int micro) {
    return reference_loss(spec, weights, sources[micro], targets[micro], labels[micro], source_length);
  };
  const at::Tensor expected = (loss_of(0) + loss_of(1)) / 2;
  torch::autograd::backward({expected}, {at::ones({}, at::kDouble)});

  make_gradient_room(parameters);
  const at::Tensor total = at::zeros({1}, at::kDouble);
  for (int micro = 0; micro < 2; ++micro) {
    MicroBatch step{targets[micro], labels[micro], 0.5, total};
    step.sources = sources[micro];
    Stage::Tape tape;
    model.forward(step, {}, tape);
    model.backward(step, {}, std::move(tape));
  }
  EXPECT_NEAR(total.item<double>() / (6 * kTarget), expected.item<double>(), 1e-10);
  for (const auto& named : parameters.all()) {
    const at::Tensor& wanted = weights.at(named.name).grad();
    const double scale = wanted.abs().max().item<double>();
    EXPECT_GT(scale, 0) << named.name;
    EXPECT_LE((parameters.gradient(named) - wanted).abs().max().item<double>(), 1e-9 * (scale + 1e-3))
        << named.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, EncoderDecoder,
    ::testing::Values(EncoderCase{"flash", Attention::kFlash, 17, Recompute::kNone},
                      EncoderCase{"math", Attention::kMath, 17, Recompute::kNone},
                      EncoderCase{"equal_lengths", Attention::kFlash, kTarget, Recompute::kNone},
                      EncoderCase{"short_source", Attention::kMath, 5, Recompute::kNone},
                      EncoderCase{"selective", Attention::kFlash, 17, Recompute::kSelective},
                      EncoderCase{"full", Attention::kMath, 17, Recompute::kFull},
                      EncoderCase{"t5", Attention::kMath, 17, Recompute::kNone, t5(false)},
                      EncoderCase{"t5_tied", Attention::kMath, 9, Recompute::kNone, t5(true)},
                      EncoderCase{"t5_selective", Attention::kMath, 17, Recompute::kSelective, t5(false)},
                      EncoderCase{"t5_full", Attention::kMath, 17, Recompute::kFull, t5(true)},
                      EncoderCase{"t5_v1_0", Attention::kMath, 17, Recompute::kNone, t5_v1_0()}),
    [](const auto& info) { return std::string(info.param.name); });

// The sums of all gradients of two micro-batches, one after another and crossed.
void expect_crossed_equal(const ModelSpec& spec) {
  AloneLayout layout;
  Options options;
  options.type = at::kDouble, options.seq_len = kTarget, options.encoder_seq_len = 9;
  options.attention = Attention::kMath;
  std::vector<at::Tensor> sums;
  for (const bool crossed : {false, true}) {
    Stage model(spec, options, layout.value(), {0, spec.layers, true, true});
    Parameters& p = model.parameters();
    p.layout({at::TensorOptions(at::kDouble)});
    make_gradient_room(p);
    const at::Tensor total = at::zeros({1}, at::kDouble);
    std::vector<MicroBatch> micros;
    for (std::int64_t i = 0; i < 2; ++i) {
      micros.push_back({at::arange(kTarget).add(i), at::arange(kTarget).mul(2).add(i), 0.5, total});
      micros.back().sources = at::arange(9).mul(3 + i);
    }
    Stage::Tape tapes[2];
    for (const int i : {0, 1}) {
      model.forward(micros[i], {}, tapes[i]);
      if (!crossed) model.backward(micros[i], {}, std::move(tapes[i]));
    }
    for (const int i : {1, 0})
      if (crossed) model.backward(micros[i], {}, std::move(tapes[i]));
    at::Tensor sum = at::zeros({}, at::kDouble);
    for (const auto& named : p.all()) sum = sum + p.gradient(named).abs().sum();
    sums.push_back(sum);
  }
  EXPECT_NEAR(sums[0].item<double>(), sums[1].item<double>(), 1e-9 * sums[0].item<double>());
}

// Two forwards before their backwards, in the other order: each finds its own encoder's result.
TEST(EncoderDecoder, ResultsOfTheEncoderBelongToTheirMicroBatch) {
  for (const ModelSpec& spec : {blenderbot(), t5(false)}) expect_crossed_equal(spec);
}

}  // namespace
}  // namespace sweep::model
