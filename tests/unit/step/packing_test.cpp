// Packed documents against the same documents as sequences of their own: loss and every gradient.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "bench_kernels/parallel/mesh.h"
#include "bench_kernels/shape/documents.h"
#include "bench_kernels/step/train_step.h"

namespace sweep::step::packing {
namespace {

constexpr i64 kVocabulary = 97;

Trial llama() {
  Trial t;
  t.spec.layers = 2, t.spec.hidden_size = 64, t.spec.heads = 4, t.spec.kv_heads = 2, t.spec.head_dim = 16;
  t.spec.intermediate_size = 96, t.spec.vocab_size = kVocabulary;
  t.seq_len = 48, t.micro_batch_size = 2, t.grad_accum = 2, t.global_batch_size = 4;
  t.lengths = "uniform 1 25", t.packing = true;
  return t;
}
Trial gpt2() {
  Trial t = llama();
  t.spec.family = "gpt2", t.spec.kv_heads = 4, t.spec.max_positions = 64, t.spec.tie_embeddings = true;
  t.spec.attention_bias = t.spec.linear_bias = true;
  t.spec.rmsnorm = t.spec.swiglu = t.spec.rope = false;
  return t;
}
Trial windowed() {
  Trial t = llama();
  t.spec.family = "mistral", t.spec.sliding_window = 6;
  return t;
}

Trial gemma3() {
  Trial t = windowed();
  t.spec.family = "gemma3_text", t.spec.sliding_window_pattern = 2, t.spec.rope_local_theta = 100;
  return t;
}

Trial gpt_oss() {  // its experts too, where tokens go where their logits say
  Trial t = windowed();
  t.spec.family = "gpt_oss", t.spec.sliding_window_pattern = 2,
  t.spec.attention_bias = t.spec.linear_bias = true;
  t.spec.experts = 4, t.spec.experts_per_token = 2, t.routing = Routing::kLearned;
  return t;
}

// Loss and gradients of a step, in fp64.
struct Result {
  double loss = 0;
  i64 tokens = 0;
  std::map<std::string, at::Tensor> gradients;
};

Result run(const Trial& t, const TokenSource& tokens) {
  const parallel::Mesh mesh = parallel::alone();
  Given given;
  given.tokens = tokens;
  TrainStep step(t, at::kCPU, mesh, nullptr, {}, given);
  const StepTimes times = step.run();
  Result out{times.loss, times.tokens, {}};
  for (const auto& tensor : step.tensors())
    out.gradients[tensor.name] = tensor.gradient.to(at::kDouble).clone();
  return out;
}

// Every document alone, by a step that knows neither lengths nor packing; each token counts as much.
Result separate(const Trial& t, const TokenSource& tokens) {
  Result out;
  shape::DocumentRows rows(t);
  for (i64 row = 0; row < t.global_batch_size; ++row) {
    i64 begin = 0;
    for (const i64 length : rows.row(row)) {
      Trial one = t;
      one.lengths = "", one.packing = false, one.recompute = Recompute::kNone;
      one.seq_len = length, one.micro_batch_size = one.grad_accum = one.global_batch_size = 1;
      const i64 sequence = document_sequence(t, row, begin);
      const Result alone = run(one, [&](i64, i64 position) { return tokens(sequence, position); });
      const double weight = static_cast<double>(length);
      out.loss += weight * alone.loss, out.tokens += length, begin += length;
      for (const auto& [name, gradient] : alone.gradients) {
        at::Tensor& sum = out.gradients[name];
        sum = sum.defined() ? sum.add(gradient, weight) : gradient.mul(weight);
      }
    }
  }
  out.loss /= static_cast<double>(out.tokens);
  for (auto& [name, gradient] : out.gradients) gradient.div_(static_cast<double>(out.tokens));
  return out;
}

void expect_equal(const Result& a, const Result& reference, const std::string& what) {
  EXPECT_EQ(a.tokens, reference.tokens) << what;
  EXPECT_NEAR(a.loss / reference.loss, 1, 1e-6) << what;
  ASSERT_EQ(a.gradients.size(), reference.gradients.size());
  // The tokens' parts of a bias's gradient may cancel; they are as large as those of its weight.
  const auto size = [&](std::string name) {
    const double own = reference.gradients.at(name).norm().item<double>();
    if (!name.ends_with(".bias")) return own;
    const auto weight = reference.gradients.find(name.replace(name.size() - 4, 4, "weight"));
    return weight == reference.gradients.end() ? own : std::max(own, weight->second.norm().item<double>());
  };
  for (const auto& [name, gradient] : reference.gradients) {
    const double off = (a.gradients.at(name) - gradient).norm().item<double>();
    EXPECT_LT(off, 1e-6 * size(name)) << what << ": " << name;
  }
}

TEST(Packing, EqualsSeparateSequences) {
  const TokenSource tokens = synthetic_tokens(3, kVocabulary);
  for (const Trial& model : {llama(), gpt2(), windowed(), gemma3(), gpt_oss()}) {
    for (const AttentionKind attention : {AttentionKind::kFlash, AttentionKind::kMath}) {
      if (model.spec.family == "gpt_oss" && attention == AttentionKind::kMath) continue;
      Trial t = model;
      t.attention = attention;
      const Result reference = separate(t, tokens);
      for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
        t.recompute = recompute;
        expect_equal(run(t, tokens), reference,
                     t.spec.family + " " + std::string(to_string(attention)) + " " +
                         std::string(to_string(recompute)));
      }
    }
  }
}

TEST(Padding, EqualsSeparateSequences) {
  const TokenSource tokens = synthetic_tokens(3, kVocabulary);
  for (Trial t : {llama(), gpt2()}) {
    t.packing = false;
    expect_equal(run(t, tokens), separate(t, tokens), t.spec.family);
  }
}

// The content of the padding changes nothing.
TEST(Padding, HasNoLossAndNoGradient) {
  Trial t = llama();
  t.packing = false, t.lengths = "fixed 20";
  const Batch batch = make_batch(t, at::kCPU, {}, synthetic_tokens(1, kVocabulary));
  EXPECT_EQ(batch.labelled, 4 * 20);
  EXPECT_DOUBLE_EQ(batch.weight, 48.0 / 20);
  const at::Tensor labels = batch.labels[0].view({2, 48});
  EXPECT_TRUE(labels.narrow(1, 20, 28).lt(0).all().item<bool>());
  EXPECT_TRUE(labels.narrow(1, 0, 20).ge(0).all().item<bool>());
  EXPECT_TRUE(batch.documents.empty());
}

TEST(Packing, PositionsStartAnewAndNoTargetIsOfTheNextDocument) {
  Trial t = llama();
  t.lengths = "fixed 20";  // two documents a row, and padding of 8
  const TokenSource tokens = synthetic_tokens(1, kVocabulary);
  const Batch batch = make_batch(t, at::kCPU, {}, tokens);
  ASSERT_EQ(batch.documents.size(), 2u);
  const kernels::Documents& documents = batch.documents[1];
  EXPECT_EQ(documents.ends, (std::vector<std::int64_t>{0, 20, 40, 48, 68, 88, 96}));
  EXPECT_EQ(documents.longest, 20);
  EXPECT_EQ(documents.places[39].item<i64>(), 19);
  EXPECT_EQ(documents.places[40].item<i64>(), 0);
  EXPECT_EQ(documents.places[48].item<i64>(), 0);
  EXPECT_EQ(documents.device_ends[3].item<std::int32_t>(), 48);
  EXPECT_EQ(batch.tokens[1][20].item<i64>(), tokens(document_sequence(t, 2, 20), 0));
  EXPECT_EQ(batch.labels[1][19].item<i64>(), tokens(document_sequence(t, 2, 0), 20));
}

}  // namespace
}  // namespace sweep::step::packing
