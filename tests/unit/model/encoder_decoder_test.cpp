// An encoder-decoder's hand-written backward against the same model in plain operators with automatic
// differentiation, in fp64: a source of another length than the target, in two micro-batches.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <map>

#include "bench_kernels/model/stage.h"

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

struct EncoderCase {
  const char* name;
  Attention attention;
  std::int64_t source;
  Recompute recompute;
};
void PrintTo(const EncoderCase& c, std::ostream* out) {
  *out << c.name;
}

class EncoderDecoder : public ::testing::TestWithParam<EncoderCase> {};

TEST_P(EncoderDecoder, EqualsAutomaticDifferentiation) {
  const ModelSpec spec = blenderbot();
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
  PlainEncoderDecoder reference(spec, weights);
  const at::Tensor expected = (reference.loss(sources[0], targets[0], labels[0], source_length) +
                               reference.loss(sources[1], targets[1], labels[1], source_length)) /
                              2;
  torch::autograd::backward({expected}, {at::ones({}, at::kDouble)});

  parameters.allocate_gradients();
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
                      EncoderCase{"full", Attention::kMath, 17, Recompute::kFull}),
    [](const auto& info) { return std::string(info.param.name); });

// Two forwards before their backwards, in the other order: each finds its own encoder's result.
TEST(EncoderDecoder, ResultsOfTheEncoderBelongToTheirMicroBatch) {
  const ModelSpec spec = blenderbot();
  AloneLayout layout;
  Options options;
  options.type = at::kDouble, options.seq_len = kTarget, options.encoder_seq_len = 9;
  std::vector<at::Tensor> sums;
  for (const bool crossed : {false, true}) {
    Stage model(spec, options, layout.value(), {0, spec.layers, true, true});
    Parameters& p = model.parameters();
    p.layout({at::TensorOptions(at::kDouble)});
    p.allocate_gradients();
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

}  // namespace
}  // namespace sweep::model
