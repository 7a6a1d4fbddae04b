// Whole steps by the fused kernels of a device, which the CPU shim runs, beside the plain composition of
// library operators: loss and every gradient.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string_view>

#include "bench_kernels/kernels/device_ops.h"
#include "bench_kernels/kernels/grouped.h"
#include "bench_kernels/optim/optimizer.h"
#include "bench_kernels/step/train_step.h"
#include "tests/support/host_launcher.h"
#include "tests/unit/step/small_trial.h"

namespace sweep::step {
namespace {

using testing::HostKernels;
using Launches = std::map<std::string, i64>;

const parallel::Mesh& mesh_of_one() {
  static const parallel::Mesh mesh = parallel::alone();
  return mesh;
}

void with_experts(Trial& t) {
  t.spec.experts = 4, t.spec.experts_per_token = 2;
}
// LayerNorm, biases, a table of positions, an MLP without a gate.
void like_gpt2(Trial& t) {
  t.spec.kv_heads = 4, t.spec.max_positions = 64;
  t.spec.rmsnorm = t.spec.swiglu = t.spec.rope = false;
  t.spec.linear_bias = t.spec.attention_bias = true;
}
void like_t5(Trial& t) {
  t.spec.encoder_layers = 2, t.encoder_seq_len = 14, t.spec.kv_heads = 4;
  t.spec.rope = false, t.attention = AttentionKind::kMath;
}
// A layer without experts, then one with them and one that is for all tokens; keys and values from a latent.
void like_deepseek(Trial& t) {
  with_experts(t);
  t.spec.kv_lora_rank = 20, t.spec.rope_head_dim = 4, t.spec.v_head_dim = 6, t.spec.kv_heads = 4;
  t.spec.shared_experts = 1, t.spec.dense_layers = 1, t.spec.dense_intermediate_size = 56;
}

// What a family has that the small Llama has not, and the kernels of its step.
struct FamilyCase {
  const char* family;
  void (*change)(Trial&);
  std::set<std::string> kernels;
};
void PrintTo(const FamilyCase& c, std::ostream* out) {
  *out << c.family;
}

std::set<std::string> joined(std::set<std::string> a, const std::set<std::string>& b) {
  a.insert(b.begin(), b.end());
  return a;
}
std::set<std::string> both(const std::string& kernel) {
  return {kernel, kernel + "_backward"};
}

const std::set<std::string> kEvery{"sum_parts", "cross_entropy", "add_losses", "adamw"};
const std::set<std::string> kNorms = joined(kEvery, both("rms_norm")),
                            kLayerNorms = joined(kEvery, both("layer_norm")),
                            kDecoder = joined(kNorms, {"rope"}), kLlama = joined(kDecoder, both("swiglu")),
                            kExperts = joined(both("router"), both("combine"));

const FamilyCase kFamilies[] = {
    {"llama", [](Trial&) {}, kLlama},
    {"gpt2", like_gpt2, joined(kLayerNorms, both("gelu"))},
    {"gemma", [](Trial& t) { t.spec.tie_embeddings = true; }, joined(kDecoder, both("geglu"))},
    {"gemma3_text",
     [](Trial& t) {
       t.spec.tie_embeddings = true, t.spec.sliding_window = 6, t.spec.sliding_window_pattern = 2;
       t.spec.rope_local_theta = 100;
     },
     joined(kDecoder, both("geglu"))},
    {"qwen3", [](Trial&) {}, kLlama},
    {"mixtral", with_experts, joined(kLlama, kExperts)},
    {"gpt_oss",
     [](Trial& t) {
       with_experts(t);
       t.spec.attention_bias = t.spec.linear_bias = true;
       t.spec.sliding_window = 6, t.spec.sliding_window_pattern = 2;
     },
     joined(joined(kDecoder, kExperts),
            joined(joined(both("clamped_swiglu"), both("sinks")), {"sum_group_bias"}))},
    {"deepseek_v2", like_deepseek, joined(kLlama, kExperts)},
    {"deepseek_v3",
     [](Trial& t) {
       like_deepseek(t);
       t.spec.q_lora_rank = 28, t.spec.expert_groups = 2, t.spec.groups_per_token = 1;
       t.routing = Routing::kLearned;
     },
     joined(kLlama, kExperts)},
    {"blenderbot",
     [](Trial& t) {
       like_gpt2(t);
       t.spec.tie_embeddings = true, t.spec.encoder_layers = 2, t.encoder_seq_len = 14;
     },
     joined(kLayerNorms, both("gelu_exact"))},
    {"t5", like_t5, joined(kNorms, both("geglu"))},
    {"t5_v1_0", [](Trial& t) { like_t5(t), t.spec.swiglu = false; }, joined(kNorms, both("relu"))},
};

Trial small(std::string_view family = "llama") {
  Trial t = small_trial();
  t.seq_len = 16, t.micro_batch_size = 2, t.global_batch_size = 2;
  t.spec.family = family;
  for (const FamilyCase& c : kFamilies)
    if (c.family == family) c.change(t);
  return t;
}

struct Result {
  double loss;
  std::vector<TrainStep::Tensor> tensors;
  Launches launches;
  std::set<std::string> kernels() const {
    std::set<std::string> out;
    for (const auto& [kernel, number] : launches) out.insert(kernel);
    return out;
  }
};

// Accumulation, so that gradients are both stored and added to.
Result steps(Trial t) {
  t.global_batch_size = 4, t.grad_accum = 2;
  TrainStep step(t, at::kCPU, mesh_of_one(), nullptr);
  Result out{step.run().loss, {}, {}};
  for (const auto& tensor : step.tensors())
    out.tensors.push_back({tensor.name,
                           {},
                           {},
                           tensor.value.clone(),
                           tensor.gradient.defined() ? tensor.gradient.clone() : at::Tensor()});
  return out;
}
Result fused_steps(const Trial& t) {
  const HostKernels host;
  Result out = steps(t);
  out.launches = host.launches();
  return out;
}
Result plain_steps(const Trial& t) {
  kernels::set_path(kernels::Path::kPlain);
  Result out = steps(t);
  kernels::set_path(kernels::Path::kFused);
  return out;
}

void expect_near(const Result& fused, const Result& plain) {
  EXPECT_NEAR(fused.loss, plain.loss, 1e-6);
  ASSERT_EQ(fused.tensors.size(), plain.tensors.size());
  for (std::size_t i = 0; i < plain.tensors.size(); ++i) {
    const at::Tensor &there = plain.tensors[i].gradient, &here = fused.tensors[i].gradient;
    ASSERT_EQ(there.defined(), here.defined()) << plain.tensors[i].name;
    if (!there.defined()) continue;
    EXPECT_LE((here - there).abs().max().item<float>(), 1e-6f) << plain.tensors[i].name;
  }
}

class DeviceKernels : public ::testing::TestWithParam<FamilyCase> {};

TEST_P(DeviceKernels, WholeStepHasTheLossAndTheGradientsOfLibraryOperators) {
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
    Trial t = small(GetParam().family);
    t.recompute = recompute;
    const Result fused = fused_steps(t);
    EXPECT_EQ(fused.kernels(), GetParam().kernels);
    expect_near(fused, plain_steps(t));
    for (const auto& tensor : fused.tensors)
      EXPECT_GT(tensor.gradient.abs().max().item<float>(), 0.0f) << tensor.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, DeviceKernels, ::testing::ValuesIn(kFamilies),
                         [](const auto& info) { return std::string(info.param.family); });

// One launch for each tensor and product: seven of a layer, forward and backward, in both micro-steps; one for each
// tensor that is looked at.
TEST(Nf4Kernel, MakesTheWeightsOfAQuantizedBaseForEachProduct) {
  Trial t = small();
  t.spec.hidden_size = 128, t.spec.head_dim = 32, t.spec.intermediate_size = 192;
  t.lora_rank = 4, t.quantize_base = QuantizeBase::kNf4;
  const Result fused = fused_steps(t);
  EXPECT_EQ(fused.launches.at("four_bit_weights"), 2 * 7 * 2 * 2 + 2 * 7);
  expect_near(fused, plain_steps(t));
}

TEST(FusedGroups, AGroupThatIsSwitchedOffLaunchesNoneOfItsKernels) {
  const std::set<std::string> norm{"rms_norm", "rms_norm_backward", "sum_parts"}, rope{"rope"},
      mlp{"swiglu", "swiglu_backward"}, loss{"cross_entropy", "add_losses"};
  const auto launches_of = [](FusedKernels choice) {
    Trial t = small();
    t.fused_kernels = choice, t.optimizer = OptimizerKind::kForeach;
    return fused_steps(t).kernels();
  };
  const auto all_of = [](const std::vector<std::set<std::string>>& groups) {
    std::set<std::string> out;
    for (const auto& group : groups) out.insert(group.begin(), group.end());
    return out;
  };
  EXPECT_EQ(launches_of(FusedKernels::kNoNorm), all_of({rope, mlp, loss}));
  EXPECT_EQ(launches_of(FusedKernels::kNoRope), all_of({norm, mlp, loss}));
  EXPECT_EQ(launches_of(FusedKernels::kNoMlp), all_of({norm, rope, loss}));
  EXPECT_EQ(launches_of(FusedKernels::kNoLoss), all_of({norm, rope, mlp}));
  EXPECT_TRUE(launches_of(FusedKernels::kNone).empty());
}

// Experts that refuse rows, and experts that the router chooses, with the auxiliary loss.
TEST(ExpertKernels, DroppedRowsAndLearnedRoutesHaveTheGradientsOfLibraryOperators) {
  for (const bool learned : {false, true}) {
    Trial t = small("mixtral");
    if (learned)
      t.routing = Routing::kLearned, t.spec.router_aux_coef = 0.02;
    else
      t.routing = Routing::kSkewed, t.hot_percent = 70, t.capacity_percent = 100;
    expect_near(fused_steps(t), plain_steps(t));
  }
}

// The product of all experts at once, whose biases one kernel adds. An expert without rows among them.
TEST(ExpertKernels, AddTheBiasesOfAllExpertsAtOnce) {
  const at::Tensor ends = at::tensor({5, 5, 12}, at::kInt), in = at::randn({12, 16}),
                   weight = at::randn({3 * 24, 16}), bias = at::randn({3 * 24});
  const kernels::Groups groups{{5, 0, 7}, ends, true}, apart{{5, 0, 7}, ends, false};
  at::Tensor together;
  {
    const HostKernels host;
    together = kernels::grouped_linear(in, weight, groups, bias);
    EXPECT_EQ(host.launches(), (Launches{{"add_group_bias", 1}}));
  }
  const at::Tensor one_by_one = kernels::grouped_linear(in, weight, apart, bias);
  EXPECT_LE((together - one_by_one).abs().max().item<float>(), 1e-5f);
}

// Tensors of all sizes, more than one launch takes; some with parameters of 16 bits, some with masters whose copies have
// them, gradients of either type. LibTorch's fused AdamW on a processor is told the same in fp32.
TEST(AdamwKernel, UpdatesAsTheLibrarysDoesWhateverTheTypes) {
  struct Types {
    at::ScalarType parameters, grads;
    bool copies;
    float bound;
  };
  for (const Types& types :
       {Types{at::kFloat, at::kFloat, false, 2e-6F}, Types{at::kDouble, at::kDouble, false, 2e-6F},
        Types{at::kFloat, at::kBFloat16, true, 2e-6F}, Types{at::kFloat, at::kFloat, true, 2e-6F},
        Types{at::kFloat, at::kBFloat16, false, 2e-6F}, Types{at::kBFloat16, at::kBFloat16, false, 3e-2F},
        Types{at::kBFloat16, at::kFloat, false, 3e-2F}}) {
    at::manual_seed(5);
    std::vector<at::Tensor> parameters, copies, plain;
    for (i64 i = 0; i < 70; ++i) {
      parameters.push_back(at::randn({i % 9 == 0 ? 40000 + i : i}, types.parameters));
      plain.push_back(parameters.back().to(at::kFloat, false, /*copy=*/true));
      if (types.copies) copies.push_back(at::zeros_like(parameters.back(), at::kBFloat16));
    }
    const optim::OptimizerOptions options{.lr = 1e-2, .weight_decay = 0.1};
    std::optional<HostKernels> host(std::in_place);
    optim::Optimizer kernel(parameters, OptimizerKind::kFused, options);
    host.reset();
    optim::Optimizer library(plain, OptimizerKind::kFused, options);
    for (int step = 0; step < 3; ++step) {
      std::vector<at::Tensor> grads, halved;
      for (const at::Tensor& p : parameters) {
        grads.push_back(at::randn({p.numel()}, types.grads));
        halved.push_back(grads.back().to(at::kFloat).mul(0.5));
      }
      host.emplace();
      ASSERT_TRUE(kernel.updates_all_types());
      kernel.step(grads, 0.5, copies);
      const Launches launches = host->launches();
      ASSERT_EQ(launches.size(), 1U);
      EXPECT_EQ(launches.begin()->second, 2);
      host.reset();
      library.step(halved);
    }
    for (std::size_t i = 1; i < plain.size(); ++i) {
      const at::Tensor off = parameters[i].to(at::kFloat) - plain[i];
      EXPECT_LE(off.abs().max().item<float>(), types.bound)
          << types.parameters << ' ' << types.grads << ' ' << i;
      EXPECT_TRUE(!types.copies || copies[i].equal(parameters[i].to(at::kBFloat16))) << i;
    }
  }
}

// Masters and weights, gradients of either type, clipped: one launch a step, which writes both.
TEST(AdamwKernel, WritesMastersAndWeightsOfAStepAtOnce) {
  for (const GradDtype grads : {GradDtype::kAuto, GradDtype::kFp32}) {
    Trial t = small("llama");
    t.precision = Precision::kBf16Master, t.grad_dtype = grads, t.grad_clip = true;
    const HostKernels host;
    TrainStep step(t, at::kCPU, mesh_of_one(), nullptr, {.lr = 0.05});
    const auto state_of = [&] {
      std::map<std::string, at::Tensor> out;
      step.states()[0]->pieces().saved([&](const parallel::Piece& piece) {
        out[std::string(piece.state) + " " + piece.tensor] = piece.values.clone();
      });
      return out;
    };
    const auto before = state_of();
    step.run();
    const auto after = state_of();
    EXPECT_EQ(host.launches().at("adamw_master"), 1);
    double squares = 0;
    for (const auto& tensor : step.tensors()) {
      const at::Tensor &master = after.at("master " + tensor.name),
                       &weight = after.at("weight " + tensor.name);
      EXPECT_EQ(weight.scalar_type(), at::kBFloat16);
      EXPECT_TRUE(weight.equal(master.to(at::kBFloat16))) << tensor.name;
      EXPECT_FALSE(weight.equal(before.at("weight " + tensor.name))) << tensor.name;
      squares += tensor.gradient.to(at::kDouble).square().sum().item<double>();
    }
    EXPECT_LE(squares, 1.02) << "the gradients that are looked at are clipped";
  }
}

// What flash attention's backward gives on a GPU: three tensors, of which rows are made.
TEST(JoinHeads, TurnsBackAndCopiesAsTheRowsInPlaceWould) {
  std::optional<HostKernels> host(std::in_place);
  at::manual_seed(3);
  const auto heads = [](i64 n) { return at::randn({2, 5, n, 16}); };
  const at::Tensor q = heads(4), k = heads(2), v = heads(2), angles = at::rand({5, 8});
  const kernels::Angles turned{angles.cos(), angles.sin()};
  const at::Tensor rows = at::empty({10, 8 * 16}),
                   expected = at::cat({q, k, v}, 2).view({10, 8 * 16}).clone();
  ASSERT_TRUE(kernels::device::join_heads(q, k, v, turned, rows));
  host.reset();
  kernels::rope(expected, 6, 16, turned.cos, turned.sin, true);
  EXPECT_LE((rows - expected).abs().max().item<float>(), 1e-6f);
  EXPECT_FALSE(kernels::device::join_heads(q.transpose(1, 2), k, v, turned, rows))
      << "strides of another kind";
}

// Rows of q, k and v in place, and gradients that are joined.
TEST(Rope, Moves16BytesAtOnceOnlyWhereItsAnglesBeginOn16) {
  static bool packed = false;
  kernels::device::set_launcher([](const kernels::device::Launch& launch) { packed = launch.packed; });
  const at::Tensor numbers = at::rand({5 * 8 + 4}), rows = at::empty({10, 8 * 16});
  const at::Tensor q = at::rand({2, 5, 4, 16}), k = at::rand({2, 5, 2, 16}), v = at::rand({2, 5, 2, 16});
  for (const i64 first : {0, 1, 4}) {
    const at::Tensor angles = numbers.narrow(0, first, 5 * 8).view({5, 8});
    kernels::device::rope(rows, 6, 16, angles, angles, false);
    EXPECT_EQ(packed, first != 1);
    packed = !packed;
    ASSERT_TRUE(kernels::device::join_heads(q, k, v, {angles, angles}, rows));
    EXPECT_EQ(packed, first != 1);
  }
  kernels::device::set_launcher(nullptr);
}

// Factors that lie in rows and in columns, and columns of wider rows.
TEST(Fp8Kernels, ProductsAreThoseOfTheLibrarysRounding) {
  at::manual_seed(4);
  const at::Tensor rows = at::randn({32, 48}), weight = at::randn({16, 80}).narrow(1, 16, 48) * 0.02,
                   dout = at::randn({32, 16}) * 1e-6;
  const auto products = [&] {
    std::vector<at::Tensor> out{at::empty({32, 16}), at::empty({32, 48}), at::ones({16, 48})};
    kernels::linear(rows, {weight, {}, false, true}, {}, out[0]);
    kernels::linear_backward_input(dout, {weight, {}, false, true}, out[1]);
    kernels::linear_backward_weight(dout, rows, false, {out[2], true}, true);
    return out;
  };
  kernels::set_path(kernels::Path::kPlain);
  const auto plain = products();
  kernels::set_path(kernels::Path::kFused);
  const HostKernels host;
  const auto device = products();
  EXPECT_EQ(host.launches(), (Launches{{"largest_magnitude", 6}, {"round_to_eight", 6}}))
      << "two launches for each factor of three products";
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(device[i].equal(plain[i])) << i;
}

}  // namespace
}  // namespace sweep::step
