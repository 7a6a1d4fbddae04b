// A quantized base: the step against a plain LoRA step of the same layout whose base was quantized and made anew
// beforehand; and what a rank keeps.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "bench_kernels/kernels/nf4.h"
#include "bench_kernels/shape/quantized_base.h"
#include "bench_kernels/step/train_step.h"
#include "tests/parity/layouts.h"

namespace sweep::testing {
namespace {

constexpr int kQuantizedSteps = 2;

// Whole blocks on each of two tensor-parallel ranks.
Trial quantized_trial() {
  Trial t = tiny_trial();
  t.spec.hidden_size = 128, t.spec.head_dim = 32, t.spec.intermediate_size = 192,
  t.spec.intermediate_size = 128;
  t.spec.kv_heads = 4;
  t.lora_rank = 4, t.quantize_base = QuantizeBase::kNf4;
  return t;
}

Trial gpt2_like() {
  Trial t = quantized_trial();
  t.spec.family = "gpt2", t.spec.max_positions = 64, t.spec.tie_embeddings = true;
  t.spec.attention_bias = t.spec.linear_bias = true;
  t.spec.rmsnorm = t.spec.swiglu = t.spec.rope = false;
  t.lora_targets = LoraTargets::kAttention;
  return t;
}

// Through 4 bits and back, of a whole tensor.
void quantize_and_back(const at::Tensor& weights) {
  const i64 n = weights.numel();
  const shape::Nf4Extent e{n, n};
  const auto bytes = [](i64 size) { return at::empty({size}, at::kByte); };
  const auto fp32 = [](i64 size) { return at::empty({size}, at::kFloat); };
  const kernels::Nf4 q{
      bytes(n / 2), bytes(e.blocks()), fp32(e.scales()), fp32(1), {{1, e.blocks(), 0, 0, 0, 0}}};
  const at::Tensor maps = kernels::nf4_maps(at::kFloat), largest = fp32(e.blocks());
  kernels::nf4_quantize(weights.view({-1}), maps, q.codes, largest);
  kernels::nf4_quantize_scales(largest, maps, q.scale_codes, q.scales, q.offset);
  kernels::nf4_dequantize(q, maps, weights.view({-1}));
}

bool is_base_of_a_layer(const std::string& name, const at::Tensor& share) {
  const bool router = name.ends_with(".gate.weight") || name.ends_with(".router.weight");
  return share.dim() == 2 && name.find("lora_") == std::string::npos && !router &&
         (name.find("layers.") != std::string::npos || name.find("h.") == 0 ||
          name.find(".h.") != std::string::npos);
}

// The same values, those of linear layers quantized beforehand: a share is cut of the whole.
void draw_quantized(const model::Part& part, const at::Tensor& share) {
  draw_values(part, share);
  if (!is_base_of_a_layer(part.name, share)) return;
  const model::Slice& slice = part.slice;
  auto shape = share.sizes().vec();
  if (slice.whole != 0) shape[static_cast<std::size_t>(slice.dimension)] = slice.whole;
  const at::Tensor whole = at::empty(shape, share.options());
  draw_values({part.name, shape[0], {}}, whole);
  quantize_and_back(whole);
  const auto ranges = slice.whole != 0 ? slice.ranges : decltype(slice.ranges){{0, shape[0]}};
  i64 at = 0;
  for (const auto& [begin, size] : ranges) {
    share.narrow(slice.dimension, at, size).copy_(whole.narrow(slice.dimension, begin, size));
    at += size;
  }
}

void expect_equal(const char* what, Trial t) {
  ASSERT_EQ(step::unsupported(t, at::kCPU), std::nullopt) << what;
  const WholeRun ranks = run_layout(t, kQuantizedSteps);
  EXPECT_EQ(ranks.faults, std::vector<std::string>{}) << what;
  t.quantize_base = QuantizeBase::kNone;
  const Distance d = distance(ranks, run_layout(t, kQuantizedSteps, draw_quantized));
  std::printf("| %-28s | %.1e | %.1e | %.1e |\n", what, d.loss, d.gradient, d.value);
  EXPECT_LT(d.loss, 1e-6) << what;
  EXPECT_LT(d.gradient, 1e-6) << what << ": " << d.worst;
  EXPECT_LT(d.value, 1e-6) << what;
}

TEST(QuantizedBase, TrainsAsABaseThatWasQuantizedBeforehand) {
  const auto check = [](const char* what, i64 dp, i64 tp, i64 pp, const auto& change) {
    Trial t = with_degrees(quantized_trial(), dp, tp, pp, 1);
    change(t);
    expect_equal(what, t);
  };
  const auto nothing = [](Trial&) {};
  check("alone", 1, 1, 1, nothing);
  check("tp 2", 1, 2, 1, nothing);
  check("tp 2 + sp + overlap", 1, 2, 1, [](Trial& t) { t.sp = t.tp_overlap = true; });
  check("pp 2", 1, 1, 2, nothing);
  check("dp 2", 2, 1, 1, nothing);
  check("dp 2, zero 2", 2, 1, 1, [](Trial& t) { t.zero = 2; });
  check("dp 2, zero 3", 2, 1, 1, [](Trial& t) { t.zero = 3; });
  check("dp 2, tp 2, zero 3", 2, 2, 1, [](Trial& t) { t.zero = 3; });
  check("recompute full", 1, 1, 1, [](Trial& t) { t.recompute = Recompute::kFull; });
  check("zero 3, recompute full", 2, 1, 1, [](Trial& t) { t.zero = 3, t.recompute = Recompute::kFull; });
  check("recompute selective", 1, 1, 1, [](Trial& t) { t.recompute = Recompute::kSelective; });
}

Trial with_experts() {
  Trial t = quantized_trial();
  t.spec.family = "mixtral", t.spec.experts = 4, t.spec.experts_per_token = 2;
  t.lora_targets = LoraTargets::kAttention, t.routing = Routing::kLearned;
  return t;
}

TEST(QuantizedBase, OfExpertsToo) {
  const auto check = [](const char* what, i64 dp, i64 tp, i64 pp, i64 ep, const auto& change) {
    Trial t = with_degrees(with_experts(), dp, tp, pp, 1, ep);
    change(t);
    expect_equal(what, t);
  };
  check("experts alone", 1, 1, 1, 1, [](Trial&) {});
  check("experts tp 2 + sp", 1, 2, 1, 1, [](Trial& t) { t.sp = true; });
  check("experts pp 2, recompute full", 1, 1, 2, 1, [](Trial& t) { t.recompute = Recompute::kFull; });
  check("experts dp 2, tp 2, ep 2, zero 3", 2, 2, 1, 2, [](Trial& t) { t.zero = 3; });
  check("gpt-oss, dp 2, ep 2", 2, 1, 1, 2,
        [](Trial& t) { t.spec.family = "gpt_oss", t.spec.attention_bias = t.spec.linear_bias = true; });
}

// One tensor of query, key and value with inputs in rows: a rank's columns are three ranges.
TEST(QuantizedBase, OfJoinedTransposedTensorsToo) {
  expect_equal("gpt2 alone", with_degrees(gpt2_like(), 1, 1, 1, 1));
  expect_equal("gpt2 tp 2", with_degrees(gpt2_like(), 1, 2, 1, 1));
  Trial sharded = with_degrees(gpt2_like(), 2, 2, 1, 1);
  sharded.zero = 3;
  expect_equal("gpt2 dp 2, tp 2, zero 3", sharded);
}

TEST(QuantizedBase, IsNotThePlainBase) {
  Trial plain = with_degrees(quantized_trial(), 1, 1, 1, 1);
  const WholeRun quantized = run_layout(plain, 1);
  plain.quantize_base = QuantizeBase::kNone;
  const Distance d = distance(run_layout(plain, 1), quantized);
  EXPECT_GT(d.loss, 1e-5);
  EXPECT_GT(d.gradient, 1e-2);
  EXPECT_GT(d.value, 1e-2);
}

// 4 bits and the scales of each tensor; the others stay in fp32.
TEST(QuantizedBase, KeepsTheBytesOfTheCodes) {
  const Trial t = with_degrees(quantized_trial(), 1, 1, 1, 1);
  const parallel::Mesh mesh = parallel::alone();
  step::TrainStep step(t, at::kMeta, mesh, nullptr);
  const auto frozen = step.state().count(true), trained = step.state().count(false);
  const i64 square = shape::Nf4Extent{128 * 128, 128 * 128}.bytes();
  EXPECT_EQ(square, 128 * 64 + 256 + 4 + 60);
  EXPECT_EQ(frozen.quantized, 4 * 7 * square);
  EXPECT_EQ(frozen.all, 2 * 64 * 128 + (2 * 4 + 1) * 128) << "tables, norms";
  EXPECT_EQ(step.state().bytes().weights, frozen.quantized + 4 * (frozen.all + trained.all));
}

// The router is read by every token and stays whole.
TEST(QuantizedBase, KeepsTheBytesOfTheCodesOfExperts) {
  const Trial t = with_degrees(with_experts(), 1, 1, 1, 1);
  const parallel::Mesh mesh = parallel::alone();
  step::TrainStep step(t, at::kMeta, mesh, nullptr);
  const auto frozen = step.state().count(true), trained = step.state().count(false);
  const i64 square = shape::Nf4Extent{128 * 128, 128 * 128}.bytes();
  EXPECT_EQ(frozen.quantized, 4 * 4 * square);
  EXPECT_EQ(frozen.quantized_experts, 4 * 4 * 3 * square);
  EXPECT_EQ(frozen.all, 2 * 64 * 128 + (2 * 4 + 1) * 128 + 4 * 4 * 128) << "tables, norms, routers";
  EXPECT_EQ(step.state().bytes().weights,
            frozen.quantized + frozen.quantized_experts + 4 * (frozen.all + trained.all));
}

}  // namespace
}  // namespace sweep::testing
