// Whole steps by the fused kernels of a device, which the CPU shim runs, beside the plain composition of
// library operators: loss and every gradient.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "tests/device/host_kernels.h"
// The kernels' own names are taken from here on.
#include "bench_kernels/kernels/device_ops.h"
#include "bench_kernels/kernels/grouped.h"
#include "bench_kernels/optim/optimizer.h"
#include "bench_kernels/step/train_step.h"
#include "tests/unit/step/small_trial.h"
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

namespace sweep::step {
namespace {

using kernels::Path;

const parallel::Mesh& mesh_of_one() {
  static const parallel::Mesh mesh = parallel::alone();
  return mesh;
}

std::vector<std::string> launched;

void launch_on_cpu(const kernels::device::Launch& launch) {
  launched.emplace_back(launch.kernel);
  const host_kernels::Shape shape{launch.blocks, launch.threads, launch.shared};
  EXPECT_GT(launch.bytes, 0);
  if (launch.type == at::kDouble)
    return host_kernels::run<double>(launch.kernel, launch.packed, shape, launch.args);
  if (launch.type == at::kBFloat16)
    return host_kernels::run<sweep::device::Bf16>(launch.kernel, launch.packed, shape, launch.args);
  ASSERT_EQ(launch.type, at::kFloat);
  host_kernels::run<float>(launch.kernel, launch.packed, shape, launch.args);
}

Trial small(std::string_view family) {
  Trial t = small_trial();
  t.seq_len = 16, t.micro_batch_size = 2, t.global_batch_size = 2;
  if (family == "gpt2") {
    t.spec.family = "gpt2", t.spec.kv_heads = 4, t.spec.max_positions = 64;
    t.spec.rmsnorm = t.spec.swiglu = t.spec.rope = false;
    t.spec.linear_bias = t.spec.attention_bias = true;
  }
  if (family != "llama" && family != "gpt2")
    t.spec.family = family, t.spec.experts = 4, t.spec.experts_per_token = 2;
  if (family == "gpt_oss")
    t.spec.attention_bias = t.spec.linear_bias = true, t.spec.sliding_window = 6,
    t.spec.sliding_window_pattern = 2;
  return t;
}

struct Result {
  double loss;
  std::vector<TrainStep::Tensor> tensors;
};

// Accumulation, so that gradients are both stored and added to.
Result steps(Trial t, Path path) {
  t.global_batch_size = 4, t.grad_accum = 2;
  kernels::set_path(path);
  kernels::device::set_launcher(&launch_on_cpu);
  TrainStep step(t, at::kCPU, mesh_of_one(), nullptr);
  Result out{step.run().loss, {}};
  for (const auto& tensor : step.tensors())
    out.tensors.push_back({tensor.name,
                           {},
                           {},
                           tensor.value.clone(),
                           tensor.gradient.defined() ? tensor.gradient.clone() : at::Tensor()});
  kernels::device::set_launcher(nullptr);
  kernels::set_path(Path::kFused);
  return out;
}

std::set<std::string> kernels_of(std::string_view family) {
  if (family == "gpt2")
    return {"gelu",      "gelu_backward", "layer_norm", "layer_norm_backward",
            "sum_parts", "cross_entropy", "add_losses", "adamw"};
  std::set<std::string> names{"rms_norm",        "rms_norm_backward", "rope",       "sum_parts", "swiglu",
                              "swiglu_backward", "cross_entropy",     "add_losses", "adamw"};
  if (family != "llama") names.insert({"router", "router_backward", "combine", "combine_backward"});
  if (family == "gpt_oss") {
    names.erase("swiglu"), names.erase("swiglu_backward");
    names.insert({"clamped_swiglu", "clamped_swiglu_backward", "sinks", "sinks_backward", "sum_group_bias"});
  }
  return names;
}

class DeviceKernels : public ::testing::TestWithParam<const char*> {};

TEST_P(DeviceKernels, WholeStepHasTheLossAndTheGradientsOfLibraryOperators) {
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
    Trial t = small(GetParam());
    t.recompute = recompute;
    launched.clear();
    const Result fused = steps(t, Path::kDevice);
    const std::set<std::string> kernels(launched.begin(), launched.end());
    EXPECT_EQ(kernels, kernels_of(GetParam()));
    launched.clear();
    const Result plain = steps(t, Path::kPlain);
    EXPECT_TRUE(launched.empty());
    EXPECT_NEAR(fused.loss, plain.loss, 1e-6);
    ASSERT_EQ(fused.tensors.size(), plain.tensors.size());
    for (std::size_t i = 0; i < plain.tensors.size(); ++i) {
      const at::Tensor difference = fused.tensors[i].gradient - plain.tensors[i].gradient;
      EXPECT_LE(difference.abs().max().item<float>(), 1e-6f) << plain.tensors[i].name;
      EXPECT_GT(plain.tensors[i].gradient.abs().max().item<float>(), 0.0f) << plain.tensors[i].name;
    }
  }
}

// One launch for each tensor and product: seven of a layer, forward and backward, in both micro-steps; one for each
// tensor that is looked at.
TEST(Nf4Kernel, MakesTheWeightsOfAQuantizedBaseForEachProduct) {
  Trial t = small("llama");
  t.spec.hidden_size = 128, t.spec.head_dim = 32, t.spec.intermediate_size = 192;
  t.lora_rank = 4, t.quantize_base = QuantizeBase::kNf4;
  launched.clear();
  const Result fused = steps(t, Path::kDevice);
  EXPECT_EQ(std::count(launched.begin(), launched.end(), "four_bit_weights"), 2 * 7 * 2 * 2 + 2 * 7);
  const Result plain = steps(t, Path::kPlain);
  EXPECT_NEAR(fused.loss, plain.loss, 1e-6);
  ASSERT_EQ(fused.tensors.size(), plain.tensors.size());
  for (std::size_t i = 0; i < plain.tensors.size(); ++i) {
    ASSERT_EQ(plain.tensors[i].gradient.defined(), fused.tensors[i].gradient.defined());
    if (!plain.tensors[i].gradient.defined()) continue;
    const at::Tensor difference = fused.tensors[i].gradient - plain.tensors[i].gradient;
    EXPECT_LE(difference.abs().max().item<float>(), 1e-6f) << plain.tensors[i].name;
  }
}

TEST(FusedGroups, AGroupThatIsSwitchedOffLaunchesNoneOfItsKernels) {
  const std::set<std::string> norm{"rms_norm", "rms_norm_backward", "sum_parts"}, rope{"rope"},
      mlp{"swiglu", "swiglu_backward"}, loss{"cross_entropy", "add_losses"};
  const auto launches_of = [](FusedKernels choice) {
    Trial t = small("llama");
    t.fused_kernels = choice, t.optimizer = OptimizerKind::kForeach;
    launched.clear();
    steps(t, Path::kDevice);
    return std::set<std::string>(launched.begin(), launched.end());
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

INSTANTIATE_TEST_SUITE_P(Families, DeviceKernels, ::testing::Values("llama", "gpt2", "mixtral", "gpt_oss"));

// Experts that refuse rows, and experts that the router chooses, with the auxiliary loss.
TEST(ExpertKernels, DroppedRowsAndLearnedRoutesHaveTheGradientsOfLibraryOperators) {
  for (const bool learned : {false, true}) {
    Trial t = small("mixtral");
    if (learned)
      t.routing = Routing::kLearned, t.spec.router_aux_coef = 0.02;
    else
      t.routing = Routing::kSkewed, t.hot_percent = 70, t.capacity_percent = 100;
    const Result fused = steps(t, Path::kDevice), plain = steps(t, Path::kPlain);
    EXPECT_NEAR(fused.loss, plain.loss, 1e-6);
    ASSERT_EQ(fused.tensors.size(), plain.tensors.size());
    for (std::size_t i = 0; i < plain.tensors.size(); ++i)
      EXPECT_LE((fused.tensors[i].gradient - plain.tensors[i].gradient).abs().max().item<float>(), 1e-6f)
          << plain.tensors[i].name;
  }
}

// The product of all experts at once, whose biases one kernel adds. An expert without rows among them.
TEST(ExpertKernels, AddTheBiasesOfAllExpertsAtOnce) {
  const at::Tensor ends = at::tensor({5, 5, 12}, at::kInt), in = at::randn({12, 16}),
                   weight = at::randn({3 * 24, 16}), bias = at::randn({3 * 24});
  const kernels::Groups groups{{5, 0, 7}, ends, true}, apart{{5, 0, 7}, ends, false};
  kernels::device::set_launcher(&launch_on_cpu);
  kernels::set_path(Path::kDevice);
  launched.clear();
  const at::Tensor together = kernels::grouped_linear(in, weight, groups, bias);
  kernels::set_path(Path::kFused);
  kernels::device::set_launcher(nullptr);
  EXPECT_EQ(launched, (std::vector<std::string>{"add_group_bias"}));
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
    kernels::device::set_launcher(&launch_on_cpu);
    kernels::set_path(Path::kDevice);
    optim::Optimizer kernel(parameters, OptimizerKind::kFused, options);
    kernels::set_path(Path::kFused);
    optim::Optimizer library(plain, OptimizerKind::kFused, options);
    for (int step = 0; step < 3; ++step) {
      std::vector<at::Tensor> grads, halved;
      for (const at::Tensor& p : parameters) {
        grads.push_back(at::randn({p.numel()}, types.grads));
        halved.push_back(grads.back().to(at::kFloat).mul(0.5));
      }
      launched.clear();
      kernels::set_path(Path::kDevice);
      ASSERT_TRUE(kernel.updates_all_types());
      kernel.step(grads, 0.5, copies);
      kernels::set_path(Path::kFused);
      EXPECT_EQ(launched.size(), 2u);
      library.step(halved);
    }
    kernels::device::set_launcher(nullptr);
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
    kernels::set_path(Path::kDevice);
    kernels::device::set_launcher(&launch_on_cpu);
    launched.clear();
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
    kernels::device::set_launcher(nullptr);
    kernels::set_path(Path::kFused);
    EXPECT_EQ(std::count(launched.begin(), launched.end(), "adamw_master"), 1);
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
  kernels::device::set_launcher(&launch_on_cpu);
  at::manual_seed(3);
  const auto heads = [](i64 n) { return at::randn({2, 5, n, 16}); };
  const at::Tensor q = heads(4), k = heads(2), v = heads(2), angles = at::rand({5, 8});
  const kernels::Angles turned{angles.cos(), angles.sin()};
  const at::Tensor rows = at::empty({10, 8 * 16}),
                   expected = at::cat({q, k, v}, 2).view({10, 8 * 16}).clone();
  ASSERT_TRUE(kernels::device::join_heads(q, k, v, turned, rows));
  kernels::rope(expected, 6, 16, turned.cos, turned.sin, true);
  EXPECT_LE((rows - expected).abs().max().item<float>(), 1e-6f);
  EXPECT_FALSE(kernels::device::join_heads(q.transpose(1, 2), k, v, turned, rows))
      << "strides of another kind";
  kernels::device::set_launcher(nullptr);
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
  const auto products = [&](Path path) {
    kernels::set_path(path);
    kernels::device::set_launcher(&launch_on_cpu);
    launched.clear();
    std::vector<at::Tensor> out{at::empty({32, 16}), at::empty({32, 48}), at::ones({16, 48})};
    kernels::linear(rows, {weight, {}, false, true}, {}, out[0]);
    kernels::linear_backward_input(dout, {weight, {}, false, true}, out[1]);
    kernels::linear_backward_weight(dout, rows, false, {out[2], true}, true);
    kernels::device::set_launcher(nullptr);
    kernels::set_path(Path::kFused);
    return out;
  };
  const auto plain = products(Path::kPlain);
  EXPECT_TRUE(launched.empty());
  const auto device = products(Path::kDevice);
  EXPECT_EQ(launched.size(), 3 * 4u) << "two launches for each factor of three products";
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(device[i].equal(plain[i])) << i;
}

}  // namespace
}  // namespace sweep::step
