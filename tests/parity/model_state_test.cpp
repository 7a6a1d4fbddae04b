// ZeRO, hybrid sharding, precisions, gradient types, clipping and offloading against one plain fp32 rank on
// the concatenated batch: loss, gradients and parameters of three steps. Prints the table of what was found.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "schema/codec.h"
#include "tests/parity/layouts.h"

namespace sweep::testing {
namespace {

constexpr int kModelSteps = 3;

// Largest distances from the fp32 reference. Computing in bf16 keeps 8 bits of every activation, in fp16 11
// (but the weights change by less than either can show); what only reduces in bf16 keeps fp32 products.
struct Tolerance {
  double loss, gradient, value;
};
constexpr Tolerance kExact{1e-5, 1e-5, 1e-5};
constexpr Tolerance kReducedInBf16{1e-5, 1e-2, 1e-3};
constexpr Tolerance kBf16{1e-3, 4e-2, 1e-2};
constexpr Tolerance kBf16Master{1e-3, 4e-2, 5e-3};
constexpr Tolerance kMixed{1e-3, 4e-2, 2e-3};
constexpr Tolerance kFp16{1e-4, 1e-2, 1e-3};
// Other shards have other blocks, and so other rounding of the moments from the second update on.
constexpr Tolerance kEightBit{1e-4, 1e-2, 3e-3};

struct Row {
  std::string name;
  i64 dp;
  std::function<void(Trial&)> change;
  Tolerance tolerance = kExact;
  i64 ep = 1;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

Trial with_tied_table(Trial t) {
  t.spec.family = "qwen2", t.spec.attention_bias = t.spec.tie_embeddings = true;
  return t;
}

Trial with_experts(Trial t) {
  t.spec.family = "mixtral", t.spec.experts = 4, t.spec.experts_per_token = 2;
  t.routing = Routing::kLearned;
  return t;
}

// So few tokens that the gradient's norm is above 1.
Trial clipping(Trial t) {
  t.seq_len = 2, t.grad_clip = true;
  return t;
}

// The reference of a row: it shares model, tokens and clipping, never layout, types or places. Many rows have the same one.
const WholeRun& reference_of(const Trial& t) {
  static std::map<std::string, WholeRun> runs;
  Trial one = tiny_trial();
  one.spec = t.spec, one.routing = t.routing, one.seq_len = t.seq_len, one.grad_clip = t.grad_clip;
  one.optimizer = t.optimizer == OptimizerKind::kPagedAdamw ? OptimizerKind::kFused : t.optimizer;
  one.micro_batch_size = 8, one.grad_accum = 1;
  const auto [run, is_new] = runs.try_emplace(dump(to_json(one)));
  if (is_new) run->second = run_layout(one, kModelSteps);
  return run->second;
}

double gradient_norm(const WholeRun& run) {
  double squares = 0;
  for (const auto& [name, tensor] : run.tensors) squares += tensor.gradient.square().sum().item<double>();
  return std::sqrt(squares);
}

class ModelStates : public ::testing::TestWithParam<Row> {
 protected:
  static void SetUpTestSuite() {
    std::printf("%-38s %9s %9s %9s\n", "strategy", "loss", "gradient", "parameter");
  }
};

TEST_P(ModelStates, EqualThePlainRank) {
  const Row& row = GetParam();
  Trial trial = tiny_trial();
  row.change(trial);
  trial = with_degrees(trial, row.dp, 1, 1, 1, row.ep);
  const WholeRun ranks = run_layout(trial, kModelSteps);
  EXPECT_EQ(ranks.faults, std::vector<std::string>{});
  const Distance d = distance(ranks, reference_of(trial));
  std::printf("%-38s %9.1e %9.1e %9.1e\n", row.name.c_str(), d.loss, d.gradient, d.value);
  EXPECT_LE(d.loss, row.tolerance.loss);
  EXPECT_LE(d.gradient, row.tolerance.gradient) << d.worst;
  EXPECT_LE(d.value, row.tolerance.value);
  if (trial.grad_clip) {
    EXPECT_NEAR(gradient_norm(ranks), 1, 1e-3);
  }
}

std::string stage(i64 zero) {
  return "zero" + std::to_string(zero);
}

std::vector<Row> sharded() {
  std::vector<Row> rows;
  for (const i64 zero : {1, 2, 3}) {
    for (const i64 dp : {2, 4}) {
      rows.push_back(
          {stage(zero) + "_dp" + std::to_string(dp) + "_accumulated", dp, [=](Trial& t) { t.zero = zero; }});
      rows.push_back({stage(zero) + "_dp" + std::to_string(dp) + "_one_micro_step", dp,
                      [=](Trial& t) { t.zero = zero, t.micro_batch_size = 8 / dp; }});
    }
    rows.push_back({stage(zero) + "_hybrid_2x2", 4, [=](Trial& t) { t.zero = zero, t.dp_shard = 2; }});
    rows.push_back({stage(zero) + "_tied", 2, [=](Trial& t) { t = with_tied_table(t), t.zero = zero; }});
    rows.push_back({stage(zero) + "_bucket_each", 2, [=](Trial& t) { t.zero = zero, t.grad_bucket_mb = 0; }});
    rows.push_back(
        {stage(zero) + "_gloo", 2, [=](Trial& t) { t.zero = zero, t.backend = CommBackend::kGloo; }});
    rows.push_back({stage(zero) + "_foreach", 2,
                    [=](Trial& t) { t.zero = zero, t.optimizer = OptimizerKind::kForeach; }});
    rows.push_back(
        {stage(zero) + "_plain", 2, [=](Trial& t) { t.zero = zero, t.optimizer = OptimizerKind::kPlain; }});
    for (const OptimizerKind sgd : {OptimizerKind::kSgd, OptimizerKind::kSgdMomentum})
      rows.push_back({stage(zero) + "_" + std::string(to_string(sgd)), 2,
                      [=](Trial& t) { t.zero = zero, t.optimizer = sgd; }});
    for (const Offload offload : {Offload::kNone, Offload::kOptimizer, Offload::kDisk})
      rows.push_back(
          {stage(zero) + "_adamw_8bit_offload_" + std::string(to_string(offload)), 2,
           [=](Trial& t) { t.zero = zero, t.optimizer = OptimizerKind::kAdamw8bit, t.offload = offload; },
           kEightBit});
    rows.push_back({stage(zero) + "_paged_adamw", 2,
                    [=](Trial& t) { t.zero = zero, t.optimizer = OptimizerKind::kPagedAdamw; }});
  }
  for (const Offload offload : {Offload::kNone, Offload::kOptimizer, Offload::kParameters})
    rows.push_back({"adafactor_offload_" + std::string(to_string(offload)), 2,
                    [=](Trial& t) { t.optimizer = OptimizerKind::kAdafactor, t.offload = offload; }});
  rows.push_back(
      {"zero3_no_prefetch", 2, [](Trial& t) { t.zero = 3, t.prefetch_forward = t.prefetch_backward = 0; }});
  rows.push_back(
      {"zero3_prefetch_3", 4, [](Trial& t) { t.zero = 3, t.prefetch_forward = t.prefetch_backward = 3; }});
  rows.push_back({"zero3_kept", 2, [](Trial& t) { t.zero = 3, t.reshard_after_forward = false; }});
  rows.push_back({"zero3_kept_tied", 2,
                  [](Trial& t) { t = with_tied_table(t), t.zero = 3, t.reshard_after_forward = false; }});
  return rows;
}

std::vector<Row> typed() {
  struct Types {
    Precision precision;
    GradDtype grad_dtype;
    Tolerance tolerance;
  };
  std::vector<Row> rows;
  for (const i64 zero : {0, 1, 2, 3}) {
    for (const Types& types :
         {Types{Precision::kFp32, GradDtype::kBf16, kReducedInBf16},
          Types{Precision::kBf16, GradDtype::kAuto, kBf16}, Types{Precision::kBf16, GradDtype::kFp32, kBf16},
          Types{Precision::kBf16Master, GradDtype::kAuto, kBf16Master},
          Types{Precision::kBf16Master, GradDtype::kFp32, kBf16Master},
          Types{Precision::kBf16Mixed, GradDtype::kAuto, kMixed},
          Types{Precision::kBf16Mixed, GradDtype::kBf16, kMixed},
          Types{Precision::kBf16Amp, GradDtype::kAuto, kMixed},
          Types{Precision::kFp16Amp, GradDtype::kAuto, kFp16},
          Types{Precision::kFp16, GradDtype::kAuto, kFp16},
          Types{Precision::kFp16, GradDtype::kFp32, kFp16}}) {
      rows.push_back(
          {stage(zero) + "_" + std::string(to_string(types.precision)) + "_" +
               std::string(to_string(types.grad_dtype)),
           2,
           [=](Trial& t) { t.zero = zero, t.precision = types.precision, t.grad_dtype = types.grad_dtype; },
           types.tolerance});
    }
  }
  return rows;
}

// GELU, layer norms and scores in memory, as minGPT has them.
Trial like_gpt2(Trial t) {
  t.spec.family = "gpt2", t.spec.kv_heads = t.spec.heads, t.spec.max_positions = 64;
  t.spec.rmsnorm = t.spec.swiglu = t.spec.rope = false;
  t.spec.attention_bias = t.spec.linear_bias = t.spec.tie_embeddings = true;
  t.attention = AttentionKind::kMath;
  return t;
}

std::vector<Row> autocast() {
  std::vector<Row> rows;
  // Biases, and Gemma's norms, start at zero: they are three updates, as far apart as these. bf16_mixed stands beside.
  for (const Precision precision : {Precision::kBf16Mixed, Precision::kBf16Amp, Precision::kFp16Amp}) {
    const bool fp16 = precision == Precision::kFp16Amp;
    const Tolerance tolerance{fp16 ? kFp16.loss : kMixed.loss, fp16 ? kFp16.gradient : kMixed.gradient,
                              fp16 ? 5e-3 : 1e-1};
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull})
      rows.push_back({"gpt2_" + std::string(to_string(precision)) + "_" + std::string(to_string(recompute)),
                      2,
                      [=](Trial& t) {
                        t = like_gpt2(t), t.zero = 3, t.precision = precision, t.recompute = recompute;
                        t.activation_offload = recompute == Recompute::kSelective;
                      },
                      tolerance});
    rows.push_back({"geglu_" + std::string(to_string(precision)), 2,
                    [=](Trial& t) { t.spec.family = "gemma", t.zero = 3, t.precision = precision; },
                    tolerance});
  }
  return rows;
}

std::vector<Row> clipped() {
  std::vector<Row> rows;
  for (const i64 zero : {0, 1, 2, 3})
    rows.push_back({stage(zero) + "_clipped", 4, [=](Trial& t) { t = clipping(t), t.zero = zero; }});
  rows.push_back({"zero3_hybrid_clipped", 4, [](Trial& t) { t = clipping(t), t.zero = 3, t.dp_shard = 2; }});
  rows.push_back({"zero2_fp16_clipped", 2,
                  [](Trial& t) { t = clipping(t), t.zero = 2, t.precision = Precision::kFp16; }, kFp16});
  return rows;
}

std::vector<Row> offloaded() {
  std::vector<Row> rows;
  for (const i64 zero : {0, 1, 2, 3}) {
    for (const Offload offload :
         {Offload::kOptimizer, Offload::kParameters, Offload::kDisk, Offload::kDiskParameters}) {
      const bool outside = offload == Offload::kParameters || offload == Offload::kDiskParameters;
      if (outside && (zero == 1 || zero == 2)) continue;
      rows.push_back({stage(zero) + "_offload_" + std::string(to_string(offload)), 2,
                      [=](Trial& t) { t.zero = zero, t.offload = offload; }});
      rows.push_back(
          {stage(zero) + "_offload_" + std::string(to_string(offload)) + "_bf16_master", 2,
           [=](Trial& t) { t.zero = zero, t.offload = offload, t.precision = Precision::kBf16Master; },
           kBf16Master});
    }
  }
  for (const i64 ahead : {0, 3})
    rows.push_back(
        {"zero3_offload_disk_parameters_tied_recomputed_ahead_" + std::to_string(ahead), 2, [=](Trial& t) {
           t = with_tied_table(t), t.zero = 3, t.offload = Offload::kDiskParameters;
           t.recompute = Recompute::kFull, t.recompute_every = 2;
           t.prefetch_forward = t.prefetch_backward = ahead;
         }});
  rows.push_back({"zero3_offload_disk_clipped", 2,
                  [](Trial& t) { t = clipping(t), t.zero = 3, t.offload = Offload::kDisk; }});
  return rows;
}

// Expert buckets are divided over the ranks of a shard set with the same experts, or as dense ones without ep.
std::vector<Row> with_expert_layers() {
  std::vector<Row> rows;
  for (const i64 zero : {0, 1, 2, 3}) {
    for (const i64 ep : {1, 2}) {
      const std::string name = stage(zero) + "_experts_ep" + std::to_string(ep);
      rows.push_back({name, 4, [=](Trial& t) { t = with_experts(t), t.zero = zero; }, kExact, ep});
      rows.push_back({name + "_clipped", 4,
                      [=](Trial& t) { t = with_experts(t), t = clipping(t), t.zero = zero; }, kExact, ep});
    }
    if (zero == 0) continue;
    rows.push_back({stage(zero) + "_experts_hybrid_clipped", 4,
                    [=](Trial& t) { t = with_experts(t), t = clipping(t), t.zero = zero, t.dp_shard = 2; }});
    using Sizes = std::array<i64, 3>;
    for (const auto& [dp, shard, ep] :
         {Sizes{4, 2, 2}, Sizes{4, 4, 2}, Sizes{8, 4, 2}, Sizes{8, 4, 4}, Sizes{8, 2, 2}}) {
      const std::string name = stage(zero) + "_experts_dp" + std::to_string(dp) + "_sets_of_" +
                               std::to_string(shard) + "_ep" + std::to_string(ep);
      const auto change = [zero = zero, shard = shard](Trial& t) {
        t = with_experts(t), t.zero = zero, t.dp_shard = shard;
      };
      if (dp < 8 || long_run()) rows.push_back({name, dp, change, kExact, ep});
      rows.push_back({name + "_clipped", dp, [=](Trial& t) { change(t), t = clipping(t); }, kExact, ep});
    }
  }
  return rows;
}

const auto kRowName = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Sharded, ModelStates, ::testing::ValuesIn(sharded()), kRowName);
INSTANTIATE_TEST_SUITE_P(Typed, ModelStates, ::testing::ValuesIn(typed()), kRowName);
INSTANTIATE_TEST_SUITE_P(Autocast, ModelStates, ::testing::ValuesIn(autocast()), kRowName);
INSTANTIATE_TEST_SUITE_P(Clipped, ModelStates, ::testing::ValuesIn(clipped()), kRowName);
INSTANTIATE_TEST_SUITE_P(Experts, ModelStates, ::testing::ValuesIn(with_expert_layers()), kRowName);
INSTANTIATE_TEST_SUITE_P(Offloaded, ModelStates, ::testing::ValuesIn(offloaded()), kRowName);

}  // namespace
}  // namespace sweep::testing
