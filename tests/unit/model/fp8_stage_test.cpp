// A whole model with the products of its blocks on fp8 units (as the library computes them on CPU), beside
// the same model without.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "bench_kernels/model/stage.h"
#include "tests/unit/model/gradient_room.h"

namespace sweep::model {
namespace {

struct Outcome {
  double loss = 0;
  std::map<std::string, at::Tensor> gradients;
};

Outcome one_step(bool fp8, const char* family) {
  constexpr std::int64_t kSeq = 16;
  ModelSpec s;
  s.family = family, s.layers = 1, s.hidden_size = 32, s.heads = s.kv_heads = 2, s.head_dim = 16;
  s.intermediate_size = 48, s.vocab_size = 53, s.tie_embeddings = false;
  if (s.family == "gpt2") s.rmsnorm = s.swiglu = s.rope = false, s.linear_bias = s.attention_bias = true;
  s.max_positions = kSeq;
  Options options;
  options.seq_len = kSeq, options.seed = 5, options.fp8 = fp8;
  AloneLayout layout;
  Stage model(s, options, layout.value(), {0, s.layers, true, true});
  Parameters& parameters = model.parameters();
  parameters.layout({at::TensorOptions(at::kFloat)});
  make_gradient_room(parameters);
  const at::Tensor tokens = at::arange(kSeq, at::kLong).mul(7).remainder(53),
                   total = at::zeros({1}, at::kDouble);
  Stage::Tape tape;
  const MicroBatch step{tokens, tokens.add(1).remainder(53), 1, total};
  model.forward(step, {}, tape);
  model.backward(step, {}, std::move(tape));
  Outcome out{total.item<double>() / kSeq, {}};
  for (const auto& named : parameters.all()) out.gradients[named.name] = parameters.gradient(named).clone();
  return out;
}

TEST(Fp8Stage, LossAndGradientsDifferByTheRoundingAndNoMore) {
  for (const char* family : {"llama", "gpt2"}) {
    const Outcome with = one_step(true, family), without = one_step(false, family);
    EXPECT_NE(with.loss, without.loss) << family;
    EXPECT_NEAR(with.loss, without.loss, 0.01 * without.loss) << family;
    for (const auto& [name, gradient] : without.gradients) {
      if (gradient.norm().item<double>() < 1e-4) continue;  // biases of keys: softmax does not see them
      const double distance = ((with.gradients.at(name) - gradient).norm() / gradient.norm()).item<double>();
      EXPECT_GT(distance, 0) << family << " " << name;
      EXPECT_LT(distance, 0.25) << family << " " << name;
    }
  }
}

}  // namespace
}  // namespace sweep::model
